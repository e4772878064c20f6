"""What a request is answered with: JSON, and one place where every error class becomes a problem."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import orjson
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestUnsupportedContentType,
    RequestValidationError,
)

from groundwire.errors import GroundwireError, InvalidRequest, frames
from groundwire_api.asking import Refused
from groundwire_api.problems import invalid, problem, problem_for

_JSON_ONLY: Final = "must be application/json"
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


def resolver() -> APIGatewayHttpResolver:
    """A resolver that checks what comes in, and says what goes out as it is."""
    app = APIGatewayHttpResolver(
        enable_validation=True,
        response_validation_error_http_code=HTTPStatus.INTERNAL_SERVER_ERROR,
        serializer=encode,
    )
    app.use(middlewares=[_refuse_what_nobody_reads])
    return app


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

    def invalid_fields(error: RequestValidationError) -> Response[str]:
        # The fields of a form are none of ours: curl sends JSON as one where it is told no type.
        return _wrong_type(error) if _is_form(app) else _invalid_fields(error)

    answers: dict[type[Exception], Callable[[Any], Response[str]]] = {
        RequestValidationError: invalid_fields,
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


def _refuse_what_nobody_reads(app: APIGatewayHttpResolver, go_on: NextMiddleware) -> Response[str]:
    """A parameter with a slip in its name would change nothing, and nobody would know."""
    if _is_form(app):
        raise InvalidRequest("content-type", _JSON_ONLY)
    known = {each.alias for each in app.context["_route"].dependant.query_params}
    is_open = not app.current_event.path.startswith("/v1/")  # there a monitor may write what it likes
    for name in {} if is_open else app.current_event.query_string_parameters or {}:
        if name not in known and not name.startswith("X-Amz-"):  # a signature may stand there
            raise InvalidRequest(name or '""', "is no parameter of this route")
    return go_on(app)


def _is_form(app: APIGatewayHttpResolver) -> bool:
    """Whether the body was read as one: the resolver takes these types, and this API does not."""
    kind = app.current_event.headers.get("content-type", "").strip()
    return bool(app.current_event.body) and kind.startswith(_FORMS)


def _invalid_fields(error: RequestValidationError) -> Response[str]:
    return invalid([_invalid_field(each) for each in error.errors()])


def _invalid_field(error: dict[str, Any]) -> dict[str, str]:
    if error["type"] == "json_invalid":  # what stands for the field there is where the JSON ends
        return {"field": "body", "problem": f"is no JSON, from character {error['loc'][-1] + 1} on"}
    return {"field": _field(error["loc"]), "problem": error["msg"]}


def _wrong_type(_: Exception) -> Response[str]:
    return invalid([{"field": "content-type", "problem": _JSON_ONLY}])


def _refused(_: Exception) -> Response[str]:
    return problem(HTTPStatus.FORBIDDEN, "forbidden", "Nobody vouches for the caller.")


def _no_such_route(_: Exception) -> Response[str]:
    return problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is nothing at this path and method.")


def _field(location: tuple[Any, ...]) -> str:
    """Where in the request, as the caller wrote it."""
    parts = [str(each) or '""' for each in location]
    return ".".join(parts[1:] if parts[:1] in (["body"], ["query"]) and len(parts) > 1 else parts)
