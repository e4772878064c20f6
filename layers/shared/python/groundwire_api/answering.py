"""What a request is answered with: JSON, and one place where every error class becomes a problem."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import orjson
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)

from groundwire.errors import GroundwireError, frames
from groundwire_api.asking import Refused
from groundwire_api.problems import invalid, problem, problem_for


def resolver() -> APIGatewayHttpResolver:
    """A resolver that checks what comes in, and says what goes out as it is."""
    return APIGatewayHttpResolver(
        enable_validation=True,
        response_validation_error_http_code=HTTPStatus.INTERNAL_SERVER_ERROR,
        serializer=encode,
    )


def encode(shape: dict[str, Any]) -> str:
    """JSON that keeps every script as it is: escaping would make Finnish and Japanese twice as long."""
    return orjson.dumps(shape).decode("utf-8")


def json_answer(shape: dict[str, Any]) -> Response[str]:
    """200, with `shape` as JSON."""
    return text_answer(encode(shape))


def text_answer(body: str) -> Response[str]:
    """200, with JSON that is encoded already."""
    return Response(status_code=HTTPStatus.OK, content_type="application/json", body=body)


def answer_errors(app: APIGatewayHttpResolver, logger: Logger) -> None:
    """Every error class becomes a problem; nothing that a caller can send is a 500."""

    def unreadable(error: Exception) -> Response[str]:
        logger.warning("body not read", error=type(error).__name__)
        return invalid([{"field": "body", "problem": "must be JSON in UTF-8, not nested too deeply"}])

    def unexpected(error: Exception) -> Response[str]:
        # The frames only: an exception's text may hold what the caller sent.
        logger.error("unexpected error", error=type(error).__name__, at=frames(error))
        return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", "Groundwire failed; it is logged.")

    answers: dict[type[Exception], Callable[[Any], Response[str]]] = {
        RequestValidationError: _invalid_fields,
        RequestUnsupportedContentType: _wrong_type,
        GroundwireError: problem_for,
        Refused: _refused,
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


def _no_such_route(_: Exception) -> Response[str]:
    return problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is nothing at this path and method.")


def _field(location: tuple[Any, ...]) -> str:
    """Where in the request, as the caller wrote it."""
    parts = [str(each) or '""' for each in location]
    return ".".join(parts[1:] if parts[:1] in (["body"], ["query"]) and len(parts) > 1 else parts)
