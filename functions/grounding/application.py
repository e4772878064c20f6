"""The HTTPS API as one application: routes, and its own description."""

from collections.abc import Callable
from functools import cache

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from grounding.routes import routes
from grounding.wiring import wired
from groundwire_api.answering import answer_errors, resolver


def build(logger: Logger, count: Callable[[str, int], None]) -> APIGatewayHttpResolver:
    """The application of this environment; the use cases behind it are made on the first request."""
    app = resolver()

    @cache
    def schema() -> str:
        from grounding.description.openapi import describe  # few ever ask, and it takes its time

        return describe(app, wired().authentication, is_open=wired().open_description)

    app.include_router(routes(wired, logger, count, schema))
    answer_errors(app, logger)
    return app
