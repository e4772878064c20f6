"""Requests made to exhaust or to confuse: a short problem each, and one reading of what is ambiguous.

Wrong types in every field, and whatever else an event may hold: tests/integration/test_bad_requests.py.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.attacks.keep import PLANTED
from tests.captured import Event, http_request
from tests.cloud import Cloud, lambda_context
from tests.integration.driving import Answer, post, send, upload
from tests.integration.logs import writing
from tests.integration.test_access import READER, role
from tests.integration.test_bad_requests import LARGEST, RAW, is_problem
from uploads.handler import handler

pytestmark = pytest.mark.attacks

MB = 1024 * 1024
DEEP = 1_000_000
PATHS = ("/v1/ground", "/v1/compose", "/v1/validate", "/v1/uploads")
FIELD = {"/v1/ground": "sources", "/v1/compose": "uri", "/v1/validate": "path", "/v1/uploads": "path"}


def answered(event: Event) -> Answer:
    if event["rawPath"] != "/v1/uploads":
        return send(event)
    answer = handler(event, lambda_context())
    return Answer(answer["statusCode"], answer["body"], dict(answer.get("headers") or {}))


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    hidden = shared_cloud.root(name="hidden", prefix="hidden", readers=(READER,), writers=(READER,))
    shared_cloud.wire(shared_cloud.root(writers=("*",)), hidden)
    upload(shared_cloud, {"a.md": "Here.", "hidden/b.md": PLANTED})
    return shared_cloud


@pytest.mark.parametrize("path", ["/v1/validate", "/v1/uploads"])
@pytest.mark.parametrize("event", RAW.values(), ids=RAW.keys())
def test_a_body_that_is_no_request(kb: Cloud, path: str, event: Callable[[str], Event]) -> None:
    answer = answered(event(path))
    assert is_problem(answer)
    assert answer.status == 400


LARGE: dict[str, Callable[[str], str]] = {
    "10 MB of blanks": lambda field: " " * (10 * MB),
    "10 MB in one text": lambda field: json.dumps({field: "x" * (10 * MB)}),
    "10 MB in one name": lambda field: json.dumps({"x" * (10 * MB): 1}),
    "a million lists": lambda field: f'{{"{field}": {"[" * DEEP}{"]" * DEEP}}}',
    "a million lists, never closed": lambda field: "[" * DEEP,
    "a million objects": lambda field: f'{{"{field}":' * 200_000 + "1" + "}" * 200_000,
    "a million names": lambda field: "{" + ",".join(f'"x{n}":1' for n in range(DEEP)) + "}",
    "50,001 values": lambda field: json.dumps({field: ["x"] * 50_001}),
    "50,001 pointers": lambda field: json.dumps({field: [{"source_type": "s3"}] * 50_001}),
    "a number of a million digits": lambda field: f'{{"{field}": {"9" * DEEP}}}',
    "a huge exponent": lambda field: f'{{"{field}": 1e{"9" * 1_000}}}',
    "a million escapes": lambda field: f'{{"{field}": "{chr(92)}u0000' + "\\u0000" * DEEP + '"}',
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE.keys())
def test_a_large_body_gets_a_short_problem(kb: Cloud, path: str, body: Callable[[str], str]) -> None:
    with writing() as written:
        answer = answered(http_request("POST", path, body(FIELD[path])))
    assert is_problem(answer)
    assert len(answer.body) < LARGEST
    assert max(map(len, written.text.split("\n"))) < LARGEST, "nor is it logged"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "-0.5", "1e-400"])
def test_a_number_that_is_none_is_refused(kb: Cloud, number: str) -> None:
    for override in ("maxDepth", "maxDocs", "timeoutMs", "maxIncludeBytes"):
        body = (
            f'{{"uri": "{kb.uri("a.md")}", "overrides": {{"compositionPolicy": {{"{override}": {number}}}}}}}'
        )
        answer = send(http_request("POST", "/v1/compose", body))
        assert is_problem(answer), answer.body
    answer = answered(
        http_request("POST", "/v1/uploads", f'{{"path": "a.md", "root": "kb", "sizeBytes": {number}}}')
    )
    assert is_problem(answer)


def test_a_field_twice_is_read_once_and_judged_as_it_is_read(kb: Cloud) -> None:
    """Whichever of the two counts, it is the one whose readers are asked for."""
    allowed, hidden = json.dumps(kb.uri("a.md")), json.dumps(kb.uri("hidden/b.md"))
    for pair in (f'"uri": {allowed}, "uri": {hidden}', f'"uri": {hidden}, "uri": {allowed}'):
        answer = send(http_request("POST", "/v1/compose", f"{{{pair}}}", authorizer=role("app")))
        assert PLANTED not in answer.body
    paths = '"root": "kb", "path": "a.md", "path": "hidden/b.md"'
    refused = answered(http_request("POST", "/v1/uploads", f"{{{paths}}}", authorizer=role("app")))
    assert is_problem(refused)


@pytest.mark.parametrize("half", ["\ud800", "a\udfff.md", "\udc00\ud800"], ids=ascii)
def test_half_a_surrogate_pair_is_no_text(kb: Cloud, half: str) -> None:
    bodies: list[tuple[str, Any]] = [
        ("/v1/compose", {"uri": f"s3://{kb.bucket}/{half}"}),
        ("/v1/compose", {"pointer": {"source_type": "s3", "s3_bucket": kb.bucket, "s3_key": half}}),
        ("/v1/ground", {"sources": [kb.uri("a.md")], "ctx": {"userId": half}}),
        ("/v1/validate", {"path": half, "root": "kb", "content": ""}),
        ("/v1/validate", {"path": "a.md", "root": "kb", "content": half}),
        ("/v1/uploads", {"path": half, "root": "kb"}),
        ("/v1/uploads", {"path": "a.md", "root": half}),
    ]
    for path, body in bodies:
        assert is_problem(answered(http_request("POST", path, json.dumps(body)))), (path, body)
    source = {
        "customMetadata": [{"key": half, "stringValue": half}],
        "title": half,
        "uri": half,
        "text": half,
    }
    assert post("/v1/ground", {"sources": [source]}).status == 200
