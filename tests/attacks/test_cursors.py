"""Pages and parameters (Z-1): where a page goes on is a place in an order, and opens nothing."""

import json

import pytest

from tests.attacks.keep import PLANTED
from tests.captured import http_request
from tests.cloud import Cloud
from tests.integration.driving import Answer, get, send, upload
from tests.integration.test_access import READER, role

pytestmark = pytest.mark.attacks

APP = role("app")
FILES: dict[str, str | bytes] = {
    "terms.md": "x",
    "a.md": "---\nincludes: [terms.md]\n---\n",
    "b.md": "---\nincludes: [a.md]\n---\n",
    "hidden/terms.md": PLANTED,
    **{f"hidden/{PLANTED}-{n}.md": "---\nincludes: [terms.md]\n---\n" for n in range(3)},
}


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    shared_cloud.wire(
        shared_cloud.root(), shared_cloud.root(name="hidden", prefix="hidden", readers=(READER,))
    )
    upload(shared_cloud, FILES)
    return shared_cloud


def page(kb: Cloud, key: str, caller: object, **more: str) -> Answer:
    return get("/v1/dependents", caller, uri=kb.uri(key), transitive="true", limit="1", **more)


def test_a_cursor_of_one_caller_opens_nothing_to_another(kb: Cloud) -> None:
    theirs = page(kb, "hidden/terms.md", role("reader")).json["cursor"]
    assert PLANTED in theirs
    refused = page(kb, "hidden/terms.md", APP, cursor=theirs)
    assert refused.status == 404
    assert PLANTED not in refused.body


@pytest.mark.parametrize(
    "place",
    [
        "000000 s3://{bucket}/hidden/terms.md",
        "000001 s3://{bucket}/hidden/",
        "000000 s3://!",
        "999999 s3://{bucket}/z",
        "000001 gs://elsewhere/x",
        "000001 s3://{bucket}/a.md\n000002 s3://{bucket}/hidden/x",
    ],
)
def test_a_made_up_cursor_shows_some_of_what_may_be_seen_and_nothing_else(kb: Cloud, place: str) -> None:
    whole = get("/v1/dependents", APP, uri=kb.uri("terms.md"), transitive="true").json["dependents"]
    answer = page(kb, "terms.md", APP, cursor=place.format(bucket=kb.bucket))
    assert answer.status == 200
    assert all(each in whole for each in answer.json["dependents"])
    assert PLANTED not in answer.body


@pytest.mark.parametrize(
    "cursor",
    [
        '{"PK": {"S": "D#"}}',
        '["D#hidden", "x"]',
        "0:D#",
        "../hidden",
        "000001",
        "\0",
        "-00001 s3://b/a",
        "x" * 100_000,
        "' OR 1=1 --",
    ],
)
def test_a_cursor_of_another_kind_is_refused_and_not_repeated(kb: Cloud, cursor: str) -> None:
    answer = page(kb, "terms.md", APP, cursor=cursor)
    assert answer.status == 400
    assert [each["field"] for each in answer.json["errors"]] == ["cursor"]
    assert len(answer.body) < 400


@pytest.mark.parametrize("more", [{"uri": "x"}, {"Uri": "x"}, {"uri[]": "x"}, {"uri.": "x"}, {"URI": "x"}])
def test_one_uri_is_judged_and_read(kb: Cloud, more: dict[str, str]) -> None:
    """A second one, in another spelling, is not passed over: it is refused, or it is the one that counts."""
    hidden = kb.uri("hidden/terms.md")
    query = {"uri": kb.uri("terms.md")} | dict.fromkeys(more, hidden)
    answer = send(http_request("GET", "/v1/documents", query=query, authorizer=APP))
    assert answer.status in (400, 404)
    assert PLANTED not in answer.body


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", ""])
@pytest.mark.parametrize(
    "path",
    [
        "/v1/uploads/",
        "//v1/compose",
        "/V1/compose",
        "/v1/compose/..;/compose",
        "/v1/%63ompose",
        "/v1/compose#",
        "/v1",
    ],
)
def test_no_other_door_leads_to_a_route(kb: Cloud, path: str, method: str) -> None:
    body = json.dumps({"uri": kb.uri("hidden/terms.md")})
    answer = send(http_request(method, path, body, authorizer=APP))
    assert answer.status in (400, 403, 404)
    assert PLANTED not in answer.body
