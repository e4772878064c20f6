"""API Gateway → here: one resolve. Only Logger and Metrics are made at import."""

from functools import cache
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from grounding.application import build
from groundwire.debugging import json_line

logger = Logger(service="grounding", json_serializer=json_line)
metrics = Metrics(namespace="Groundwire", service="grounding")


@cache
def application() -> APIGatewayHttpResolver:
    """The API, made on the first request."""
    return build(logger, _count)


@logger.inject_lambda_context(
    correlation_id_path="requestContext.requestId", log_event=False, clear_state=True
)
@metrics.log_metrics(raise_on_empty_metrics=False, capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """The HTTP API's answer (payload 2.0)."""
    _count("Requests", 1)
    return application().resolve(event, context)


def _count(name: str, number: int) -> None:
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
