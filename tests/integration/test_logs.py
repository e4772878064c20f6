"""No log holds what documents hold, what opens a door, or what a caller keeps to himself (Z-3, P-3)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.captured import http_request, object_event
from tests.cloud import Cloud
from tests.contracts.misbehaving import Misbehaving, Reply
from tests.integration.driving import deliver, get, index, post, send, upload
from tests.integration.logs import Written, writing

CONTENT = "planted-content-4711"
TITLE = "planted-title-4711"
TOKEN = "planted-token-4711"
SECRET = "planted-secret-4711"
KEY_ID = "AKIAPLANTED4711"
DEBUGGER = "arn:aws:iam::111122223333:role/app"


@pytest.fixture
def written() -> Iterator[Written]:
    with writing() as written:
        yield written


def records(written: Written) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.text.splitlines() if line.startswith("{")]


def debug_records(written: Written) -> list[dict[str, Any]]:
    return [each for each in records(written) if "namespace" in each]


def test_nothing_planted_is_logged(cloud: Cloud, written: Written, capfd: pytest.CaptureFixture[str]) -> None:
    """Through both functions: debug records on, a body moved to a URL, errors on the way."""
    cloud.environment(
        AWS_ACCESS_KEY_ID=KEY_ID,
        AWS_SECRET_ACCESS_KEY=SECRET,
        AWS_SESSION_TOKEN=TOKEN,
        GROUNDWIRE_DEBUG_CALLERS=json.dumps([DEBUGGER]),
    )
    document = f"""---
title: {TITLE}
includes: [big.md, "{CONTENT}\\a", gone.md]
{CONTENT}: 1
---
{CONTENT}
"""
    upload(cloud, {"a.md": document, "big.md": CONTENT * 400_000, "bad.md": f"---\n'{CONTENT}\n---\n"})
    deliver(f"{{{CONTENT}", {"detail-type": CONTENT}, object_event("elsewhere", "a.md"))
    headers = {"x-groundwire-debug": "*", "authorization": f"Bearer {TOKEN}", "cookie": TOKEN}
    bodies: list[tuple[str, Any]] = [
        (
            "/v1/ground",
            {
                "sources": [
                    {"uri": cloud.uri("a.md"), "text": CONTENT, "title": CONTENT},
                    cloud.uri("big.md"),
                ]
            },
        ),
        ("/v1/ground", {"sources": [{"customMetadata": [{"key": CONTENT, "stringValue": CONTENT}]}]}),
        ("/v1/ground", {"sources": [{"uri": f"https://example.com/?X-Amz-Signature={TOKEN}"}]}),
        ("/v1/compose", {"uri": cloud.uri("a.md")}),
        ("/v1/compose", {"uri": cloud.uri("bad.md")}),
        ("/v1/compose", {"uri": 7, "pointer": CONTENT}),
        ("/v1/compose", {"pointer": {"source_type": CONTENT}}),
        (
            "/v1/compose",
            {"uri": cloud.uri("a.md"), "overrides": {"compositionPolicy": {"maxDepth": CONTENT}}},
        ),
    ]
    answers = [post(path, body, headers=headers) for path, body in bodies]
    answers.append(get("/v1/documents", uri=cloud.uri("a.md")))
    answers.append(send(http_request("POST", "/v1/ground", f"{{{CONTENT}", headers=headers)))
    assert "X-Amz-Signature" in answers[0].body, "a body was moved, so a URL was signed"
    assert debug_records(written), "debug records were on"
    printed = capfd.readouterr()
    for planted in (CONTENT, TITLE, TOKEN, SECRET, "X-Amz-", KEY_ID):
        assert planted not in written.text, planted
        assert planted not in printed.out + printed.err, planted


def test_a_failing_store_is_logged_without_its_words(cloud: Cloud, written: Written) -> None:
    server = Misbehaving()
    server.behaviour = Reply(500, CONTENT)
    cloud.environment(
        AWS_ENDPOINT_URL=server.endpoint,
        AWS_ENDPOINT_URL_DYNAMODB=cloud.endpoint,
        AWS_ENDPOINT_URL_SQS=cloud.endpoint,
    )
    assert deliver(object_event(cloud.bucket, "a.md")) == ["m0"]
    assert post("/v1/compose", {"uri": cloud.uri("a.md")}).status == 503
    server.close()
    assert "Authorization" not in written.text
    assert "AWS4-HMAC" not in written.text


def test_one_audit_record_a_request(cloud: Cloud, written: Written) -> None:
    upload(cloud, {"a.md": "text"})
    written.clear()
    post("/v1/ground", {"sources": [cloud.uri("a.md")], "ctx": {"userId": 123, "auditingId": "audit-1"}})
    (audit,) = [each for each in records(written) if each.get("message") == "audit"]
    assert (audit["principal"], audit["user_id"], audit["auditing_id"]) == (DEBUGGER, 123, "audit-1")
    ((uri, version),) = audit["documents"]
    assert uri == cloud.uri("a.md")
    assert version
    for answer in (
        post("/v1/compose", {"uri": cloud.uri("gone.md")}),
        get("/v1/documents", uri=cloud.uri("a.md")),
        get("/v1/graph", uri=cloud.uri("gone.md")),
    ):
        assert answer.status in (200, 404)
    audits = [each for each in records(written) if each.get("message") == "audit"]
    assert [each["outcome"] for each in audits] == ["answered", "not_found", "answered", "not_found"]


def test_what_failed_is_not_recorded_as_answered(
    cloud: Cloud, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(CONTENT)

    upload(cloud, {"a.md": "text"})
    written.clear()
    monkeypatch.setattr("grounding.routes.dependents_of", fail)
    assert get("/v1/dependents", uri=cloud.uri("a.md")).status == 500
    (audit,) = [each for each in records(written) if each.get("message") == "audit"]
    assert (audit["outcome"], CONTENT in written.text) == ("internal_error", False)


def test_no_key_leaks_from_one_invocation_into_the_next(cloud: Cloud, written: Written) -> None:
    post("/v1/ground", {"sources": [], "ctx": {"userId": "first"}})
    written.clear()
    post("/v1/ground", {"sources": []})
    assert "first" not in written.text


def test_debug_records_are_for_callers_named_for_it(cloud: Cloud, written: Written) -> None:
    upload(cloud, {"a.md": "text"})
    body, headers = {"uri": cloud.uri("a.md")}, {"x-groundwire-debug": "composition-loader"}
    post("/v1/compose", body, headers=headers)
    assert debug_records(written) == []
    cloud.environment(GROUNDWIRE_DEBUG_CALLERS=json.dumps([DEBUGGER]))
    post("/v1/compose", body)
    assert debug_records(written) == [], "nobody asked"
    post("/v1/compose", body, headers=headers)
    assert {each["namespace"] for each in debug_records(written)} == {"composition-loader"}
    written.clear()
    other = {"iam": {"userArn": "arn:aws:sts::111122223333:assumed-role/other/app"}}
    post("/v1/compose", body, authorizer=other, headers=headers)
    post("/v1/compose", body, headers={"x-groundwire-debug": "everything,,\x00"})
    assert debug_records(written) == []


def test_debugging_changes_no_answer(cloud: Cloud, written: Written) -> None:
    upload(cloud, {"a.md": "---\nincludes: [gone.md]\n---\n"})
    cloud.environment(GROUNDWIRE_DEBUG_CALLERS=json.dumps(["*", DEBUGGER]))
    body = {"uri": cloud.uri("a.md")}
    assert (
        post("/v1/compose", body).body == post("/v1/compose", body, headers={"x-groundwire-debug": "*"}).body
    )


def test_metrics_have_no_dimension_without_a_bound(cloud: Cloud, written: Written) -> None:
    upload(cloud, {"a.md": "---\nincludes: [gone.md]\n---\n"})
    index(cloud, "a.md")
    post("/v1/ground", {"sources": [cloud.uri("a.md")]})
    metrics = [each for each in records(written) if "_aws" in each]
    assert metrics
    for each in metrics:
        for group in each["_aws"]["CloudWatchMetrics"]:
            assert {name for names in group["Dimensions"] for name in names} <= {"service", "function_name"}
        assert cloud.bucket not in json.dumps(each)
