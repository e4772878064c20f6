"""Answers held against the description: what it says of them is true."""

from functools import cache
from typing import Any

from openapi_schema_validator import OAS31Validator

from tests.integration.driving import Answer, get


@cache
def _description() -> dict[str, Any]:
    found: dict[str, Any] = get("/openapi.json").json
    return found


def departures(answer: Answer, method: str, path: str) -> list[str]:
    """Where the answer is not what the description says of this route and status."""
    responses = _description()["paths"][path][method]["responses"]
    if str(answer.status) not in responses:
        return [f"status {answer.status} is not described"]
    schema = responses[str(answer.status)]["content"][answer.content_type]["schema"]
    whole = schema | {"components": _description()["components"]}
    validator = OAS31Validator(whole)
    return [f"{each.json_path}: {each.message}"[:300] for each in validator.iter_errors(answer.json)]
