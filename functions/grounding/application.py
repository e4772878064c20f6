"""The HTTPS API as one application: routes, one place for errors, and its own description."""

import json
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import ServiceError
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)

from grounding.description import EXAMPLE, PROBLEM_SCHEMA
from grounding.problems import invalid, problem, problem_for
from grounding.routes import Refused, encode, routes
from grounding.wiring import wired
from groundwire import __version__
from groundwire.errors import GroundwireError

_TITLE = "Groundwire"


def build(logger: Logger, count: Callable[[str, int], None]) -> APIGatewayHttpResolver:
    """The application of this environment; the use cases behind it are made on the first request."""
    app = APIGatewayHttpResolver(
        enable_validation=True,
        response_validation_error_http_code=HTTPStatus.INTERNAL_SERVER_ERROR,
        serializer=encode,
    )

    @cache
    def schema() -> str:
        return describe(app)

    app.include_router(routes(wired, logger, count, schema))
    _answer_errors(app, logger)
    return app


def describe(app: APIGatewayHttpResolver) -> str:
    """The OpenAPI description, as JSON text."""
    description: dict[str, Any] = json.loads(
        app.get_openapi_json_schema(title=_TITLE, version=__version__, description=__doc__ or "")
    )
    description["info"]["description"] = (
        "Whole documents, and the documents they include, for grounded answers."
    )
    description["components"]["schemas"]["Problem"] = PROBLEM_SCHEMA
    body = description["paths"]["/v1/ground"]["post"]["requestBody"]
    body["content"]["application/json"]["example"] = EXAMPLE
    return json.dumps(description)


def _answer_errors(app: APIGatewayHttpResolver, logger: Logger) -> None:
    """Every error class becomes a problem; nothing that a caller can send is a 500."""

    def unreadable(error: Exception) -> Response[str]:
        logger.warning("body not read", error=type(error).__name__)
        return invalid([{"field": "body", "problem": "must be JSON in UTF-8, not nested too deeply"}])

    def unexpected(error: Exception) -> Response[str]:
        # The frames only: an exception's text may hold what the caller sent.
        logger.error("unexpected error", error=type(error).__name__, at=_place(error))
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", "Groundwire failed; it is logged.")

    answers: dict[type[Exception], Callable[[Any], Response[str]]] = {
        RequestValidationError: _invalid_fields,
        RequestUnsupportedContentType: _wrong_type,
        GroundwireError: problem_for,
        Refused: _refused,
        ServiceError: _service_error,
        ValueError: unreadable,  # UnicodeDecodeError among them
        RecursionError: unreadable,
        Exception: unexpected,
    }
    for kind, answer in answers.items():
        app.exception_handler(kind)(answer)
    app.not_found(_no_such_route)


def _invalid_fields(error: RequestValidationError) -> Response[str]:
    return invalid([{"field": _field(each["loc"]), "problem": each["msg"]} for each in error.errors()])


def _wrong_type(_: Exception) -> Response[str]:
    return invalid([{"field": "content-type", "problem": "must be application/json"}])


def _refused(_: Exception) -> Response[str]:
    return problem(HTTPStatus.FORBIDDEN, "forbidden", "Nobody vouches for the caller.")


def _service_error(error: ServiceError) -> Response[str]:
    status = HTTPStatus(error.status_code)
    return problem(status, status.name.lower(), status.phrase)


def _no_such_route(_: Exception) -> Response[str]:
    return problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is nothing at this path and method.")


def _field(location: tuple[Any, ...]) -> str:
    """Where in the request, as the caller wrote it."""
    parts = [str(each) or '""' for each in location]
    return ".".join(parts[1:] if parts[:1] in (["body"], ["query"]) and len(parts) > 1 else parts)


def _place(error: BaseException) -> list[str]:
    frames: list[str] = []
    trace = error.__traceback__
    while trace:
        code = trace.tb_frame.f_code
        frames.append(f"{code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return frames[-8:]
