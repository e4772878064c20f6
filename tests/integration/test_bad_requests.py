"""Never a 500 for anything a caller can send: each wrong request is a problem that names what is wrong.

Nothing of what was sent comes back, and nothing of it is logged.
"""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from grounding.models import GroundRequest
from tests.captured import Event, http_request
from tests.cloud import Cloud
from tests.integration.driving import Answer, get, post, send, upload
from tests.integration.logs import Written, writing

PLANTED = "planted-4711"
"""Stands in values that must come back nowhere."""
LARGEST = 20_000
FORM = "application/x-www-form-urlencoded"
PROBLEMS = {400, 403, 404, 422}


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    upload(shared_cloud, {"a.md": "---\nincludes: [b.md]\n---\nText.\n", "b.md": "Text.\n"})
    return shared_cloud


@pytest.fixture
def written() -> Iterator[Written]:
    with writing() as written:
        yield written


def is_problem(answer: Answer) -> bool:
    """Checks the form of a problem; its status is right."""
    assert answer.content_type == "application/problem+json", answer
    problem = answer.json
    assert problem.keys() >= {"type", "title", "status", "code", "detail"}
    assert problem["status"] == answer.status
    if problem["code"] == "invalid_request":
        assert problem["errors"]
        assert all(each["field"] and each["problem"] for each in problem["errors"])
    assert len(answer.body) < LARGEST
    return answer.status in PROBLEMS


def fields(answer: Answer) -> list[str]:
    return [each["field"] for each in answer.json["errors"]]


# -- bodies that are no JSON --------------------------------------------------------------------

RAW: dict[str, Callable[[str], Event]] = {
    "no body": lambda path: http_request("POST", path),
    "an empty body": lambda path: http_request("POST", path, ""),
    "not JSON": lambda path: http_request("POST", path, f'{{"{PLANTED}'),
    "a word": lambda path: http_request("POST", path, PLANTED),
    "two values": lambda path: http_request("POST", path, "{} {}"),
    "null": lambda path: http_request("POST", path, "null"),
    "a number": lambda path: http_request("POST", path, "4711"),
    "a text": lambda path: http_request("POST", path, f'"{PLANTED}"'),
    "a list": lambda path: http_request("POST", path, f'["{PLANTED}"]'),
    "an empty object": lambda path: http_request("POST", path, "{}"),
    "NaN": lambda path: http_request("POST", path, "NaN"),
    "a number of many digits": lambda path: http_request("POST", path, "9" * 10_000),
    "lists in lists": lambda path: http_request("POST", path, "[" * 100_000),
    "closed lists in lists": lambda path: http_request("POST", path, "[" * 100_000 + "]" * 100_000),
    "objects in objects": lambda path: http_request("POST", path, '{"sources":' * 100_000),
    "deep in a source": lambda path: http_request(
        "POST", path, '{"sources":[{"customMetadata":' + "[" * 900 + "]" * 900 + "}]}"
    ),
    "NUL": lambda path: http_request("POST", path, "\0"),
    "a BOM": lambda path: http_request("POST", path, "\ufeff{}"),
    "base64 of bytes that are no UTF-8": lambda path: encoded(path, b'{"uri": "\xff\xfe"}'),
    "base64 of UTF-16": lambda path: encoded(path, '{"uri": "s3://x/y"}'.encode("utf-16")),
    "base64 that is none": lambda path: http_request("POST", path, "%%%") | {"isBase64Encoded": True},
    "base64 cut short": lambda path: http_request("POST", path, "eyJ1c") | {"isBase64Encoded": True},
    "a form": lambda path: http_request(
        "POST", path, f"uri={PLANTED}", headers={"content-type": "application/x-www-form-urlencoded"}
    ),
    "plain text": lambda path: http_request("POST", path, "{}", headers={"content-type": "text/plain"}),
    "no type": lambda path: http_request("POST", path, "{}", headers={"content-type": ""}),
    "a strange type": lambda path: http_request("POST", path, "{}", headers={"content-type": ";;=\x00"}),
    "multipart": lambda path: http_request(
        "POST",
        path,
        f'--x\r\nContent-Disposition: form-data; name="uri"\r\n\r\n{PLANTED}\r\n--x--\r\n',
        headers={"content-type": "multipart/form-data; boundary=x"},
    ),
    "multipart without a boundary": lambda path: http_request(
        "POST", path, PLANTED, headers={"content-type": "multipart/form-data"}
    ),
}


def encoded(path: str, body: bytes) -> Event:
    event = http_request("POST", path, base64.b64encode(body).decode())
    return event | {"isBase64Encoded": True}


@pytest.mark.parametrize("path", ["/v1/ground", "/v1/compose"])
@pytest.mark.parametrize("event", RAW.values(), ids=RAW.keys())
def test_a_body_that_is_no_request(
    kb: Cloud, written: Written, path: str, event: Callable[[str], Event]
) -> None:
    answer = send(event(path))
    assert is_problem(answer)
    assert answer.status == 400
    assert PLANTED not in answer.body
    assert PLANTED not in written.text


# -- fields that are wrong ----------------------------------------------------------------------

URI = "s3://{bucket}/a.md"
"""The document that is there."""
WRONG: dict[str, tuple[str, Any, str]] = {
    # path, body, the field that is named
    "unknown field": ("/v1/ground", {"sources": [], "sauces": PLANTED}, "sauces"),
    "unknown field in ctx": ("/v1/ground", {"sources": [], "ctx": {"admin": PLANTED}}, "ctx.admin"),
    "unknown override": ("/v1/ground", {"sources": [], "overrides": {"x": PLANTED}}, "overrides.x"),
    "unknown policy": (
        "/v1/compose",
        {"uri": "s3://b/k", "overrides": {"compositionPolicy": {"maxdepth": 1}}},
        "overrides.compositionPolicy.maxdepth",
    ),
    "one field in both spellings": (
        "/v1/ground",
        {"groundingMetadata": {}, "grounding_metadata": {}},
        "grounding_metadata",
    ),
    "neither sources nor metadata": ("/v1/ground", {"ctx": {}}, "sources"),
    "both sources and metadata": ("/v1/ground", {"sources": [], "groundingMetadata": {}}, "sources"),
    "sources as text": ("/v1/ground", {"sources": PLANTED}, "sources"),
    "sources as an object": ("/v1/ground", {"sources": {"0": PLANTED}}, "sources"),
    "sources as null": ("/v1/ground", {"sources": None}, "sources"),
    "a source that is a number": ("/v1/ground", {"sources": [7]}, "sources.0"),
    "a source that is null": ("/v1/ground", {"sources": ["s3://b/k", None]}, "sources.1"),
    "a source that is a list": ("/v1/ground", {"sources": [[PLANTED]]}, "sources.0"),
    "a uri that is a number": ("/v1/ground", {"sources": [{"uri": 7}]}, "sources.0.uri"),
    "a title that is a list": ("/v1/ground", {"sources": [{"title": [PLANTED]}]}, "sources.0.title"),
    "metadata that is text": (
        "/v1/ground",
        {"sources": [{"customMetadata": PLANTED}]},
        "sources.0.customMetadata",
    ),
    "a metadata entry without a key": (
        "/v1/ground",
        {"sources": [{"customMetadata": [{"stringValue": PLANTED}]}]},
        "sources.0.customMetadata.0",
    ),
    "a metadata entry that is text": (
        "/v1/ground",
        {"sources": [{"customMetadata": [PLANTED]}]},
        "sources.0.customMetadata.0",
    ),
    "a pointer type that is a list": (
        "/v1/ground",
        {"sources": [{"source_type": ["s3"]}]},
        "sources.0.source_type",
    ),
    "grounding metadata that is a list": ("/v1/ground", {"groundingMetadata": []}, "groundingMetadata"),
    "chunks that are text": (
        "/v1/ground",
        {"groundingMetadata": {"groundingChunks": PLANTED}},
        "groundingMetadata.groundingChunks",
    ),
    "a chunk that is text": (
        "/v1/ground",
        {"groundingMetadata": {"groundingChunks": [PLANTED]}},
        "groundingMetadata.groundingChunks.0",
    ),
    "a context that is text": (
        "/v1/ground",
        {"groundingMetadata": {"groundingChunks": [{"retrievedContext": PLANTED}]}},
        "groundingMetadata.groundingChunks.0.retrievedContext",
    ),
    "a context that is a number": (
        "/v1/ground",
        {"groundingMetadata": {"groundingChunks": [{"retrievedContext": 7}]}},
        "groundingMetadata.groundingChunks.0.retrievedContext",
    ),
    "more than fifty sources": ("/v1/ground", {"sources": ["s3://b/k"] * 51}, "sources"),
    "more than fifty chunks": (
        "/v1/ground",
        {"groundingMetadata": {"groundingChunks": [{"web": {}}] * 51}},
        "groundingMetadata",
    ),
    "ctx as text": ("/v1/ground", {"sources": [], "ctx": PLANTED}, "ctx"),
    "ctx as null": ("/v1/ground", {"sources": [], "ctx": None}, "ctx"),
    "a user id that is a list": ("/v1/ground", {"sources": [], "ctx": {"userId": []}}, "ctx.userId"),
    "overrides as a list": ("/v1/ground", {"sources": [], "overrides": []}, "overrides"),
    "maxDocuments 0": (
        "/v1/ground",
        {"sources": [], "overrides": {"maxDocuments": 0}},
        "overrides.maxDocuments",
    ),
    "maxDocuments text": (
        "/v1/ground",
        {"sources": [], "overrides": {"maxDocuments": "3"}},
        "overrides.maxDocuments",
    ),
    "maxDocuments true": (
        "/v1/ground",
        {"sources": [], "overrides": {"max_documents": True}},
        "overrides.max_documents",
    ),
    "a source type that is none": (
        "/v1/ground",
        {"sources": [], "overrides": {"allowedSourceTypes": ["ftp"]}},
        "overrides.allowedSourceTypes.0",
    ),
    "maxDocuments in compose": (
        "/v1/compose",
        {"uri": "s3://b/k", "overrides": {"maxDocuments": 3}},
        "overrides.maxDocuments",
    ),
    "a content type that is none": (
        "/v1/compose",
        {"uri": "s3://b/k", "overrides": {"prepareDocumentOptions": {"forceContentType": PLANTED}}},
        "overrides.prepareDocumentOptions.forceContentType",
    ),
    "neither uri nor pointer": ("/v1/compose", {}, "uri"),
    "both uri and pointer": ("/v1/compose", {"uri": "s3://b/k", "pointer": {}}, "uri"),
    "a uri that is null": ("/v1/compose", {"uri": None}, "uri"),
    "a uri that is a list": ("/v1/compose", {"uri": [PLANTED]}, "uri"),
    "a pointer that is text": ("/v1/compose", {"pointer": PLANTED}, "pointer"),
    "a pointer without a type": ("/v1/compose", {"pointer": {"s3_key": PLANTED}}, "pointer.source_type"),
    "a pointer without a key": (
        "/v1/compose",
        {"pointer": {"source_type": "s3", "s3_bucket": PLANTED}},
        "pointer",
    ),
    "a pointer with an empty key": (
        "/v1/compose",
        {"pointer": {"source_type": "s3", "s3_bucket": "b", "s3_key": ""}},
        "pointer",
    ),
    "a pointer whose key is a list": (
        "/v1/compose",
        {"pointer": {"source_type": "s3", "s3_bucket": "b", "s3_key": [PLANTED]}},
        "pointer",
    ),
    "a sharepoint pointer without an item": (
        "/v1/compose",
        {"pointer": {"source_type": "sharepoint", "sharepoint_drive_id": "d"}},
        "pointer",
    ),
    **{
        f"{name} {json.dumps(value)[:20]}": (
            "/v1/compose",
            {"uri": URI, "overrides": {"compositionPolicy": {name: value}}},
            f"overrides.compositionPolicy.{name}",
        )
        for name, value in [
            ("maxDepth", -1),
            ("maxDepth", "2"),
            ("maxDepth", 1.5),
            ("maxDepth", True),
            ("maxDepth", float("nan")),
            ("maxDepth", float("inf")),
            ("maxDepth", -(10**400)),
            ("max_docs", 0),
            ("maxIncludeBytes", -1),
            ("timeoutMs", 0),
            ("onFetchError", "explode"),
            ("onFetchError", ["skip"]),
            ("traversableMimeTypes", "text/markdown"),
            ("traversableMimeTypes", ["markdown"]),
        ]
    },
}


@pytest.mark.parametrize(("path", "body", "field"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_field_is_named(kb: Cloud, written: Written, path: str, body: Any, field: str) -> None:
    if isinstance(body, dict) and body.get("uri") == URI:
        body = body | {"uri": kb.uri("a.md")}
    answer = post(path, body)
    assert is_problem(answer)
    assert (answer.status, answer.json["code"]) == (400, "invalid_request")
    assert any(each == field or each.startswith(f"{field}.") for each in fields(answer)), fields(answer)
    assert PLANTED not in answer.body
    assert PLANTED not in written.text


# -- places that are none -----------------------------------------------------------------------

BAD_URIS = [
    "",
    " ",
    "s3://",
    "s3://bucket",
    "s3://bucket/",
    "s3:///key.md",
    "S3://bucket/key.md",
    "s3:/bucket/key.md",
    "http://169.254.169.254/latest/meta-data",
    "https://example.com/a.md",
    "file:///etc/passwd",
    "ftp://host/a.md",
    "local://",
    "local://kb",
    "a.md",
    "../a.md",
    "//bucket/key",
    "s3://bucket/" + "x" * 2_000,
    "s3://bucket/" + "é" * 513,
    "\0",
    "s3",
    "://",
]
FOREIGN_URIS = [
    "s3://somebody-elses/a.md",
    "gs://bucket/a.md",
    "sharepoint://drive/a.md",
    "local://kb/a.md",
    "s3://{bucket}/gone.md",
    "s3://{bucket}/a.md/",
    "s3://{bucket}//a.md",
    "s3://{bucket}/A.md",
    "s3://{bucket}/a.md?versionId=x",
    "s3://{bucket}/x/../a.md",
    "s3://{bucket}/%61.md",
    "s3://{bucket}/\0",
    "s3://{bucket}/" + "x" * 1_024,
    "s3://{bucket}:443/a.md",
    "s3://user@{bucket}/a.md",
]


@pytest.mark.parametrize("uri", BAD_URIS)
def test_a_uri_that_names_no_document_is_refused(kb: Cloud, uri: str) -> None:
    for answer in (
        post("/v1/compose", {"uri": uri}),
        get("/v1/documents", uri=uri),
        get("/v1/graph", uri=uri),
    ):
        assert is_problem(answer)
        assert answer.status == 400


@pytest.mark.parametrize("uri", FOREIGN_URIS)
def test_a_uri_of_another_place_is_not_found(kb: Cloud, uri: str) -> None:
    asked = uri.format(bucket=kb.bucket)
    answers = [
        post("/v1/compose", {"uri": asked}),
        get("/v1/documents", uri=asked),
        get("/v1/graph", uri=asked),
    ]
    for answer in answers:
        assert is_problem(answer)
        assert answer.status in (400, 404) if uri.startswith("local") else answer.status == 404
        assert answer.body == answers[0].body


@pytest.mark.parametrize("uri", [*BAD_URIS, *FOREIGN_URIS, "s3://b/\ud800"])
def test_a_source_that_leads_nowhere_is_an_unresolved_source(kb: Cloud, uri: str) -> None:
    answer = post("/v1/ground", {"sources": [uri.format(bucket=kb.bucket), kb.uri("b.md")]})
    assert answer.status == 200, answer.body
    first, second = answer.json["sources"]
    assert first["code"]
    assert (second["status"], second["code"]) == ("resolved", None)
    assert answer.json["complete"] is False


FOREIGN_POINTERS: list[dict[str, Any]] = [
    {"s3_region": "us-east-1"},
    {"s3_region": ""},
    {"s3_endpoint": "http://169.254.169.254"},
    {"s3_endpoint": "https://s3.example.com"},
    {"s3_endpoint": "http://[::1"},
    {"s3_endpoint": "http://host:99999999"},
    {"s3_endpoint": "http://host:port"},
    {"s3_endpoint": "\0"},
    {"s3_endpoint": "http://\u2100.example"},
    {"s3_endpoint": "x" * 100_000},
    {"s3_bucket": "somebody-elses"},
    {"s3_bucket": "\0"},
    {"s3_bucket": "x" * 100_000},
    {"s3_key": "x" * 2_000},
    {"s3_key": "\0"},
    {"s3_key": "/a.md"},
    {"s3_key": "a.md/"},
]


@pytest.mark.parametrize("changed", FOREIGN_POINTERS, ids=lambda changed: str(changed)[:60])
def test_a_pointer_elsewhere_is_refused_before_anything_is_asked(kb: Cloud, changed: dict[str, Any]) -> None:
    pointer = {"source_type": "s3", "s3_bucket": kb.bucket, "s3_key": "a.md", **changed}
    composed = post("/v1/compose", {"pointer": pointer})
    grounded = post("/v1/ground", {"sources": [pointer, kb.uri("b.md")]})
    if changed == {"s3_region": ""}:  # an empty value is none
        assert (composed.status, grounded.json["complete"]) == (200, True)
        return
    assert is_problem(composed)
    assert grounded.status == 200, grounded.body
    assert [bool(each["code"]) for each in grounded.json["sources"]] == [True, False]


# -- queries, methods and paths -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/v1/documents", {}, "uri"),
        ("/v1/graph", {}, "uri"),
        ("/v1/graph", {"depth": "2"}, "uri"),
        ("/v1/dependents", {"uri": "s3://b/a.md", "transitve": "true"}, "transitve"),
        ("/v1/documents", {"uri": "s3://b/a.md", "": "x"}, '""'),
        *(
            ("/v1/graph", {"uri": "s3://b/a.md", "depth": depth}, "depth")
            for depth in ("-1", "6", "two", "", "1.5", "NaN", "9" * 5_000, "1,2", "\u0663")
        ),
        *(
            ("/v1/graph", {"uri": "s3://b/a.md", "direction": direction}, "direction")
            for direction in ("", "both", "includes,dependents", "Includes", "\0")
        ),
    ],
)
def test_a_wrong_query_is_named(kb: Cloud, path: str, query: dict[str, str], field: str) -> None:
    answer = get(path, **query)
    assert is_problem(answer)
    assert (answer.status, answer.json["code"]) == (400, "invalid_request")
    assert field in fields(answer)


PROBLEMS_SAID: dict[str, tuple[Event, list[dict[str, str]]]] = {
    "JSON that ends too soon": (
        http_request("POST", "/v1/ground", '{"sources": '),
        [{"field": "body", "problem": "is no JSON, from character 13 on"}],
    ),
    "JSON sent as a form": (
        http_request("POST", "/v1/ground", '{"sources": []}', headers={"content-type": FORM}),
        [{"field": "content-type", "problem": "must be application/json"}],
    ),
    "a form that has the fields": (
        http_request("POST", "/v1/compose", "uri=s3://b/a.md", headers={"content-type": FORM}),
        [{"field": "content-type", "problem": "must be application/json"}],
    ),
    "what is neither": (
        http_request("POST", "/v1/ground", '{"sources": [7], "ctx": {"userId": []}}'),
        [
            {"field": "sources.0", "problem": "must be a URI or an object"},
            {"field": "ctx.userId", "problem": "must be text or a whole number"},
        ],
    ),
    "a body's field as a parameter": (
        http_request("POST", "/v1/ground", '{"sources": []}', query={"dryRun": "true"}),
        [{"field": "dryRun", "problem": "is no parameter of this route"}],
    ),
}


@pytest.mark.parametrize("name", PROBLEMS_SAID)
def test_a_problem_says_what_to_mend(kb: Cloud, name: str) -> None:
    event, errors = PROBLEMS_SAID[name]
    answer = send(event)
    assert answer.status == 400
    assert answer.json["errors"] == errors


def test_a_signature_in_the_query_and_a_monitors_words_are_no_parameters(kb: Cloud) -> None:
    assert get("/v1/documents", uri=kb.uri("a.md"), **{"X-Amz-Date": "20260302T081500Z"}).status == 200
    assert get("/healthz", at="1").status == 200


def test_repeated_query_names_make_one_uri_that_is_nowhere(kb: Cloud) -> None:
    """The HTTP API joins them with a comma, which a key may hold."""
    answer = get("/v1/documents", uri=f"{kb.uri('a.md')},{kb.uri('a.md')}")
    assert is_problem(answer)
    assert answer.status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/ground"),
        ("PUT", "/v1/ground"),
        ("DELETE", "/v1/documents"),
        ("POST", "/v1/documents"),
        ("PATCH", "/v1/compose"),
        ("HEAD", "/v1/graph"),
        ("BREW", "/v1/ground"),
        ("GET", "/"),
        ("GET", ""),
        ("GET", "/v1"),
        ("GET", "/v1/"),
        ("POST", "/v1/ground/"),
        ("POST", "/v1//ground"),
        ("POST", "/v2/ground"),
        ("GET", "/v1/documents/s3%3A%2F%2Fb%2Fa.md"),
        ("GET", "/../etc/passwd"),
        ("GET", "/%00"),
        ("GET", "/healthz/x"),
        ("GET", "/" + "x" * 8_000),
        ("GET", "/.*"),
        ("GET", "/é\U0001f4a9"),
    ],
)
def test_there_is_nothing_at_other_paths_and_methods(kb: Cloud, method: str, path: str) -> None:
    answer = send(http_request(method, path, "{}"))
    assert is_problem(answer)
    assert (answer.status, answer.json["code"]) == (404, "no_such_route")


# -- text that is no Unicode, and other things that only look harmless ---------------------------

STRANGE = [
    "\ud800",
    "\udfff\ud800",
    "a\ud800b",
    "\0",
    "\x1b[31m",
    "\u202e",
    "x" * 10_000,
    "\U0001d518",
    "",
    "'\"<>&\r\n",
]


@pytest.mark.parametrize("text", STRANGE, ids=ascii)
def test_strange_text_anywhere_is_no_failure(kb: Cloud, written: Written, text: str) -> None:
    pointer = {"source_type": "s3", "s3_bucket": kb.bucket, "s3_key": "a.md"}
    bodies: list[tuple[str, Any]] = [
        ("/v1/ground", {"sources": [text]}),
        ("/v1/ground", {text: 1}),
        ("/v1/ground", {"sources": [{text: text, "uri": kb.uri("a.md"), "title": text}]}),
        ("/v1/ground", {"sources": [{"uri": kb.uri(text)}]}),
        ("/v1/ground", {"sources": [pointer | {"display_name": text, "mime_type": text}]}),
        ("/v1/ground", {"sources": [pointer | {text: text}]}),
        ("/v1/ground", {"sources": [pointer | {"s3_region": text, "s3_endpoint": text}]}),
        ("/v1/ground", {"sources": [{"customMetadata": [{"key": text, "stringValue": text}]}]}),
        ("/v1/ground", {"sources": [{"customMetadata": {"source_type": text}}]}),
        (
            "/v1/ground",
            {
                "sources": [
                    {
                        "customMetadata": [
                            *({"key": k, "stringValue": v} for k, v in pointer.items()),
                            {"key": "display_name", "stringValue": text},
                        ]
                    }
                ]
            },
        ),
        ("/v1/ground", {"groundingMetadata": {text: text, "groundingChunks": [{text: text}]}}),
        ("/v1/ground", {"sources": [], "ctx": {"userId": text, "auditingId": text}}),
        ("/v1/ground", {"sources": [], "overrides": {text: text}}),
        ("/v1/compose", {"uri": kb.uri("a.md"), "ctx": {"userId": text, "auditingId": text}}),
        ("/v1/compose", {"pointer": pointer | {"display_name": text, "mime_type": text}}),
        ("/v1/compose", {"pointer": pointer | {"s3_key": text}}),
        ("/v1/compose", {"pointer": pointer | {"s3_force_path_style": text}}),
        (
            "/v1/compose",
            {
                "uri": kb.uri("a.md"),
                "overrides": {"compositionPolicy": {"traversableMimeTypes": [f"text/{text}"]}},
            },
        ),
        ("/v1/compose", {"uri": kb.uri("a.md"), "overrides": {"compositionPolicy": {text: 1}}}),
        ("/v1/compose", {"uri": kb.uri("a.md"), "overrides": {"compositionPolicy": {"onFetchError": text}}}),
    ]
    for path, body in bodies:
        answer = post(path, body)
        assert answer.status == 200 or is_problem(answer), (path, body, answer)
        answer.body.encode("utf-8")
    written.text.encode("utf-8")
    for path in ("/v1/documents", "/v1/graph"):
        for query in ({"uri": text}, {"uri": kb.uri(text)}, {text or "x": text}):
            answer = get(path, **query)
            assert is_problem(answer), (path, query, answer)


def test_very_many_wrong_values_make_one_short_problem(kb: Cloud) -> None:
    many = "7," * 100_000 + "7"
    for body in (
        f'{{"sources":[{many}]}}',
        f'{{"sources":[],"overrides":{{"compositionPolicy":{{"traversableMimeTypes":[{many}]}}}}}}',
        f'{{"groundingMetadata":{{"groundingChunks":[{many}]}}}}',
        json.dumps({f"{n:x}": 1 for n in range(50_000)}),
        json.dumps({f"{n:x}": 1 for n in range(50)}),
        json.dumps({"sources": [], "x" * 1_000_000: 1}),
        json.dumps({"sources": [{"customMetadata": [{}] * 100_000}]}),
    ):
        assert is_problem(send(http_request("POST", "/v1/ground", body)))


@pytest.mark.parametrize(
    "body",
    [
        {"sources": [7] * 1_000},
        {"sources": [], "overrides": {"allowedSourceTypes": [7] * 1_000}},
        {"sources": [], "overrides": {"compositionPolicy": {"traversableMimeTypes": [7] * 1_000}}},
        {f"{n:x}": 1 for n in range(1_000)},
        {"ctx": {f"{n:x}": 1 for n in range(1_000)}},
    ],
    ids=lambda body: str(body)[:40],
)
def test_the_errors_of_a_request_are_few_before_they_are_cut(body: Any) -> None:
    """A request holds 6 MB: an error for each of its wrong values would be gigabytes."""
    with pytest.raises(ValidationError) as caught:
        GroundRequest.model_validate(body)
    assert caught.value.error_count() <= 2


def test_numbers_beyond_measure_are_clamped(kb: Cloud) -> None:
    policy = {"maxDepth": 10**300, "maxDocs": 10**300, "maxIncludeBytes": 10**300, "timeoutMs": 10**300}
    answer = post("/v1/compose", {"uri": kb.uri("a.md"), "overrides": {"compositionPolicy": policy}})
    assert answer.status == 200
    assert {answer.json["policy"][name] for name in policy} == {5, 64, 25 * 1024 * 1024, 25_000}


# -- anything at all ----------------------------------------------------------------------------

SAME = settings(derandomize=True, database=None)
"""The same examples on every machine."""
TEXTS = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010, categories=["Cs", "Co"]), max_size=3),
    st.sampled_from(["s3", "gcs", "local", "text/markdown", "skip", "abort", "source_type", "s3_key", "uri"]),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield from places(inner, (*path, name))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with something else at one place."""
    if not path:
        return new
    name, *rest = path
    if isinstance(value, dict):
        return value | {name: replaced(value[name], tuple(rest), new)}
    return [replaced(each, tuple(rest), new) if n == name else each for n, each in enumerate(value)]


def right_requests(bucket: str) -> list[tuple[str, Any]]:
    metadata = [
        {"key": "source_type", "stringValue": "s3"},
        {"key": "s3_bucket", "stringValue": bucket},
        {"key": "s3_key", "string_value": "a.md"},
        {"key": "page", "numericValue": 4},
    ]
    pointer = {"source_type": "s3", "s3_bucket": bucket, "s3_key": "a.md", "s3_region": "eu-north-1"}
    policy = {
        "traversableMimeTypes": ["text/markdown"],
        "maxDepth": 2,
        "maxDocs": 3,
        "maxIncludeBytes": 1_000,
        "timeoutMs": 20_000,
        "onFetchError": "skip",
    }
    common = {
        "ctx": {"userId": 1, "auditingId": "x"},
        "overrides": {"compositionPolicy": policy, "prepareDocumentOptions": {"forceContentType": "text"}},
    }
    chunk = {"retrievedContext": {"title": "A", "text": "T", "uri": None, "customMetadata": metadata}}
    return [
        ("/v1/ground", {"groundingMetadata": {"groundingChunks": [chunk, {"web": {}}]}, **common}),
        ("/v1/ground", {"sources": [f"s3://{bucket}/a.md", pointer, {"custom_metadata": metadata}]}),
        (
            "/v1/ground",
            {"sources": [{"customMetadata": pointer, "title": "A"}], "overrides": {"maxDocuments": 1}},
        ),
        ("/v1/compose", {"uri": f"s3://{bucket}/a.md", **common}),
        ("/v1/compose", {"pointer": pointer, "ctx": {}}),
    ]


def test_the_requests_that_are_bent_below_are_right(kb: Cloud) -> None:
    for path, body in right_requests(kb.bucket):
        answer = post(path, body)
        assert answer.status == 200, answer.body


@settings(SAME, max_examples=300)
@given(data=st.data())
def test_a_request_with_anything_in_one_place_is_answered(kb: Cloud, data: st.DataObject) -> None:
    path, body = data.draw(st.sampled_from(right_requests(kb.bucket)))
    place = data.draw(st.sampled_from(list(places(body))))
    answer = post(path, replaced(body, place, data.draw(VALUES)))
    assert answer.status == 200 or is_problem(answer), answer
    answer.body.encode("utf-8")


@settings(SAME, max_examples=100)
@given(body=st.one_of(VALUES.map(json.dumps), st.text(), st.binary().map(lambda raw: raw.decode("latin-1"))))
def test_anything_as_a_body_is_answered(kb: Cloud, body: str) -> None:
    for path in ("/v1/ground", "/v1/compose"):
        answer = send(http_request("POST", path, body))
        assert answer.status == 200 or is_problem(answer)


@settings(SAME, max_examples=150)
@given(
    path=st.sampled_from(["/v1/documents", "/v1/graph"]),
    query=st.dictionaries(st.sampled_from(["uri", "depth", "direction", "x"]), TEXTS),
    prefix=st.sampled_from(["", "s3://", "s3://{bucket}/", "gs://x/", "local://kb/"]),
)
def test_anything_as_a_query_is_answered(kb: Cloud, path: str, query: dict[str, str], prefix: str) -> None:
    if "uri" in query:
        query = query | {"uri": prefix.format(bucket=kb.bucket) + query["uri"]}
    assert is_problem(get(path, **query))


@settings(SAME, max_examples=100)
@given(path=st.text().map(lambda text: "/" + text), method=st.sampled_from(["GET", "POST", "OPTIONS", "X"]))
def test_anything_as_a_path_is_answered(kb: Cloud, path: str, method: str) -> None:
    assert is_problem(send(http_request(method, path, "{}")))


@settings(SAME, max_examples=100)
@given(headers=st.dictionaries(st.sampled_from(["content-type", "accept", "x-groundwire-debug"]), st.text()))
def test_anything_in_a_header_is_answered(kb: Cloud, headers: dict[str, str]) -> None:
    body = json.dumps({"uri": kb.uri("a.md")})
    answer = send(http_request("POST", "/v1/compose", body, headers=headers))
    assert answer.status == 200 or is_problem(answer)
