"""The OpenAPI description: routes and parameters as the resolver has them, the rest from one table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from grounding.description import asked, shapes
from grounding.models import ValidateRequest
from groundwire import __version__
from groundwire_api.models import UploadRequest
from groundwire_api.problems import CONTENT_TYPE, ProblemCode

Json = dict[str, Any]
Authentication = Literal["iam", "jwt"]
_REF: Final = "#/components/schemas/{model}"
_ABOUT: Final = (
    "Whole documents, and the documents they include, for grounded answers. Bodies are camelCase;"
    " snake_case is read alike."
)

PROBLEMS: Final[Mapping[int, tuple[str, tuple[ProblemCode, ...]]]] = {
    400: ("The request is wrong; `errors` names each field.", ("invalid_request", "uri_unsupported")),
    403: ("Nobody vouches for the caller.", ("forbidden",)),
    404: ("There is no such document, or the caller may not read it.", ("document_not_found",)),
    422: (
        "There is such a document, and it can never be handed over.",
        ("document_too_large", "key_not_addressable", "unsupported_mime"),
    ),
    500: ("Groundwire failed; it is logged.", ("internal_error",)),
    503: ("A store cannot answer now; try again.", ("unavailable", "throttled")),
}
"""What each problem status means, and the codes that come with it."""


@dataclass(frozen=True, slots=True)
class _Route:
    answer: type[BaseModel] | None
    says: str
    problems: tuple[int, ...] = ()
    takes: type[BaseModel] | None = None
    examples: Mapping[str, Any] = field(default_factory=dict)


_ASKED: Final = (400, 403, 500)
_ROUTES: Final[Mapping[tuple[str, str], _Route]] = {
    ("post", "/v1/ground"): _Route(
        shapes.GroundAnswer,
        "Every source and every include is accounted for; a store that fails costs its own documents.",
        _ASKED,
        asked.GroundRequest,
        asked.GROUND_EXAMPLES,
    ),
    ("post", "/v1/compose"): _Route(
        shapes.ComposeAnswer,
        "The document, and what it includes.",
        (*_ASKED, 404, 422, 503),
        asked.ComposeRequest,
        asked.COMPOSE_EXAMPLES,
    ),
    ("post", "/v1/validate"): _Route(
        shapes.ValidateAnswer,
        "What the indexer would find; nothing is stored.",
        (*_ASKED, 503),
        ValidateRequest,
        asked.VALIDATE_EXAMPLES,
    ),
    ("post", "/v1/uploads"): _Route(
        shapes.UploadAnswer,
        "A URL that takes this one document by PUT.",
        (*_ASKED, 503),
        UploadRequest,
        asked.UPLOAD_EXAMPLES,
    ),
    ("get", "/v1/documents"): _Route(
        shapes.DocumentStatus, "Verdict, findings and version.", (*_ASKED, 404, 503)
    ),
    ("get", "/v1/graph"): _Route(shapes.GraphAnswer, "Nodes and edges.", (*_ASKED, 404, 503)),
    ("get", "/v1/dependents"): _Route(shapes.DependentsAnswer, "One page of them.", (*_ASKED, 404, 503)),
    ("get", "/healthz"): _Route(shapes.Health, "It runs."),
    ("get", "/openapi.json"): _Route(None, "OpenAPI 3.1."),
}
_UPLOADS: Final = {  # a function of its own answers there
    "summary": "Leave to upload one document to where it belongs",
    "operationId": "upload_v1_uploads_post",
}
_SCHEMES: Final[Mapping[Authentication, Json]] = {
    "iam": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "AWS Signature Version 4 for the service execute-api.",
        "x-amazon-apigateway-authtype": "awsSigv4",
    },
    "jwt": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of the issuer that this deployment trusts.",
    },
}


def describe(app: APIGatewayHttpResolver, authentication: Authentication, *, is_open: bool) -> str:
    """The description as JSON text.

    `authentication` is how callers prove who they are; `is_open` says whether healthz and this need no proof.
    """
    description: Json = json.loads(
        app.get_openapi_json_schema(title="Groundwire", version=__version__, description=_ABOUT)
    )
    description["paths"].setdefault("/v1/uploads", {"post": dict(_UPLOADS)})
    for (method, path), route in _ROUTES.items():
        operation = description["paths"][path][method]
        needed = None if is_open and not path.startswith("/v1/") else authentication
        operation["security"] = [{needed: []}] if needed else []
        operation["responses"] = _responses(route, needed)
        for parameter in operation.get("parameters", ()):
            if parameter["name"] == "uri":
                parameter["schema"] = TypeAdapter(shapes.CanonicalUri).json_schema() | {"title": "URI"}
                parameter["example"] = asked.URI_EXAMPLE
        if route.takes:
            examples = {name: {"value": value} for name, value in route.examples.items()}
            media = {"schema": _ref(route.takes), "examples": examples}
            operation["requestBody"] = {"required": True, "content": {"application/json": media}}
    description["components"] = {
        "schemas": _schemas(),
        "securitySchemes": {authentication: _SCHEMES[authentication]},
    }
    return json.dumps(description)


def _responses(route: _Route, authentication: Authentication | None) -> Json:
    shape = _ref(route.answer) if route.answer else {"type": "object"}
    responses: Json = {"200": _response(route.says, {"application/json": {"schema": shape}})}
    for status in sorted(route.problems):
        responses[str(status)] = _problem(status)
    if authentication:
        gateway = {"application/json": {"schema": _ref(shapes.GatewayRefusal)}}
        responses["429"] = _response("More requests than this deployment takes.", gateway)
        denied = "401" if authentication == "jwt" else "403"
        responses.setdefault(denied, _response("Nobody vouches for the caller.", {}))["content"] |= gateway
    return responses


def _problem(status: int) -> Json:
    meaning, codes = PROBLEMS[status]
    narrowed = {"properties": {"status": {"const": status}, "code": {"enum": list(codes)}}}
    response = _response(meaning, {CONTENT_TYPE: {"schema": {"allOf": [_ref(shapes.Problem), narrowed]}}})
    if status == 503:
        seconds = {"required": True, "schema": {"type": "integer"}, "description": "Seconds."}
        response["headers"] = {"Retry-After": seconds}
    return response


def _response(description: str, content: Json) -> Json:
    return {"description": description, "content": content}


def _ref(model: type[BaseModel]) -> Json:
    return {"$ref": _REF.format(model=model.__name__)}


def _schemas() -> Json:
    """The schemas of all that goes in and out, by name."""
    routes = _ROUTES.values()
    models = [shapes.Problem, shapes.GatewayRefusal, *(r.answer for r in routes), *(r.takes for r in routes)]
    _, schema = models_json_schema([(each, "validation") for each in models if each], ref_template=_REF)
    found: Json = schema["$defs"]
    for each in found.values():
        for inner in each.get("properties", {}).values():
            inner.pop("title", None)  # the name once more
    return found
