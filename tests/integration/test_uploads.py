"""Uploads (section 8, Z-5): writers get a URL that is good for one document and nothing else."""

import hashlib
import json
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.session import get_session

from groundwire.adapters.s3_uploads import S3UploadSigner
from groundwire.errors import Unavailable
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from groundwire.settings import StorageRootSettings
from groundwire.uploading import UploadTerms
from tests.captured import captured, http_request
from tests.cloud import REGION, Cloud, lambda_context
from tests.contracts.test_s3_urls import ending_in
from tests.integration.driving import Answer
from tests.integration.logs import writing
from tests.integration.test_access import iam, jwt, role
from tests.presigned import refusal
from uploads.handler import handler

BODY = "# Kylmävalitus\n".encode()
HASH = hashlib.sha256(BODY).hexdigest()
APP, WRITER = "arn:aws:iam::111122223333:role/app", "arn:aws:iam::111122223333:role/writer"
"""The captured caller, and another."""


def ask(body: Any, authorizer: Any = ...) -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    answer = handler(http_request("POST", "/v1/uploads", text, authorizer=authorizer), lambda_context())
    return Answer(answer["statusCode"], answer["body"], dict(answer.get("headers") or {}))


def leave(path: str = "sops/a.md", authorizer: Any = ..., **more: Any) -> Any:
    answer = ask({"path": path, **more}, authorizer)
    assert answer.status == 200, answer.body
    return answer.json


def put(url: str, headers: Mapping[str, str], body: bytes = BODY) -> int:
    request = urllib.request.Request(url, body, dict(headers), method="PUT")
    with urllib.request.urlopen(request, timeout=10) as response:
        return int(response.status)


def problems(answer: Answer) -> list[tuple[str, str]]:
    assert (answer.status, answer.content_type) == (400, "application/problem+json")
    return [(each["field"], each["problem"]) for each in answer.json["errors"]]


CALLERS: dict[str, tuple[str, Any, bool]] = {
    "anyone": ("*", role("app"), True),
    "nobody": ("", role("app"), False),
    "the role of a session": (WRITER, role("writer"), True),
    "another role": (WRITER, role("app", "writer"), False),
    "a user": ("arn:aws:iam::111122223333:user/ada", iam("arn:aws:iam::111122223333:user/ada"), True),
    "a group": ("group:authors", jwt(groups="[staff authors]"), True),
    "another group": ("group:authors", jwt(groups="[staff]"), False),
    "a scope": ("scope:kb.write", jwt(["kb.write"]), True),
    "a group named like a scope": ("scope:kb.write", jwt(groups="[kb.write]"), False),
    "the captured JWT caller": (
        "group:77aa-everyone",
        captured("http_api_jwt")["requestContext"]["authorizer"],
        True,
    ),
}


ROOTS = {entry: f"w{n}" for n, entry in enumerate(sorted({entry for entry, _, _ in CALLERS.values()}))}
"""A root of its own for each entry of `writers`."""


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    """A root that two roles may write to, and others nested in it; every caller may read them all."""
    shared_cloud.wire(
        shared_cloud.root(writers=(APP, WRITER)),
        shared_cloud.root(name="hr", prefix="hr", writers=(WRITER,), inbox_prefix="post/"),
        shared_cloud.root(name="closed", prefix="closed"),
        StorageRootSettings(name="labs", source_type="gcs", bucket="labs", readers=("*",)),
        *(
            shared_cloud.root(name=name, prefix=name, writers=(entry,) if entry else ())
            for entry, name in ROOTS.items()
        ),
    )
    return shared_cloud


@pytest.mark.parametrize(
    "path",
    ["sops/a.md", "./x/../sops/b.md", "a b/+%2D#?&é'(x)*.md", "e\u0301/\u00e9.md", "%.md", ".dot", "inbox"],
)
def test_an_upload_arrives_at_its_place(kb: Cloud, path: str) -> None:
    given = leave(path, root="kb", sizeBytes=len(BODY), sha256=HASH)
    assert given["method"] == "PUT"
    assert put(given["url"], given["headers"]) == 200
    key = path.removeprefix("./x/../")
    assert given["uri"] == kb.uri(key)
    stored = kb.s3.get_object(Bucket=kb.bucket, Key=key)
    assert stored["Body"].read() == BODY
    assert stored["ContentType"] == given["headers"]["Content-Type"]


@pytest.mark.parametrize(
    ("path", "given", "expected"),
    [
        ("a.md", None, "text/markdown"),
        ("a.png", None, "image/png"),
        ("a", None, "application/octet-stream"),
        ("a.md", "text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("a.pdf", "application/pdf", "application/pdf"),
    ],
)
def test_the_type_is_the_callers_or_the_extensions(kb: Cloud, path: str, given: Any, expected: str) -> None:
    more = {"contentType": given} if given else {}
    assert leave(path, root="kb", **more)["headers"] == {"Content-Type": expected}


def test_an_url_is_good_for_what_was_agreed_on_and_nothing_else(kb: Cloud) -> None:
    given = leave(root="kb", sizeBytes=len(BODY), sha256=HASH)
    url, headers = given["url"], given["headers"]
    assert set(headers) == {"Content-Type", "x-amz-checksum-sha256"}
    assert refusal(url, "PUT", headers, BODY) is None
    elsewhere = url.replace("/sops/a.md", "/sops/b.md")
    assert elsewhere != url
    mismatch = "SignatureDoesNotMatch"
    assert refusal(elsewhere, "PUT", headers, BODY) == mismatch
    assert refusal(url.replace("Expires=600", "Expires=601"), "PUT", headers, BODY) == mismatch
    for method in ("GET", "DELETE", "POST"):
        assert refusal(url, method, headers, BODY) == mismatch
    assert refusal(url, "PUT", headers | {"Content-Type": "text/html"}, BODY) == mismatch
    assert refusal(url, "PUT", {"Content-Type": headers["Content-Type"]}, BODY) == mismatch
    assert refusal(url, "PUT", headers | {"x-amz-checksum-sha256": "AAAA"}, BODY) == mismatch
    assert refusal(url, "PUT", headers, BODY + b"x") == mismatch
    assert refusal(url, "PUT", headers, BODY.upper()) == "BadDigest"
    assert refusal(url, "PUT", headers | {"x-amz-acl": "public-read"}, BODY) == (
        "AccessDenied: not signed: x-amz-acl"
    )


def test_what_was_not_agreed_on_is_free(kb: Cloud) -> None:
    given = leave(root="kb")
    assert refusal(given["url"], "PUT", given["headers"], BODY) is None
    assert refusal(given["url"], "PUT", given["headers"], BODY * 2) is None
    assert refusal(given["url"], "PUT", {}, BODY) == "SignatureDoesNotMatch"
    empty = leave(root="kb", size_bytes=0)
    assert refusal(empty["url"], "PUT", empty["headers"], b"") is None
    assert refusal(empty["url"], "PUT", empty["headers"], b"x") == "SignatureDoesNotMatch"


def test_it_ends_in_minutes_and_when_it_says(kb: Cloud) -> None:
    given = leave(root="kb")
    query = {name: values[0] for name, values in parse_qs(urlsplit(given["url"]).query).items()}
    assert query["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256"
    signed = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    ends = signed + timedelta(seconds=int(query["X-Amz-Expires"]))
    assert datetime.fromisoformat(given["expiresAt"]) <= ends
    assert int(query["X-Amz-Expires"]) <= 600


@pytest.mark.parametrize(("entry", "caller", "allowed"), CALLERS.values(), ids=CALLERS.keys())
def test_who_may_write(kb: Cloud, entry: str, caller: Any, allowed: bool) -> None:
    answer = ask({"path": "a.md", "root": ROOTS[entry]}, caller)
    if allowed:
        assert answer.json["uri"] == kb.uri(f"{ROOTS[entry]}/a.md")
    else:
        ((field, _),) = problems(answer)
        assert field == "root"


def test_without_an_authorizer_nobody_is_anybody(kb: Cloud) -> None:
    answer = ask({"path": "a.md", "root": ROOTS["*"]}, None)
    assert (answer.status, answer.json["code"]) == (403, "forbidden")


def test_the_only_root_need_not_be_named(kb: Cloud) -> None:
    anyone = role("somebody")
    assert leave("a.md", anyone)["uri"] == kb.uri(f"{ROOTS['*']}/a.md")
    assert problems(ask({"path": "a.md"})) == [("root", f"must be given: kb, {ROOTS['*']}")]


@pytest.mark.parametrize("name", ["closed", "hr", "labs", "nowhere", "", "KB", "kb/", "*"])
def test_a_root_that_is_not_yours_looks_like_none(kb: Cloud, name: str) -> None:
    known = f"kb, {ROOTS['*']}"
    expected = f"is no storage root that you may use; those are: {known}"
    assert problems(ask({"path": "a.md", "root": name})) == [("root", expected)]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/a.md", "begins with a slash"),
        ("//host/a.md", "begins with a slash"),
        ("s3://bucket/a.md", "begins like a URL"),
        ("C:a.md", "begins like a URL"),
        ("a\\b.md", "holds a backslash"),
        ("a\x00.md", "cannot be seen"),
        ("a\r\nHost: evil.md", "cannot be seen"),
        ("a\u202e.md", "cannot be seen"),
        ("../a.md", "leads out of the storage root"),
        ("a/../../a.md", "leads out of the storage root"),
        ("a/%2e%2e/%2E%2e/b.md", "behind percent codes"),
        ("a%2fb.md", "behind percent codes"),
        ("%252e%252e/b.md", "behind percent codes"),
        ("", "names a folder"),
        (".", "names a folder"),
        ("sops/", "names a folder"),
        ("a//b.md", "an empty segment"),
        ("a" * 1025, "too long"),
        ("inbox/a.md", "lies in an inbox"),
        ("sops/../inbox/a.md", "lies in an inbox"),
        ("hr/a.md", "a storage root of its own"),
        ("x/../hr/a.md", "a storage root of its own"),
        ("hr/post/a.md", "a storage root of its own"),
        ("closed/a.md", "a storage root of its own"),
    ],
)
def test_paths_that_lead_nowhere_are_refused_by_name(kb: Cloud, path: str, problem: str) -> None:
    ((field, what),) = problems(ask({"path": path, "root": "kb"}))
    assert field == "path"
    assert problem in what


def test_a_nested_root_has_writers_and_an_inbox_of_its_own(kb: Cloud) -> None:
    writer = role("writer")
    assert leave("hr/a.md", writer, root="kb")["uri"] == leave("a.md", writer, root="hr")["uri"]
    assert leave("hr/inbox/a.md", writer, root="kb")["uri"] == kb.uri("hr/inbox/a.md")
    for path, root in (("hr/post/a.md", "kb"), ("post/a.md", "hr")):
        ((field, what),) = problems(ask({"path": path, "root": root}, writer))
        assert (field, what[:16]) == ("path", "lies in an inbox")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("path", 7),
        ("path", "\ud800.md"),
        ("root", ["kb"]),
        ("sizeBytes", -1),
        ("sizeBytes", 25 * 1024 * 1024 + 1),
        ("sizeBytes", "12"),
        ("sizeBytes", True),
        ("sizeBytes", 1.0),
        ("sha256", HASH.upper()),
        ("sha256", HASH[1:]),
        ("sha256", HASH + "\n"),
        ("contentType", "markdown"),
        ("contentType", "text/plain\r\nx-amz-acl: public-read"),
        ("contentType", "text/plain\n"),
        ("contentType", "text/pläin"),
        # What botocore takes for its own and leaves out of the signature.
        ("contentType", "application/x-www-form-urlencoded; charset=utf-8"),
        ("contentType", "text/" + "a" * 123),
        ("acl", "public-read"),
    ],
)
def test_what_cannot_be_agreed_on_is_named(kb: Cloud, field: str, value: Any) -> None:
    assert [each for each, _ in problems(ask({"path": "a.md", "root": "kb", field: value}))] == [field]


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '"a.md"', "[" * 100_000, '{"path": 1e999}'])
def test_nothing_that_can_be_sent_is_an_error_of_ours(kb: Cloud, body: str) -> None:
    assert ask(body).status == 400


def test_who_was_given_leave_is_on_record_and_the_leave_is_not(kb: Cloud) -> None:
    with writing() as written:
        given = leave("sops/recorded.md", root="kb", sha256=HASH)
        ask({"path": "hr/a.md", "root": "kb"})
    secret = parse_qs(urlsplit(given["url"]).query)["X-Amz-Signature"][0]
    assert secret not in written.text
    assert "X-Amz-" not in written.text
    records = [json.loads(line) for line in written.text.splitlines() if '"audit"' in line]
    assert [(each["action"], each["principal"], each["outcome"]) for each in records] == [
        ("upload", APP, "answered"),
        ("upload", APP, "invalid_request"),
    ]
    assert records[0]["documents"] == [[given["uri"], None]]
    assert "documents" not in records[1]


def test_in_aws_the_url_is_the_buckets_own_and_ends_with_the_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    inner: Any = get_session()
    inner._credentials = ending_in(200, 200)
    signer = S3UploadSigner(boto3.Session(botocore_session=inner))
    root = StorageRoot("kb", "s3", "handbook", region=REGION)
    given = signer.sign(Location(root, "a b.md"), UploadTerms("text/markdown"))
    parts = urlsplit(given.url)
    assert (parts.scheme, parts.netloc, parts.path) == (
        "https",
        f"handbook.s3.{REGION}.amazonaws.com",
        "/a%20b.md",
    )
    query = parse_qs(parts.query)
    assert (query["X-Amz-Expires"], query["X-Amz-Security-Token"]) == (["120"], ["the-token"])
    assert refusal(given.url, "PUT", given.headers, BODY) is None


def test_without_credentials_there_is_no_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    signer = S3UploadSigner(boto3.Session(region_name=REGION))
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: None)
    with pytest.raises(Unavailable, match="NoCredentialsError"):
        signer.sign(Location(StorageRoot("kb", "s3", "kb"), "a.md"), UploadTerms("text/markdown"))
