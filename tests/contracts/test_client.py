"""The client over real HTTP, against an API that is slow, busy, broken, or not the API at all."""

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from groundwire.client import GroundwireClient, IamAuth
from groundwire.client_answers import Dependent
from groundwire.errors import (
    ConfigurationError,
    ContentChanged,
    ContentUnavailable,
    GroundwireApiError,
    GroundwireUnavailable,
    IncompleteBundle,
)
from groundwire.limits import RESPONSE_BYTES
from local.servers.loopback import Request
from tests.contracts.apis import BODY, Api, bundle, document, problem, reply, result, skip

BUSY = {"Retry_After": "7"}


class Time:
    """A clock that only waiting turns."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def client(api: Api, time: Time | None = None, **options: Any) -> GroundwireClient:
    time = time or Time()
    return GroundwireClient(api.url, clock=lambda: time.now, sleep=time.sleep, **options)


def asked(api: Api) -> Any:
    """The body of the last request."""
    return api.asked[-1].json()


# -- what is sent -------------------------------------------------------------------------------


def test_a_request_says_what_was_said_and_nothing_else(api: Api) -> None:
    api.answers = [reply(result(document()))]
    with client(api) as groundwire:
        groundwire.ground(["s3://kb/a.md"])
        assert (api.asked[0].method, api.asked[0].path) == ("POST", "/v1/ground")
        assert asked(api) == {"sources": ["s3://kb/a.md"]}
        groundwire.ground(
            None,
            user_id=0,
            auditing_id="a-1",
            max_documents=3,
            allowed_source_types=("s3",),
            composition_policy={"maxDepth": 0},
            prepare={"useFilesApi": "auto"},
            dry_run=True,
        )
    assert asked(api) == {
        "groundingMetadata": {},
        "ctx": {"userId": 0, "auditingId": "a-1"},
        "overrides": {
            "maxDocuments": 3,
            "allowedSourceTypes": ["s3"],
            "compositionPolicy": {"maxDepth": 0},
            "prepareDocumentOptions": {"useFilesApi": "auto"},
        },
        "dryRun": True,
    }


def test_a_bearer_token_is_asked_for_each_time(api: Api) -> None:
    api.answers = [reply(result())]
    tokens = iter(["one", "two"])
    with client(api, token=lambda: next(tokens)) as groundwire:
        groundwire.ground(None)
        groundwire.ground(None)
    assert [each.headers["Authorization"] for each in api.asked] == ["Bearer one", "Bearer two"]


URIS = ["s3://kb/a.md", "s3://kb/+%20 é~'(x)*&=?#.md", "s3://kb/\U0001f4a9/a:b@c.md"]


@pytest.mark.parametrize("uri", URIS)
def test_a_signature_is_of_what_is_sent(api: Api, uri: str) -> None:
    """API Gateway's part of it: the signature made again from the request that arrived."""
    api.answers = [reply({"uri": uri, "direction": "includes", "depth": 2, "nodes": [], "edges": []})]
    session = boto3.Session("AKIDEXAMPLE", "secret", "session-token", region_name="eu-north-1")
    auth = IamAuth(session=session)
    with client(api, auth=auth) as groundwire, pytest.raises(GroundwireApiError, match="truncated"):
        groundwire.graph(uri)
    (request,) = api.asked
    assert request.query["uri"] == uri
    assert signature_of(api, request) == request.headers["Authorization"].rpartition("Signature=")[2]
    api.answers = [reply(result())]
    with client(api, auth=auth) as groundwire:
        groundwire.ground([uri])
    assert signature_of(api, api.asked[-1]) in api.asked[-1].headers["Authorization"]


def signature_of(api: Api, request: Request) -> str:
    scope = request.headers["Authorization"].partition("Credential=")[2].partition(",")[0]
    assert scope.split("/")[0] == "AKIDEXAMPLE"
    assert scope.split("/")[2:] == ["eu-north-1", "execute-api", "aws4_request"]
    signed = request.headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(signed)
    headers = {name: request.headers[name] for name in signed}
    # As AWS does it: decoded, and encoded again by its own rule.
    query = f"?{urlencode(request.query, quote_via=quote, safe='')}" if request.query else ""
    again = AWSRequest(request.method, api.url + request.path + query, headers, request.body)
    again.context["timestamp"] = request.headers["X-Amz-Date"]
    auth = SigV4Auth(Credentials("AKIDEXAMPLE", "secret", "session-token"), "execute-api", "eu-north-1")
    return str(auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again))


@pytest.mark.parametrize(
    ("url", "options", "what"),
    [
        ("http://api.example.com", {}, "https"),
        ("ftp://api.example.com", {}, "https"),
        ("api.example.com", {}, "address"),
        ("https://a:b@api.example.com", {}, "address"),
        ("https://api.example.com/?a=b", {}, "address"),
        ("https://api.example.com", {"auth": IamAuth(), "token": "t"}, "either"),
        ("https://api.example.com", {"timeout_s": 0}, "positive"),
        ("https://api.example.com", {"retries": -1}, "negative"),
    ],
)
def test_what_contradicts_itself_is_refused_before_anything_is_sent(
    url: str, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(ConfigurationError, match=what):
        GroundwireClient(url, **options)


def test_the_region_is_the_apis_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    from groundwire.adapters.sigv4 import SigV4Signer

    def region(host: str, **options: Any) -> str:
        url = f"https://{host}/v1/ground"
        signed = SigV4Signer(host, **options).headers("POST", url, {}, b"")["Authorization"]
        return signed.split("/")[2]

    aws = "a1b2c3.execute-api.ap-south-1.amazonaws.com"
    assert region(aws) == "ap-south-1"
    assert region(aws + ".cn") == "ap-south-1"
    assert region(aws, region="eu-west-3") == "eu-west-3"
    assert region("api.example.com") == "eu-west-1", "the session's"
    assert region(f"{aws}.example.com") == "eu-west-1"
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_REGION", "sa-east-1")
    assert region("api.example.com") == "sa-east-1", "which botocore does not look at"
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(ConfigurationError, match="set AWS_REGION"):
        region("api.example.com")


def test_without_credentials_nothing_is_sent(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    with client(api, auth=IamAuth()) as groundwire, pytest.raises(ConfigurationError, match="credentials"):
        groundwire.ground(None)
    assert api.asked == []


# -- busy, slow, broken -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_who_says_when_is_asked_again_then(api: Api, status: int) -> None:
    time = Time()
    api.answers = [reply({}, status, **BUSY), reply(result(document()))]
    with client(api, time) as groundwire:
        assert groundwire.ground("s3://kb/a.md").complete
    assert (time.waits, len(api.asked)) == ([7.0], 2)
    assert api.asked[0].body == api.asked[1].body


def test_who_is_unavailable_for_ever_is_asked_three_times(api: Api) -> None:
    time = Time()
    api.answers = [problem(503, "throttled")]
    with client(api, time) as groundwire, pytest.raises(GroundwireApiError) as caught:
        groundwire.document("s3://kb/a.md")
    assert (caught.value.status, caught.value.code) == (503, "throttled")
    assert len(api.asked) == 3
    assert len(time.waits) == 2
    assert time.waits[0] < time.waits[1] * 2 < 2.0


@pytest.mark.parametrize("later", ["31", "Fri, 01 Jan 2999 00:00:00 GMT"])
def test_nobody_waits_longer_than_the_call_may_take(api: Api, later: str) -> None:
    time = Time()
    api.answers = [reply({"message": "Too Many Requests"}, 429, Retry_After=later)]
    with client(api, time) as groundwire, pytest.raises(GroundwireApiError) as caught:
        groundwire.ground(None)
    assert (caught.value.status, caught.value.code) == (429, "http_429")
    assert caught.value.detail == "Too Many Requests"
    assert (time.waits, len(api.asked)) == ([], 1)


@pytest.mark.parametrize("later", ["soon", "", "-3", "Mon, 02 Mar 2020 08:15:00 GMT"])
def test_nonsense_and_the_past_make_no_long_wait(api: Api, later: str) -> None:
    time = Time()
    api.answers = [reply({}, 503, Retry_After=later), reply(result())]
    with client(api, time) as groundwire:
        groundwire.ground(None)
    assert all(each <= 0.25 for each in time.waits)
    assert len(api.asked) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 500, 502, 504])
def test_nothing_else_is_asked_again(api: Api, status: int) -> None:
    api.answers = [problem(status, "no", headers="x"), reply(result())]
    with client(api) as groundwire, pytest.raises(GroundwireApiError) as caught:
        groundwire.ground(None)
    assert (caught.value.status, len(api.asked)) == (status, 1)


@pytest.mark.parametrize("behaviour", ["hang", "drip"])
def test_a_call_ends_with_its_time(api: Api, behaviour: Any) -> None:
    api.script = [behaviour]
    with (
        GroundwireClient(api.url, timeout_s=1.0) as groundwire,
        pytest.raises(GroundwireUnavailable, match="in time"),
    ):
        groundwire.ground(None)
    assert len(api.requests) == 1


def test_a_broken_connection_is_no_answer_and_is_not_tried_again(api: Api) -> None:
    api.script = ["reset"]
    with client(api) as groundwire, pytest.raises(GroundwireUnavailable):
        groundwire.ground(None)
    assert len(api.requests) == 1


def test_nobody_listens() -> None:
    with GroundwireClient("http://127.0.0.1:1") as groundwire, pytest.raises(GroundwireUnavailable):
        groundwire.ground(None)


# -- refusals and nonsense ----------------------------------------------------------------------


def test_a_problem_is_told_whole(api: Api) -> None:
    errors = [{"field": "overrides.maxDepth", "problem": "must be at least 0"}]
    api.answers = [problem(400, "invalid_request", errors=errors)]
    with client(api) as groundwire, pytest.raises(GroundwireApiError) as caught:
        groundwire.ground(None)
    error = caught.value
    assert (error.status, error.code, error.title, error.detail) == (400, "invalid_request", "Refused", "no")
    assert error.errors == tuple(errors)
    assert str(error) == "400 invalid_request: no"


HTML = b"<html><h1>502 Bad Gateway</h1><p>secret</p></html>"


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (reply(HTML, 502, "text/html"), "its answer is text/html, not problem details"),
        (reply(b"", 502, ""), "its answer is of no type, not problem details"),
        (reply(b'{"code": "x', 502), "its answer is cut off or no JSON"),
        (reply(b"[1]", 502), "its answer is no object"),
    ],
)
def test_an_error_page_is_not_quoted(api: Api, answer: Any, detail: str) -> None:
    api.answers = [answer]
    with client(api) as groundwire, pytest.raises(GroundwireApiError) as caught:
        groundwire.ground(None)
    assert (caught.value.status, caught.value.code, caught.value.detail) == (502, "http_502", detail)


def wrong(**changes: Any) -> Any:
    return reply(result(document() | changes))


@pytest.mark.parametrize(
    "answer",
    [
        reply(json.dumps(result(document())).encode()[:-20]),
        reply(HTML, 200, "text/html"),
        reply(b""),
        reply([]),
        reply({}),
        reply({"message": "hello"}),
        wrong(sizeBytes="many"),
        wrong(text=["secret"]),
        wrong(pointer={"source_type": "ftp"}),
        wrong(pointer="secret"),
        reply(b'{"complete": "\\ud800"}'),
    ],
)
def test_an_answer_of_another_shape_is_an_error_that_quotes_nothing(api: Api, answer: Any) -> None:
    api.answers = [answer]
    with client(api) as groundwire:
        for call in (groundwire.ground, groundwire.compose, groundwire.document):
            with pytest.raises(GroundwireApiError) as caught:
                call("s3://kb/a.md")
            assert caught.value.code == "unreadable_answer"
            assert "secret" not in str(caught.value)


def test_a_redirect_is_refused_and_gets_no_token(api: Api) -> None:
    with Api() as other:
        api.answers = [reply({}, 307, Location=other.url + "/v1/ground")]
        with client(api, token="secret") as groundwire, pytest.raises(GroundwireApiError) as caught:
            groundwire.ground(None)
        assert (caught.value.status, caught.value.code) == (307, "http_307")
        assert "redirect" in caught.value.detail
        assert other.requests == []


def test_an_answer_longer_than_any_is_not_read(api: Api) -> None:
    api.answers = [reply(b" " * (RESPONSE_BYTES + 1))]
    with client(api) as groundwire, pytest.raises(GroundwireUnavailable, match="longer"):
        groundwire.ground(None)


def test_cookies_are_not_kept(api: Api) -> None:
    api.answers = [reply(result(), Set_Cookie="a=b")]
    with client(api) as groundwire:
        groundwire.ground(None)
        groundwire.ground(None)
    assert api.asked[1].headers["Cookie"] is None


# -- bodies behind URLs -------------------------------------------------------------------------


def download(
    api: Api, body: bytes | str = BODY, path: str = "/bucket/a.md?X-Amz-Signature=s3cr3t", **more: Any
) -> Any:
    url = {"url": api.url + path, "expiresAt": "2026-03-02T08:15:00+00:00"}
    return reply(result(document(body=body, downloadUrl=url) | more))


def test_a_body_behind_a_url_is_fetched_once_and_without_the_token(api: Api) -> None:
    api.answers = [download(api), reply(BODY.encode(), 200, "text/markdown")]
    with client(api, token="secret") as groundwire:
        (found,) = groundwire.ground("s3://kb/a.md").documents
        assert len(api.asked) == 1, "not before it is needed"
        assert found.content() == BODY.encode()
        assert found.content() == found.as_text.encode() if found.as_text else False
    assert [each.headers["Authorization"] for each in api.asked] == ["Bearer secret", None]
    assert "s3cr3t" not in repr(found)


@pytest.mark.parametrize(
    ("answer", "error", "what"),
    [
        (reply(b"# Warm complaint"), ContentChanged, "changed"),
        (reply(BODY.encode() + b"x"), ContentChanged, "longer"),
        (reply(b""), ContentChanged, "changed"),
        (reply(BODY.encode(), 302, Location="http://127.0.0.1:1/"), ContentUnavailable, "302"),
        (reply(b"<Error/>", 403), ContentUnavailable, "403"),
        (reply(b"<Error/>", 503), ContentUnavailable, "503"),
    ],
)
def test_other_bytes_than_were_grounded_are_an_error(
    api: Api, answer: Any, error: type[ContentUnavailable], what: str
) -> None:
    api.answers = [download(api), answer]
    with client(api) as groundwire:
        grounded = groundwire.ground("s3://kb/a.md")
        for read in (grounded.documents[0].content, grounded.to_text, grounded.to_gemini_parts):
            with pytest.raises(error, match=what) as caught:
                read()
            assert caught.value.uri == "s3://kb/a.md"
            assert "s3cr3t" not in str(caught.value)


def test_a_download_that_hangs_ends_with_its_time(api: Api) -> None:
    api.answers = [download(api)]
    with GroundwireClient(api.url, timeout_s=1.0) as groundwire:
        (found,) = groundwire.ground("s3://kb/a.md").documents
        api.script = ["hang"]
        with pytest.raises(GroundwireUnavailable, match="in time"):
            found.content()


@pytest.mark.parametrize(
    "url", ["http://bucket.example.com/a.md", "file:///etc/passwd", "https://", "http://["]
)
def test_a_download_elsewhere_is_encrypted_or_not_made(api: Api, url: str) -> None:
    link = {"url": url, "expiresAt": "2026-03-02T08:15:00+00:00"}
    api.answers = [reply(result(document(downloadUrl=link)))]
    with client(api) as groundwire:
        (found,) = groundwire.ground("s3://kb/a.md").documents
        with pytest.raises(ContentUnavailable, match="https"):
            found.content()


def test_a_client_that_is_closed_says_so(api: Api) -> None:
    api.answers = [download(api)]
    with client(api) as groundwire:
        grounded = groundwire.ground("s3://kb/a.md")
    for ask in (grounded.documents[0].content, grounded.to_text, lambda: groundwire.ground(None)):
        with pytest.raises(ConfigurationError, match="closed"):
            ask()
    assert len(api.asked) == 1


# -- the other calls ----------------------------------------------------------------------------


def test_compose_is_a_result_of_one_bundle(api: Api) -> None:
    included = document("s3://kb/b.png", b"\x89", geminiDocument={"mimeType": "image/png", "data": "iQ=="})
    whole = bundle(document(), skip("fetch_failed", "not_found"), included=[included])
    api.answers = [reply(whole)]
    with client(api) as groundwire:
        found = groundwire.compose("s3://kb/a.md", composition_policy="off", user_id=1)
    assert asked(api) == {
        "uri": "s3://kb/a.md",
        "ctx": {"userId": 1},
        "overrides": {"compositionPolicy": None},
    }
    assert [each.content() for each in found.documents] == [BODY.encode(), base64.b64decode("iQ==")]
    assert found.bundles
    assert [each.uri for each in found.bundles[0].included] == ["s3://kb/b.png"]
    assert found.sources == ()
    with pytest.raises(IncompleteBundle) as caught:
        found.require_complete()
    assert caught.value.missing == found.missing
    assert [each.code for each in found.missing] == ["not_found"]


def test_dependents_come_page_by_page_as_they_are_needed(api: Api) -> None:
    def page(cursor: str | None, *uris: str) -> Any:
        found = [{"uri": uri, "title": None, "verdict": "valid", "distance": 1, "why": [uri]} for uri in uris]
        return reply({"uri": "s3://kb/a.md", "dependents": found, "cursor": cursor})

    api.answers = [page("c/1+", "s3://kb/b.md"), page("2"), page(None, "s3://kb/c.md")]
    with client(api) as groundwire:
        found = groundwire.dependents("s3://kb/a.md", transitive=True)
        assert next(found) == Dependent("s3://kb/b.md", "valid", 1, ("s3://kb/b.md",))
        assert len(api.asked) == 1
        assert [each.uri for each in found] == ["s3://kb/c.md"]
    assert [each.query.get("cursor") for each in api.asked] == [None, "c/1+", "2"]
    assert {each.query["transitive"] for each in api.asked} == {"true"}


def test_validate_asks_before_anything_is_uploaded(api: Api) -> None:
    finding = {
        "code": "target_missing",
        "severity": "error",
        "line": 3,
        "column": 5,
        "message": "m",
        "hint": "",
    }
    include = {"raw": "b.md", "index": 0, "line": 3, "target": "s3://kb/b.md", "code": "target_missing"}
    answer = {"path": "a.md", "uri": "s3://kb/a.md", "verdict": "invalid"}
    api.answers = [reply(answer | {"findings": [finding], "includes": [include]})]
    with client(api) as groundwire:
        found = groundwire.validate("a.md", "---\nincludes: [b.md]\n---\n")
    assert (api.asked[0].path, asked(api)["path"]) == ("/v1/validate", "a.md")
    assert (found.verdict, found.findings[0].code, found.includes[0].target) == (
        "invalid",
        "target_missing",
        "s3://kb/b.md",
    )


def ticket(api: Api, **more: Any) -> Any:
    shape = {
        "url": api.url + "/bucket/a.md?X-Amz-Signature=s3cr3t",
        "method": "PUT",
        "headers": {"Content-Type": "text/markdown"},
        "expiresAt": "2026-03-02T08:15:00+00:00",
        "uri": "s3://kb/a.md",
    }
    return reply(shape | more)


@pytest.mark.parametrize("content", ["# Tämä\n", "# Tämä\n".encode()])
def test_an_upload_goes_to_the_store_without_the_token(api: Api, content: Any) -> None:
    api.answers = [ticket(api), reply(b"", 200, "")]
    with client(api, token="secret") as groundwire:
        assert groundwire.upload("a.md", content, root="kb", content_type="text/markdown") == "s3://kb/a.md"
    asked, put = api.asked
    assert asked.path == "/v1/uploads"
    assert asked.json() == {
        "path": "a.md",
        "root": "kb",
        "contentType": "text/markdown",
        "sizeBytes": 9,
        "sha256": hashlib.sha256("# Tämä\n".encode()).hexdigest(),
    }
    assert (put.method, put.body, put.headers["Content-Type"]) == (
        "PUT",
        "# Tämä\n".encode(),
        "text/markdown",
    )
    assert put.headers["Authorization"] is None


def test_a_store_that_refuses_is_an_error_without_its_url(api: Api) -> None:
    api.answers = [ticket(api), reply(b"<Error/>", 403)]
    with client(api) as groundwire, pytest.raises(GroundwireApiError) as caught:
        groundwire.upload("a.md", b"x")
    assert (caught.value.status, caught.value.code) == (403, "upload_refused")
    assert "s3cr3t" not in str(caught.value)


def test_an_upload_is_never_sent_openly_to_elsewhere(api: Api) -> None:
    api.answers = [ticket(api, url="http://bucket.example.com/a.md?s3cr3t")]
    with client(api) as groundwire, pytest.raises(GroundwireApiError) as caught:
        groundwire.upload("a.md", b"x")
    assert caught.value.code == "unreadable_answer"
    assert "s3cr3t" not in str(caught.value)


def test_threads_share_one_client(api: Api) -> None:
    from concurrent.futures import ThreadPoolExecutor

    api.answers = [reply(result(document()))]
    with client(api, token="t") as groundwire, ThreadPoolExecutor(4) as pool:
        call: Callable[[int], bool] = lambda _: bool(groundwire.ground("s3://kb/a.md"))  # noqa: E731
        assert all(pool.map(call, range(64)))
    assert len(api.asked) == 64
