"""Keyless access to Cloud Storage: the function's own role, exchanged once for everybody who reads."""

import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import pytest

from groundwire.adapters.access_tokens import NoToken
from groundwire.adapters.gcs import GcsDocumentFetcher
from groundwire.adapters.google_federation import RoleFederation
from groundwire.deadline import Deadline
from groundwire.errors import FetchError
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.contracts.misbehaving import Misbehaving, Reply
from tests.contracts.token_servers import (
    AWS_TOKEN,
    GOOGLE_TOKEN,
    IMPERSONATE,
    SERVICE_ACCOUNT_TOKEN,
    TokenServer,
)

SOON = Deadline.after(24 * 3600)
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/groundwire/providers/aws"
BOTH_WAYS = pytest.mark.parametrize("key", ["a.md", "a//b.md"])


def federation(server: TokenServer, **options: Any) -> RoleFederation:
    return RoleFederation(AUDIENCE, "eu-north-1", token_url=server.url("/token"), **options)


def reader(server: TokenServer, store: Misbehaving) -> GcsDocumentFetcher:
    store.behaviour = Reply(200, body=b"text", headers={"x-goog-generation": "1", "ETag": '"1"'})
    return GcsDocumentFetcher(federation(server), store.endpoint)


def at(key: str, bucket: str = "kb") -> Location:
    return Location(StorageRoot(bucket, "gcs", bucket), key)


def bearers(store: Misbehaving) -> set[str]:
    return {{k.lower(): v for k, v in each.headers.items()}["authorization"] for each in store.seen}


@pytest.fixture
def debug_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The debug records of everything that is made from now on."""
    logger = logging.getLogger("groundwire.debug")
    monkeypatch.setenv("DEBUG", "*")
    monkeypatch.setattr(logger, "handlers", [caplog.handler])
    monkeypatch.setattr(logger, "propagate", False)
    caplog.set_level(logging.INFO, "groundwire.debug")
    return caplog


@BOTH_WAYS
def test_the_role_is_exchanged_for_a_token_that_may_only_read(
    token_server: TokenServer, misbehaving: Misbehaving, key: str
) -> None:
    assert reader(token_server, misbehaving).fetch(at(key), deadline=SOON, max_bytes=10).content == b"text"
    assert token_server.asked == ["GET /credentials", "POST /token"]
    (form,) = token_server.forms
    assert (form["audience"], form["scope"]) == (
        AUDIENCE,
        "https://www.googleapis.com/auth/devstorage.read_only",
    )
    subject = json.loads(unquote(form["subject_token"]))
    assert subject["url"].startswith("https://sts.eu-north-1.amazonaws.com?Action=GetCallerIdentity")
    assert {"key": "x-amz-security-token", "value": AWS_TOKEN} in subject["headers"]
    assert bearers(misbehaving) == {f"Bearer {GOOGLE_TOKEN}"}


def test_a_service_account_may_stand_between(token_server: TokenServer) -> None:
    token = federation(token_server, impersonation_url=token_server.url(IMPERSONATE))()
    assert token.value == SERVICE_ACCOUNT_TOKEN
    assert token_server.asked == ["GET /credentials", "POST /token", f"POST {IMPERSONATE}"]


def test_nothing_is_asked_before_a_document_is_wanted(
    token_server: TokenServer, misbehaving: Misbehaving
) -> None:
    """What a snapshot holds would be stale, and shared."""
    reader(token_server, misbehaving)
    assert token_server.asked == []


def test_sixteen_cold_threads_and_two_buckets_make_one_exchange(
    token_server: TokenServer, misbehaving: Misbehaving
) -> None:
    store = reader(token_server, misbehaving)
    together = threading.Barrier(16)

    def read(number: int) -> bytes:
        together.wait()
        key = f"{number}.md" if number % 3 else f"/{number}.md"
        return store.fetch(at(key, ("kb", "hr")[number % 2]), deadline=SOON, max_bytes=10).content

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(read, range(16))) == {b"text"}
    assert token_server.asked == ["GET /credentials", "POST /token"]
    assert len(misbehaving.seen) == 16


@BOTH_WAYS
def test_a_token_that_soon_ends_is_renewed_and_aws_is_not_asked_again(
    token_server: TokenServer, misbehaving: Misbehaving, key: str
) -> None:
    token_server.answers["/token"] = (200, {"access_token": "short", "expires_in": 60})
    store = reader(token_server, misbehaving)
    store.fetch(at(key), deadline=SOON, max_bytes=10)
    token_server.answers["/token"] = (200, {"access_token": "next", "expires_in": 3600})
    for _ in range(200):  # obstore does not ask for a token twice within a moment
        store.fetch(at(key), deadline=SOON, max_bytes=10)
        if len(bearers(misbehaving)) == 2:
            break
        time.sleep(0.05)
    assert bearers(misbehaving) == {"Bearer short", "Bearer next"}
    assert token_server.asked.count("GET /credentials") == 1
    assert token_server.forms[1:], "it was asked for again"


# -- failures -----------------------------------------------------------------------------------

REFUSED = {"error": "invalid_grant", "error_description": f"you sent {AWS_TOKEN}"}
FAILURES = [
    pytest.param("/token", (400, REFUSED), "OAuthError invalid_grant", id="refused"),
    pytest.param("/token", (503, f"busy with {AWS_TOKEN}"), "OAuthError", id="no json"),
    pytest.param("/token", (200, "no json"), "JSONDecodeError", id="nonsense"),
    pytest.param("/token", (200, {}), "TypeError", id="no token"),
    pytest.param("/token", (200, {"expires_in": 60}), "holds no token", id="only an end"),
    pytest.param("/credentials", (500, {}), "MetadataRetrievalError", id="no credentials"),
]


@pytest.mark.parametrize(("path", "answer", "cause"), FAILURES)
def test_without_a_token_documents_are_unavailable_and_the_log_says_why(
    token_server: TokenServer,
    misbehaving: Misbehaving,
    monkeypatch: pytest.MonkeyPatch,
    debug_log: pytest.LogCaptureFixture,
    path: str,
    answer: tuple[int, Any],
    cause: str,
) -> None:
    monkeypatch.setattr("botocore.utils.ContainerMetadataFetcher.SLEEP_TIME", 0)
    token_server.answers[path] = answer
    store = reader(token_server, misbehaving)
    with pytest.raises(FetchError) as caught:
        store.fetch(at("a.md"), deadline=SOON, max_bytes=10)
    assert (caught.value.code, misbehaving.seen) == ("unavailable", [])
    (line,) = [json.loads(each.message) for each in debug_log.records if each.name == "groundwire.debug"]
    assert (line["event"], line["uri"]) == ("no token", "gs://kb/a.md")
    assert cause.split() == [word for word in line["cause"].split() if word in cause.split()]


def test_the_next_document_has_another_try(token_server: TokenServer, misbehaving: Misbehaving) -> None:
    good, token_server.answers["/token"] = token_server.answers["/token"], (400, REFUSED)
    store = reader(token_server, misbehaving)
    with pytest.raises(FetchError):
        store.fetch(at("a.md"), deadline=SOON, max_bytes=10)
    token_server.answers["/token"] = good
    assert store.fetch(at("a.md"), deadline=SOON, max_bytes=10).content == b"text"


@pytest.mark.parametrize("path", ["/token", IMPERSONATE])
def test_a_silent_endpoint_costs_its_own_timeout(
    token_server: TokenServer, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("groundwire.adapters.google_federation.TOKEN_TIMEOUT_S", 0.2)
    token_server.answers[path] = "hang"
    exchange = federation(token_server, impersonation_url=token_server.url(IMPERSONATE))
    pool = ThreadPoolExecutor(1)
    try:
        error = pool.submit(exchange).exception(timeout=30)
    finally:
        pool.shutdown(wait=False)
    assert isinstance(error, NoToken)
    assert "Timeout" in str(error)


@BOTH_WAYS
@pytest.mark.parametrize("path", ["/token", "/credentials"])
def test_a_silent_endpoint_costs_no_more_than_the_deadline_leaves(
    token_server: TokenServer, misbehaving: Misbehaving, key: str, path: str
) -> None:
    token_server.answers[path] = "hang"
    store = reader(token_server, misbehaving)
    for read in (
        lambda: store.fetch(at(key), deadline=Deadline.after(0.1), max_bytes=10),
        lambda: store.exists(at(key), deadline=Deadline.after(0.1)),
    ):
        with pytest.raises(FetchError) as caught:
            read()
        assert caught.value.code == "unavailable"
    assert misbehaving.seen == []


def test_no_token_is_ever_logged(
    token_server: TokenServer, misbehaving: Misbehaving, debug_log: pytest.LogCaptureFixture
) -> None:
    """Not even where every library logs whatever it likes to."""
    debug_log.set_level(logging.DEBUG)
    store = reader(token_server, misbehaving)
    for key in ("a.md", "a//b.md"):
        store.fetch(at(key), deadline=SOON, max_bytes=10)
    token_server.answers["/token"] = (400, REFUSED)
    failing = reader(token_server, misbehaving)
    misbehaving.behaviour = Reply(403)
    said = debug_log.text
    for each in (store, failing):
        with pytest.raises(FetchError) as caught:
            each.fetch(at("a.md"), deadline=SOON, max_bytes=10)
        said += str(caught.value)
    said += debug_log.text
    assert "no token" in said
    assert "POST /token" in said, "the libraries do log"
    for secret in (AWS_TOKEN, GOOGLE_TOKEN, "aws-secret-key", "pod-token"):
        assert secret not in said
