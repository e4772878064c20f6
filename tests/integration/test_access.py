"""Who may read what (Z-1): to whom is no reader, a document looks as if it were not there."""

import json
from typing import Any

import pytest

from tests.captured import http_request
from tests.cloud import Cloud
from tests.integration.driving import Answer, get, index, post, send, upload
from tests.integration.logs import writing

ARN = "arn:aws:iam::111122223333:"
READER = "arn:aws:iam::111122223333:role/reader"
OPEN_PATHS = ("/healthz", "/openapi.json", "/docs")


def iam(arn: str) -> dict[str, Any]:
    return {"iam": {"userArn": arn, "accountId": "111122223333", "callerId": "x", "userId": "x"}}


def role(name: str, session: str = "session") -> dict[str, Any]:
    return iam(f"arn:aws:sts::111122223333:assumed-role/{name}/{session}")


def jwt(scopes: list[str] | None = None, **claims: str) -> dict[str, Any]:
    return {"jwt": {"claims": {"sub": "ada", "iss": "https://login.example.com"} | claims, "scopes": scopes}}


def every_request(uri: str, authorizer: Any) -> dict[str, Answer]:
    """One of each request about a document."""
    return {
        "ground": post("/v1/ground", {"sources": [uri]}, authorizer),
        "ground by pointer": post("/v1/ground", {"sources": [by_pointer(uri)]}, authorizer),
        "compose": post("/v1/compose", {"uri": uri}, authorizer),
        "compose by pointer": post("/v1/compose", {"pointer": by_pointer(uri)}, authorizer),
        "documents": get("/v1/documents", authorizer, uri=uri),
        "includes": get("/v1/graph", authorizer, uri=uri),
        "dependents": get("/v1/graph", authorizer, uri=uri, direction="dependents"),
    }


def by_pointer(uri: str) -> dict[str, str]:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return {"source_type": "s3", "s3_bucket": bucket, "s3_key": key}


def without_times(answer: Answer) -> tuple[int, str, dict[str, str]]:
    """The whole answer but for how long it took; the rest of the text stays as it is, byte for byte."""
    shape = json.loads(answer.body)
    times = shape.get("timings")
    body = answer.body.replace(json.dumps(times, separators=(",", ":")), "") if times else answer.body
    assert "totalMs" not in body
    headers = {name: value for name, value in answer.headers.items() if name.lower() != "content-length"}
    return answer.status, body, headers


def may_read(cloud: Cloud, authorizer: Any, key: str = "a.md") -> bool:
    """Whether each request answers; they must agree."""
    found = {
        answer.status == 200 and (name[:6] != "ground" or bool(answer.json["allDocumentsForAttachment"]))
        for name, answer in every_request(cloud.uri(key), authorizer).items()
    }
    assert len(found) == 1, found
    return found.pop()


@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {},
        {"iam": {}},
        {"iam": {"userArn": None}},
        {"iam": {"userArn": ""}},
        {"jwt": {}},
        {"jwt": {"claims": {}}},
        {"jwt": {"claims": {"iss": "x"}, "scopes": ["kb.read"]}},
        {"jwt": {"claims": None}},
        {"lambda": {"principalId": "ada"}},
    ],
    ids=str,
)
def test_nobody_is_refused(authorizer: Any) -> None:
    for answer in every_request("s3://facilities-kb/a.md", authorizer).values():
        assert (answer.status, answer.json["code"]) == (403, "forbidden")
        assert answer.content_type == "application/problem+json"


def test_nobody_is_refused_before_anything_else_is_judged(cloud: Cloud) -> None:
    requests = [
        http_request("POST", "/v1/compose", "{}", authorizer=None),
        http_request("POST", "/v1/ground", '{"sources": 7}', authorizer=None),
        http_request("GET", "/v1/documents", authorizer=None),
        http_request("GET", "/v1/graph", query={"uri": "x", "depth": "x"}, authorizer=None),
    ]
    assert [send(request).status in (400, 403) for request in requests] == [True] * 4
    for request in requests:
        assert cloud.bucket not in send(request).body


def test_what_the_request_says_of_the_caller_grants_nothing(cloud: Cloud) -> None:
    cloud.wire(cloud.root(readers=(READER, "group:staff")))
    upload(cloud, {"a.md": "text"})
    body = {"uri": cloud.uri("a.md"), "ctx": {"userId": READER, "auditingId": "group:staff"}}
    headers = {"x-amzn-principal": READER, "authorization": READER, "x-groups": "staff"}
    assert post("/v1/compose", body, role("app"), headers).status == 404


def test_a_caller_who_is_no_reader_sees_nothing_at_all(cloud: Cloud) -> None:
    """Same URI, same caller: first it is there and unreadable, then it is not there."""
    cloud.wire(cloud.root(readers=(READER,)))
    including = "---\nincludes: [a.md]\n---\n"
    upload(cloud, {"a.md": "---\nincludes: [b.md]\n---\n", "b.md": "text", "c.md": including})
    unreadable = every_request(cloud.uri("a.md"), role("app"))
    cloud.wire(cloud.root(readers=("*",)))
    cloud.delete("a.md")
    index(cloud, "a.md", name="object_deleted", sequencer="617F08299329D18A")
    missing = every_request(cloud.uri("a.md"), role("app"))
    for name, answer in unreadable.items():
        assert without_times(answer) == without_times(missing[name]), name


def test_an_unknown_bucket_looks_like_a_missing_document(cloud: Cloud) -> None:
    elsewhere = every_request("s3://somebody-elses/a.md", role("app"))
    missing = every_request(cloud.uri("gone.md"), role("app"))
    for name in ("compose", "documents", "includes", "dependents"):
        assert without_times(elsewhere[name]) == without_times(missing[name])


def test_unreadable_and_missing_differ_in_the_audit_record(cloud: Cloud) -> None:
    cloud.wire(cloud.root(readers=(READER,)))
    upload(cloud, {"a.md": "text"})
    with writing() as written:
        get("/v1/documents", role("app"), uri=cloud.uri("a.md"))
        denied = written.text
        written.clear()
        get("/v1/documents", role("reader"), uri=cloud.uri("gone.md"))
    assert '"outcome":"forbidden"' in denied
    assert '"outcome":"not_found"' in written.text


def test_an_include_is_checked_like_a_root(cloud: Cloud) -> None:
    """A nested root with readers of its own: what lies there is not there for the others."""
    cloud.wire(cloud.root(), cloud.root(name="secret", prefix="secret", readers=(READER,)))
    upload(cloud, {"a.md": "---\nincludes: [secret/b.md]\n---\n", "secret/b.md": "hush"})
    as_app = post("/v1/compose", {"uri": cloud.uri("a.md")}, role("app"))
    assert "hush" not in as_app.body
    assert [(each["reason"], each["code"], each["detail"]) for each in as_app.json["skipped"]] == [
        ("fetch_failed", "not_found", "no such document")
    ]
    cloud.delete("secret/b.md")
    gone = post("/v1/compose", {"uri": cloud.uri("a.md")}, role("app"))
    assert without_times(gone) == without_times(as_app)


# -- what stays open ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", OPEN_PATHS)
def test_the_description_needs_no_caller(cloud: Cloud, path: str) -> None:
    assert send(http_request("GET", path, authorizer=None)).status == 200
