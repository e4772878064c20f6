"""API Gateway → here: one resolve. Only Logger and Metrics are made at import."""

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from groundwire.debugging import json_line
from groundwire_api.answering import answer_errors, resolver
from uploads.routes import routes
from uploads.wiring import wired

logger = Logger(service="uploads", json_serializer=json_line)
metrics = Metrics(namespace="Groundwire", service="uploads")


@cache
def application() -> APIGatewayHttpResolver:
    """The upload API, made on the first request."""
    app = resolver()
    app.include_router(routes(wired, logger))
    answer_errors(app, logger)
    return app


@logger.inject_lambda_context(
    correlation_id_path="requestContext.requestId", log_event=False, clear_state=True
)
@metrics.log_metrics(raise_on_empty_metrics=False, capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """The HTTP API's answer (payload 2.0)."""
    metrics.add_metric(name="Requests", unit=MetricUnit.Count, value=1)
    return application().resolve(event, context)
