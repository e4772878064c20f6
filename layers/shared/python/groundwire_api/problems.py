"""Errors as RFC 9457 problem details: one place, stable codes, never what the caller sent."""

from http import HTTPStatus
from typing import Any, Final, Literal

import orjson
from aws_lambda_powertools.event_handler import Response

from groundwire.errors import (
    DocumentForbidden,
    DocumentNotFound,
    DocumentTooLarge,
    GroundwireError,
    InvalidRequest,
    KeyNotAddressable,
    PointerRefused,
    Throttled,
    UnsupportedMime,
)

CONTENT_TYPE: Final = "application/problem+json"
ProblemCode = Literal[
    "invalid_request",
    "uri_unsupported",
    "forbidden",
    "no_such_route",
    "document_not_found",
    "document_too_large",
    "key_not_addressable",
    "unsupported_mime",
    "internal_error",
    "throttled",
    "unavailable",
]
"""What programs decide by; docs/api.md says what each means."""
_ERRORS, _FIELD_CHARS = 20, 200
"""What a problem names at most: a caller may send any number of names, and long ones."""
NOT_FOUND_DETAIL: Final = "There is no such document, or the caller may not read it."


def problem(status: HTTPStatus, code: ProblemCode, detail: str, **extra: Any) -> Response[str]:
    """A problem details answer; `extra` holds members of our own, such as `errors`."""
    body = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
    }
    headers = {"Retry-After": "1"} if status is HTTPStatus.SERVICE_UNAVAILABLE else {}
    return Response(
        status_code=int(status),
        content_type=CONTENT_TYPE,
        body=orjson.dumps(body | extra).decode(),
        headers=headers,
    )


def problem_for(error: GroundwireError) -> Response[str]:
    """The answer to an error that a use case raised."""
    if isinstance(error, InvalidRequest):
        return invalid([{"field": error.field, "problem": error.problem}])
    if isinstance(error, PointerRefused):
        if error.code == "root_not_configured":
            return problem(HTTPStatus.NOT_FOUND, "document_not_found", NOT_FOUND_DETAIL)
        return problem(HTTPStatus.BAD_REQUEST, "uri_unsupported", error.detail)
    if isinstance(error, DocumentNotFound | DocumentForbidden):
        return problem(HTTPStatus.NOT_FOUND, "document_not_found", NOT_FOUND_DETAIL)
    if isinstance(error, DocumentTooLarge):
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "document_too_large", error.detail)
    if isinstance(error, KeyNotAddressable):
        detail = "Its store cannot address this document."
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "key_not_addressable", detail)
    if isinstance(error, UnsupportedMime):
        detail = "No model takes this document, and its store cannot convert it."
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "unsupported_mime", detail)
    code: ProblemCode = "throttled" if isinstance(error, Throttled) else "unavailable"
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, code, "A store cannot answer now; try again.")


def invalid(errors: list[dict[str, str]]) -> Response[str]:
    """400, with each field that is wrong and what is wrong with it."""
    named = [each | {"field": each["field"][:_FIELD_CHARS]} for each in errors[:_ERRORS]]
    detail = "; ".join(f"{each['field']}: {each['problem']}" for each in named)
    return problem(HTTPStatus.BAD_REQUEST, "invalid_request", detail, errors=named)
