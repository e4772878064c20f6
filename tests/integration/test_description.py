"""What the API says of itself: a true OpenAPI 3.1 description, docs/api.md, a page that runs only its own."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from groundwire import errors, traversal
from groundwire.findings import CODES
from groundwire.includes import REFUSALS
from groundwire_api.problems import ProblemCode
from tests.captured import http_request
from tests.cloud import Cloud
from tests.integration.described import departures
from tests.integration.driving import Answer, get, post, send, upload
from tests.integration.test_uploads import ask

PAGE: Final = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
PDF: Final = b"%PDF-1.7\n\xff\xfe"
FILES: Final[dict[str, str | bytes]] = {
    "a.md": "---\ntitle: A\nincludes: [b.md, plan.pdf, gone.md, /up.md, a.md, a b.md#x]\nIncludes: 1\n---\n",
    "b.md": "---\nincludes: [a.md, c.md]\n---\n",
    "c.md": "---\ntitle: [\n---\n",
    "plan.pdf": PDF,
}
ROUTES: Final = {
    ("post", "/v1/ground"): {400, 403, 500},
    ("post", "/v1/compose"): {400, 403, 404, 422, 500, 503},
    ("post", "/v1/validate"): {400, 403, 500, 503},
    ("post", "/v1/uploads"): {400, 403, 500, 503},
    ("get", "/v1/documents"): {400, 403, 404, 500, 503},
    ("get", "/v1/graph"): {400, 403, 404, 500, 503},
    ("get", "/v1/dependents"): {400, 403, 404, 500, 503},
    ("get", "/healthz"): set(),
    ("get", "/openapi.json"): set(),
}
"""Every route, and the problems it may answer."""


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    shared_cloud.wire(shared_cloud.root(name="handbook", writers=("*",)))
    upload(shared_cloud, FILES)
    return shared_cloud


@pytest.fixture(scope="module")
def description(kb: Cloud) -> dict[str, Any]:
    answer = get("/openapi.json")
    assert (answer.status, answer.content_type) == (200, "application/json")
    found: dict[str, Any] = answer.json
    return found


def enum(description: dict[str, Any], shape: str, name: str) -> set[str]:
    """The values that a field may have, null apart."""
    field = description["components"]["schemas"][shape]["properties"][name]
    values: list[str] = field.get("enum") or field["anyOf"][0]["enum"]
    return set(values)


def test_the_function_is_well(kb: Cloud) -> None:
    answer = get("/healthz")
    assert (answer.status, answer.json["status"]) == (200, "ok")
    assert answer.json["version"]


# -- the description ------------------------------------------------------------------------------


def test_the_description_is_openapi(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")
    assert list(OpenAPIV31SpecValidator(description).iter_errors()) == []


def test_the_description_names_every_route_and_its_problems(description: dict[str, Any]) -> None:
    found = {
        (method, path): {
            int(status)
            for status, response in operation["responses"].items()
            if "application/problem+json" in response["content"]
        }
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    }
    assert found == ROUTES


def test_every_answer_has_a_shape_that_lets_nothing_else_in(description: dict[str, Any]) -> None:
    for path, methods in description["paths"].items():
        for operation in methods.values():
            content = operation["responses"]["200"]["content"]["application/json"]
            if path != "/openapi.json":
                name = content["schema"]["$ref"].rsplit("/", 1)[1]
                assert description["components"]["schemas"][name]["additionalProperties"] is False


def test_codes_are_those_of_the_code(description: dict[str, Any]) -> None:
    fetch = {code for code in get_args(errors.FetchCode) if code != "forbidden"}
    assert {each.code for each in kinds(errors.FetchError)} == fetch | {"forbidden"}
    assert enum(description, "Source", "code") == {*get_args(errors.SourceCode), *fetch}
    assert enum(description, "Skip", "reason") == set(get_args(traversal.SkipReason))
    cycles = set(get_args(traversal.CycleCode))
    assert enum(description, "Skip", "code") == fetch | cycles | set(REFUSALS) | {traversal.ABORTED}
    assert enum(description, "Finding", "code") == set(CODES)
    assert enum(description, "AttachedDocument", "undelivered") == fetch
    assert enum(description, "Problem", "code") == set(get_args(ProblemCode))


def kinds(error: type[errors.FetchError]) -> list[type[errors.FetchError]]:
    return [error, *(each for kind in error.__subclasses__() for each in kinds(kind))]


@pytest.mark.parametrize(
    ("variables", "scheme", "kind", "is_open"),
    [
        ({}, "iam", {"type": "apiKey", "x-amazon-apigateway-authtype": "awsSigv4"}, False),
        ({"GROUNDWIRE_AUTHENTICATION": "jwt"}, "jwt", {"type": "http", "scheme": "bearer"}, False),
        ({"GROUNDWIRE_OPEN_DESCRIPTION": "true"}, "iam", {"in": "header"}, True),
    ],
)
def test_callers_are_told_how_to_prove_who_they_are(
    kb: Cloud,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    scheme: str,
    kind: dict[str, str],
    is_open: bool,
) -> None:
    described = anew(monkeypatch, variables)
    assert described["components"]["securitySchemes"][scheme].items() >= kind.items()
    needed = {path: next(iter(m.values()))["security"] for path, m in described["paths"].items()}
    open_paths = {path for path, security in needed.items() if not security}
    assert open_paths == ({"/healthz", "/openapi.json"} if is_open else set())
    assert all(security in ([], [{scheme: []}]) for security in needed.values())
    denied = "401" if scheme == "jwt" else "403"
    responses = described["paths"]["/v1/ground"]["post"]["responses"]
    assert "application/json" in responses[denied]["content"]
    assert "429" in responses


def anew(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> dict[str, Any]:
    """The description of a deployment with these variables; the one under test stays as it is."""
    from grounding.application import build
    from grounding.handler import _count, logger
    from grounding.wiring import wired

    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    wired.cache_clear()
    app = build(logger, _count)
    answer = app.resolve(http_request("GET", "/openapi.json"), None)  # type: ignore[arg-type]
    wired.cache_clear()
    found: dict[str, Any] = json.loads(answer["body"])
    return found


def test_only_pointers_are_not_in_camel_case(description: dict[str, Any]) -> None:
    names = {
        (shape, name)
        for shape, schema in description["components"]["schemas"].items()
        for name in schema.get("properties", ())
    }
    assert {shape for shape, name in names if "_" in name} == {
        "S3DocumentPointer",
        "GcsDocumentPointer",
        "SharePointDocumentPointer",
    }


# -- is true --------------------------------------------------------------------------------------


def test_every_example_is_a_right_request(kb: Cloud, description: dict[str, Any]) -> None:
    for method, path in ROUTES:
        operation = description["paths"][path][method]
        if method == "post":
            examples = operation["requestBody"]["content"]["application/json"]["examples"]
            answers = [(name, asked(path, each["value"])) for name, each in examples.items()]
        else:
            parameters = operation.get("parameters", ())
            assert all("example" in each for each in parameters if each["name"] == "uri")
            answers = [(path, get(path, **{p["name"]: p["example"] for p in parameters if "example" in p}))]
        for name, answer in answers:
            assert answer.status in (200, 404), (name, answer.body)
            assert departures(answer, method, path) == [], name


def asked(path: str, body: Any) -> Answer:
    return ask(body) if path == "/v1/uploads" else post(path, body)


OVERRIDES: Final = {"prepareDocumentOptions": {"forceContentType": "attachment"}, "compositionPolicy": None}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"dryRun": True},
        {"overrides": OVERRIDES},
        {"overrides": {"compositionPolicy": {"maxDepth": 0}}},
        {"overrides": {"compositionPolicy": {"maxDocs": 2, "onFetchError": "abort"}}},
        {"overrides": {"compositionPolicy": {"maxIncludeBytes": 1, "traversableMimeTypes": ["a/b"]}}},
    ],
    ids=str,
)
def test_answers_with_documents_are_as_they_are_described(kb: Cloud, body: dict[str, Any]) -> None:
    wide = [kb.uri(key) for key in (*FILES, "gone.md")] + ["gs://x/y", "x", {"title": "A"}]
    answer = post("/v1/ground", {"sources": wide, **body})
    assert (answer.status, departures(answer, "post", "/v1/ground")) == (200, [])
    for key in ("a.md", "plan.pdf"):
        answer = post("/v1/compose", {"uri": kb.uri(key), **body})
        assert (answer.status, departures(answer, "post", "/v1/compose")) == (200, [])


@pytest.mark.parametrize("key", [*FILES, "gone.md"])
def test_what_the_index_knows_is_as_it_is_described(kb: Cloud, key: str) -> None:
    for path in ("/v1/documents", "/v1/graph", "/v1/dependents"):
        assert departures(get(path, uri=kb.uri(key)), "get", path) == []
    for direction in ("includes", "dependents"):
        answer = get("/v1/graph", uri=kb.uri(key), direction=direction, depth="5")
        assert departures(answer, "get", "/v1/graph") == []
    content = FILES.get(key, b"")
    body = {"path": key, "content": content if isinstance(content, str) else "text"}
    answer = post("/v1/validate", body)
    assert (answer.status, departures(answer, "post", "/v1/validate")) == (200, [])


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/ground", {}, 400),
        ("/v1/compose", {"uri": "x"}, 400),
        ("/v1/compose", {"uri": "s3://elsewhere/a.md"}, 404),
        ("/v1/validate", {"path": "../x", "content": ""}, 400),
        ("/v1/uploads", {"path": "a.md", "sizeBytes": -1}, 400),
    ],
)
def test_a_problem_is_as_it_is_described(kb: Cloud, path: str, body: Any, status: int) -> None:
    answer = asked(path, body)
    assert (answer.status, departures(answer, "post", path)) == (status, [])


# -- docs/api.md ----------------------------------------------------------------------------------


def told(heading: str) -> list[list[list[str]]]:
    """What stands in backticks in each cell of each row of the tables below a heading."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`.*|\d{3} .*) \|$", section, re.MULTILINE)
    return [[re.findall(r"`([^`]+)`", cell) for cell in row.split(" | ")] for row in rows]


def test_the_page_tells_every_problem(description: dict[str, Any]) -> None:
    rows = re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.MULTILINE)
    described = {
        (status, code)
        for methods in description["paths"].values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        for media in (response["content"].get("application/problem+json"),)
        if media
        for code in media["schema"]["allOf"][1]["properties"]["code"]["enum"]
    }
    assert set(rows) == described | {("404", "no_such_route")}
    assert sorted(code for _, code in rows) == sorted(get_args(ProblemCode))


def test_the_page_tells_every_code(description: dict[str, Any]) -> None:
    codes = [row[0][0] for row in told("What becomes of a source")]
    assert sorted(codes) == sorted(enum(description, "Source", "code"))
    rows = told("Why an include is not there")
    reasons = [row[0][0] for row in rows]
    assert set(reasons) == enum(description, "Skip", "reason")
    told_codes = {code for row in rows[len(set(reasons)) :] for code in row[1]} - {"detail"}
    assert told_codes == enum(description, "Skip", "code")
    ways = [row[0][0] for row in told("How a document is handed over")]
    one_of = description["components"]["schemas"]["AttachedDocument"]["oneOf"]
    assert [{"required": [way]} for way in ways] == one_of[:-1]


def test_the_page_has_a_curl_for_every_route(kb: Cloud) -> None:
    headings = re.findall(r"^## `(GET|POST) (\S+)`$", PAGE, re.MULTILINE)
    assert {(method.lower(), path) for method, path in headings} == ROUTES.keys()
    for method, path in headings:
        section = PAGE.split(f"\n## `{method} {path}`\n", 1)[1].split("\n## ", 1)[0]
        command = section.split("```sh\n", 1)[1].split("```", 1)[0]
        assert f"$api{path} " in command.replace("\n", " ")
        if method == "POST":
            (body,) = re.findall(r"--json '(.*?)'", command, re.DOTALL)
            answer = asked(path, json.loads(body))
        else:
            answer = get(path, **dict(re.findall(r"--data(?:-urlencode)? (\w+)=(\S+)", command)))
        assert answer.status in (200, 404), answer.body
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL):
        json.loads(block)


# -- the page to read it on -----------------------------------------------------------------------


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
