"""What the API says of itself: a true OpenAPI 3.1 description, a page that runs nothing but its own."""

import base64
import hashlib
import re
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.captured import http_request
from tests.cloud import Cloud
from tests.integration.driving import get, post, send, upload


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    upload(shared_cloud, {"a.md": "text"})
    return shared_cloud


@pytest.fixture(scope="module")
def description(kb: Cloud) -> dict[str, Any]:
    answer = get("/openapi.json")
    assert (answer.status, answer.content_type) == (200, "application/json")
    found: dict[str, Any] = answer.json
    return found


def test_the_function_is_well(kb: Cloud) -> None:
    answer = get("/healthz")
    assert (answer.status, answer.json["status"]) == (200, "ok")
    assert answer.json["version"]


def test_the_description_is_openapi(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")
    assert list(OpenAPIV31SpecValidator(description).iter_errors()) == []


def test_the_description_names_every_route(description: dict[str, Any]) -> None:
    routes = {(method, path) for path, methods in description["paths"].items() for method in methods}
    assert routes == {
        ("post", "/v1/ground"),
        ("post", "/v1/compose"),
        ("get", "/v1/documents"),
        ("get", "/v1/graph"),
        ("get", "/v1/dependents"),
        ("get", "/healthz"),
        ("get", "/openapi.json"),
    }


def test_the_description_tells_of_problems(description: dict[str, Any]) -> None:
    for path in ("/v1/ground", "/v1/compose"):
        responses = description["paths"][path]["post"]["responses"]
        assert responses["400"]["content"].keys() == {"application/problem+json"}
    assert "404" in description["paths"]["/v1/graph"]["get"]["responses"]
    assert description["components"]["schemas"]["Problem"]["required"] == [
        "type",
        "title",
        "status",
        "code",
        "detail",
    ]


def test_a_problem_is_as_it_is_described(description: dict[str, Any]) -> None:
    schema = description["components"]["schemas"]["Problem"]
    problem = post("/v1/compose", {}).json
    assert set(schema["required"]) <= problem.keys() <= schema["properties"].keys()


def test_the_example_is_a_right_request(kb: Cloud, description: dict[str, Any]) -> None:
    body = description["paths"]["/v1/ground"]["post"]["requestBody"]["content"]["application/json"]
    answer = post("/v1/ground", body["example"])
    assert answer.status == 200, answer.body
    assert answer.json["sources"][0]["code"] == "root_not_configured"


def test_only_camel_case_is_described(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    names = {name for schema in schemas.values() for name in schema.get("properties", ())}
    assert {name for name in names if "_" in name} == set()


def test_the_page_runs_nothing_but_its_own(kb: Cloud) -> None:
    answer = send(http_request("GET", "/docs", authorizer=None))
    assert answer.status == 200
    assert answer.content_type.startswith("text/html")
    policy = dict(
        directive.strip().split(" ", 1) for directive in answer.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        (inner,) = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", answer.body, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert policy[directive] == f"'sha256-{digest}'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    # What the policy would stop, or what would leave this origin.
    assert not re.search(r"\son\w+=|style=|src=|https?://|javascript:|innerHTML|eval\(", answer.body)


def test_the_page_declares_its_charset(kb: Cloud) -> None:
    assert '<meta charset="utf-8">' in send(http_request("GET", "/docs")).body[:1_024]
