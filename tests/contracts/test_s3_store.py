"""What only S3 can do to a reader: keys that clients rewrite, versions, ranges, encodings, signatures."""

import gzip
import socket
import threading
import time
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groundwire.adapters.obstore_rules import obstore_may_read
from groundwire.adapters.s3 import S3DocumentFetcher
from groundwire.deadline import Deadline
from groundwire.errors import DocumentTooLarge, FetchError
from groundwire.limits import HEAD_BYTES, KEY_BYTES
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.cloud import REGION, session
from tests.contracts.misbehaving import Misbehaving, Reply
from tests.contracts.shelves import BucketShelf, md5
from tests.contracts.test_document_stores import ODD_KEYS

SOON = Deadline.after(24 * 3600)
UNTRUSTED_KEYS = ["/lead.md", "trail.md/", "a//b.md", "//", "/", "./a.md", "a/../b.md", "..", "a\x01b.md"]


def reader(store: Misbehaving) -> S3DocumentFetcher:
    return S3DocumentFetcher(session(), store.endpoint)


def at(key: str) -> Location:
    return Location(StorageRoot("kb", "s3", "facilities-kb", region=REGION), key)


@pytest.mark.parametrize("key", UNTRUSTED_KEYS)
def test_keys_that_obstore_would_rewrite_go_to_boto3(misbehaving: Misbehaving, key: str) -> None:
    assert not obstore_may_read(key)
    misbehaving.behaviour = Reply(200, body=b"text", headers={"ETag": '"1"'})
    store = reader(misbehaving)
    assert store.fetch(at(key), deadline=SOON, max_bytes=10).content == b"text"
    assert store.head(at(key), 2).content == b"te"
    assert store.exists(at(key), deadline=SOON)
    assert {unquote(each.path) for each in misbehaving.seen} == {f"/facilities-kb/{key}"}


# Characters that mean something in a path, a query or a form, and some that mean nothing anywhere.
KEYS = st.text(
    st.one_of(
        st.sampled_from("/.%+ ?#&=;:@!$'()*,\\\"<>[]{}|^`~é\u0301\u202e\x01\x7f"),
        st.characters(codec="utf-8", exclude_characters="\x00"),
    ),
    min_size=1,
    max_size=30,
).filter(lambda key: len(key.encode()) <= KEY_BYTES)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(key=KEYS)
def test_any_key_is_asked_for_as_itself(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.seen.clear()
    misbehaving.behaviour = Reply(200, body=b"text", headers={"ETag": '"1"'})
    stores = misbehaving.__dict__.setdefault("reader", reader(misbehaving))
    stores.fetch(at(key), deadline=SOON, max_bytes=10)
    (seen,) = misbehaving.seen
    assert unquote(urlsplit(seen.path).path) == f"/facilities-kb/{key}"
    assert "?" not in seen.path.removesuffix("?x-id=GetObject")


@pytest.mark.parametrize("key", [*ODD_KEYS, "/lead.md", "a//b.md"])
def test_every_key_of_a_bucket_is_found_and_signed_for(bucket: BucketShelf, key: str) -> None:
    location = bucket.put(key, key.encode(), "text/markdown")
    fetched = bucket.store.fetch(location, deadline=SOON, max_bytes=KEY_BYTES)
    assert (fetched.content, fetched.stored_mime_type) == (key.encode(), "text/markdown")
    signed = bucket.store.sign(location)
    if not obstore_may_read(key):
        assert signed is None
        return
    assert signed is not None
    with urllib.request.urlopen(signed.url) as reply:
        assert reply.read() == key.encode()


def test_a_signed_url_is_v4_and_says_when_it_ends(bucket: BucketShelf) -> None:
    location = bucket.put("a.md", b"text")
    signed = bucket.store.sign(location)
    assert signed is not None
    query = parse_qs(urlsplit(signed.url).query)
    assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert f"/{REGION}/s3/aws4_request" in query["X-Amz-Credential"][0]
    lifetime = timedelta(seconds=int(query["X-Amz-Expires"][0]))
    made = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert timedelta(minutes=1) < lifetime <= timedelta(minutes=15)
    assert abs(signed.expires_at - (made + lifetime)) <= timedelta(seconds=2)


def test_on_aws_a_signed_url_names_the_region() -> None:
    signed = S3DocumentFetcher(session()).sign(at("a b.md"))
    assert signed is not None
    parts = urlsplit(signed.url)
    assert (parts.scheme, parts.netloc) == ("https", f"facilities-kb.s3.{REGION}.amazonaws.com")
    assert parts.path == "/a%20b.md"


def test_temporary_credentials_sign_with_their_token() -> None:
    """Lambda's credentials are always of this kind."""
    temporary = boto3.Session("testing", "testing", "the-token", region_name=REGION)
    signed = S3DocumentFetcher(temporary).sign(at("a.md"))
    assert signed is not None
    assert parse_qs(urlsplit(signed.url).query)["X-Amz-Security-Token"] == ["the-token"]


@pytest.mark.parametrize("key", ["a.md", "a//b.md"])
def test_the_version_is_the_etag_without_quotes(bucket: BucketShelf, key: str) -> None:
    location = bucket.put(key, b"text")
    assert bucket.store.fetch(location, deadline=SOON, max_bytes=10).version == md5(b"text")
    head = bucket.store.head(location, HEAD_BYTES)
    assert (head.version, head.version_id) == (md5(b"text"), None)


@pytest.mark.parametrize("key", ["a.md", "a//b.md"])
def test_a_versioned_bucket_gives_the_current_version(bucket: BucketShelf, key: str) -> None:
    bucket.client.put_bucket_versioning(Bucket=bucket.bucket, VersioningConfiguration={"Status": "Enabled"})
    bucket.put(key, b"one")
    latest = bucket.client.put_object(Bucket=bucket.bucket, Key=key, Body=b"two")["VersionId"]
    head = bucket.store.head(bucket.location(key), HEAD_BYTES)
    assert (head.content, head.version_id) == (b"two", latest)
    bucket.client.delete_object(Bucket=bucket.bucket, Key=key)
    assert not bucket.store.exists(bucket.location(key), deadline=SOON)


@pytest.mark.parametrize("key", ["a.bin", "a//b.bin"])
def test_an_object_uploaded_in_parts_is_one_document(bucket: BucketShelf, key: str) -> None:
    place: Any = {"Bucket": bucket.bucket, "Key": key}
    upload = bucket.client.create_multipart_upload(**place, ContentType="application/pdf")["UploadId"]
    pieces = [b"x" * (5 * 1024 * 1024), b"end"]
    parts: Any = []
    for number, piece in enumerate(pieces, start=1):
        tag = bucket.client.upload_part(**place, UploadId=upload, PartNumber=number, Body=piece)["ETag"]
        parts.append({"ETag": tag, "PartNumber": number})
    bucket.client.complete_multipart_upload(**place, UploadId=upload, MultipartUpload={"Parts": parts})
    whole = b"".join(pieces)
    fetched = bucket.store.fetch(bucket.location(key), deadline=SOON, max_bytes=len(whole))
    assert (fetched.content, fetched.stored_mime_type) == (whole, "application/pdf")
    assert fetched.version.endswith("-2")
    head = bucket.store.head(bucket.location(key), HEAD_BYTES)
    assert (head.size_bytes, head.version) == (len(whole), fetched.version)


@pytest.mark.parametrize("key", ["a.md", "a//b.md"])
@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "aws-chunked,gzip"])
def test_a_gzip_encoded_object_is_gzip_not_text(bucket: BucketShelf, key: str, encoding: str) -> None:
    packed = gzip.compress(b"---\nincludes: [b.md]\n---\n")
    bucket.client.put_object(
        Bucket=bucket.bucket, Key=key, Body=packed, ContentType="text/markdown", ContentEncoding=encoding
    )
    fetched = bucket.store.fetch(bucket.location(key), deadline=SOON, max_bytes=1_000)
    head = bucket.store.head(bucket.location(key), HEAD_BYTES)
    assert (fetched.content, fetched.stored_mime_type) == (packed, "application/gzip")
    assert (head.content, head.stored_mime_type) == (packed, "application/gzip")


@pytest.mark.parametrize("key", ["a.md", "a//b.md"])
@pytest.mark.parametrize("kind", ["text/markdown; charset=utf-8", "binary/octet-stream", "TEXT/Plain"])
def test_the_stored_type_is_handed_on_as_it_is(bucket: BucketShelf, key: str, kind: str) -> None:
    location = bucket.put(key, b"text", kind)
    assert bucket.store.fetch(location, deadline=SOON, max_bytes=10).stored_mime_type == kind
    assert bucket.store.head(location, HEAD_BYTES).stored_mime_type == kind


@pytest.mark.parametrize("key", ["a.md", "a//b.md"])
def test_an_empty_object_has_a_head_and_a_type(bucket: BucketShelf, key: str) -> None:
    location = bucket.put(key, b"", "text/markdown")
    head = bucket.store.head(location, HEAD_BYTES)
    assert (head.content, head.size_bytes, head.version) == (b"", 0, md5(b""))
    assert head.stored_mime_type == "text/markdown"
    assert bucket.store.fetch(location, deadline=SOON, max_bytes=0).content == b""


@pytest.mark.parametrize("key", ["a.md", "a//b.md"])
def test_a_body_over_the_limit_is_not_read(misbehaving: Misbehaving, key: str) -> None:
    """A body that never comes shows that nobody waits for it."""
    misbehaving.behaviour = "drip"
    with pytest.raises(DocumentTooLarge) as caught:
        reader(misbehaving).fetch(at(key), deadline=SOON, max_bytes=999)
    assert caught.value.size_bytes == 1_000


@pytest.mark.parametrize("key", ["a.md", "a//b.md"])
def test_only_the_head_of_an_object_is_asked_for(misbehaving: Misbehaving, key: str) -> None:
    body, span = b"x" * HEAD_BYTES, f"bytes 0-{HEAD_BYTES - 1}/99999999"
    misbehaving.behaviour = Reply(206, body=body, headers={"ETag": '"1"', "Content-Range": span})
    head = reader(misbehaving).head(at(key), HEAD_BYTES)
    assert head.size_bytes == 99_999_999
    (seen,) = misbehaving.seen
    assert (seen.method, {k.lower(): v for k, v in seen.headers.items()}["range"]) == (
        "GET",
        f"bytes=0-{HEAD_BYTES - 1}",
    )


def test_a_store_that_knows_no_ranges_is_read_whole(misbehaving: Misbehaving) -> None:
    misbehaving.behaviour = Reply(200, body=b"0123456789", headers={"ETag": '"1"'})
    head = reader(misbehaving).head(at("a.md"), 4)
    assert (head.content, head.size_bytes) == (b"0123", 10)


# -- failures -----------------------------------------------------------------------------------

ALL_KEYS = pytest.mark.parametrize("key", ["a.md", "a//b.md"])
FAILURES = pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        pytest.param(Reply(404, "NoSuchKey"), "not_found", id="no-key"),
        pytest.param(Reply(404, "NoSuchBucket"), "not_found", id="no-bucket"),
        pytest.param(Reply(403, "AccessDenied"), "forbidden", id="denied"),
        pytest.param(Reply(403, "InvalidObjectState"), "unavailable", id="archived"),
        pytest.param(Reply(401, "ExpiredToken"), "unavailable", id="credentials"),
        pytest.param(Reply(503, "SlowDown"), "throttled", id="slow-down"),
        pytest.param(Reply(500, "InternalError"), "unavailable", id="internal"),
        pytest.param(Reply(502), "unavailable", id="bad-gateway"),
        pytest.param(Reply(405, "MethodNotAllowed"), "unavailable", id="method"),
        pytest.param(
            Reply(301, "PermanentRedirect", headers={"x-amz-bucket-region": "us-east-1"}),
            "unavailable",
            id="wrong-region",
        ),
        pytest.param(Reply(400, "AuthorizationHeaderMalformed"), "unavailable", id="wrong-signing-region"),
        pytest.param("reset", "unavailable", id="reset"),
        pytest.param("cut", "unavailable", id="cut"),
    ],
)


@ALL_KEYS
@FAILURES
def test_each_failure_of_a_fetch_has_its_code(
    misbehaving: Misbehaving, key: str, behaviour: Reply, code: str
) -> None:
    misbehaving.behaviour = behaviour
    with pytest.raises(FetchError) as caught:
        reader(misbehaving).fetch(at(key), deadline=SOON, max_bytes=10_000)
    assert (caught.value.code, caught.value.uri) == (code, at(key).uri)


@ALL_KEYS
@FAILURES
def test_each_failure_of_a_head_has_its_code(
    misbehaving: Misbehaving, key: str, behaviour: Reply, code: str
) -> None:
    misbehaving.behaviour = behaviour
    with pytest.raises(FetchError) as caught:
        reader(misbehaving).head(at(key), HEAD_BYTES)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (Reply(403, "AccessDenied"), "forbidden"),
        (Reply(503, "SlowDown"), "throttled"),
        (Reply(500, "InternalError"), "unavailable"),
        (Reply(301, "PermanentRedirect", headers={"x-amz-bucket-region": "us-east-1"}), "unavailable"),
        ("reset", "unavailable"),
    ],
)
def test_a_store_that_cannot_say_is_not_a_missing_document(
    misbehaving: Misbehaving, behaviour: Reply, code: str
) -> None:
    misbehaving.behaviour = behaviour
    with pytest.raises(FetchError) as caught:
        reader(misbehaving).exists(at("a.md"), deadline=SOON)
    assert caught.value.code == code


def test_a_wrong_region_is_named(misbehaving: Misbehaving) -> None:
    redirect = Reply(301, "PermanentRedirect", headers={"x-amz-bucket-region": "us-east-1"})
    misbehaving.behaviour = redirect
    with pytest.raises(FetchError, match="wrong region"):
        reader(misbehaving).fetch(at("a.md"), deadline=SOON, max_bytes=10)


def test_one_failure_is_tried_again(misbehaving: Misbehaving) -> None:
    misbehaving.script = [Reply(503, "SlowDown")]
    misbehaving.behaviour = Reply(200, body=b"text", headers={"ETag": '"1"'})
    assert reader(misbehaving).fetch(at("a.md"), deadline=SOON, max_bytes=10).content == b"text"


def test_a_missing_document_is_asked_for_once(misbehaving: Misbehaving) -> None:
    with pytest.raises(FetchError):
        reader(misbehaving).fetch(at("a.md"), deadline=SOON, max_bytes=10)
    assert len(misbehaving.seen) == 1


def test_nothing_listens_is_unavailable() -> None:
    with socket.socket() as bound:  # a port of our own that refuses every connection
        bound.bind(("127.0.0.1", 0))
        store = S3DocumentFetcher(session(), f"http://127.0.0.1:{bound.getsockname()[1]}")
        for key in ("a.md", "a//b.md"):
            with pytest.raises(FetchError) as caught:
                store.fetch(at(key), deadline=SOON, max_bytes=10)
            assert caught.value.code == "unavailable"


@pytest.mark.parametrize(("behaviour", "key"), [("hang", "a.md"), ("hang", "a//b.md"), ("drip", "a.md")])
def test_a_store_that_hangs_or_drips_costs_a_bounded_time(
    misbehaving: Misbehaving, monkeypatch: pytest.MonkeyPatch, behaviour: str, key: str
) -> None:
    monkeypatch.setattr("groundwire.adapters.s3.STORE_TIMEOUT_S", 0.3)
    misbehaving.behaviour = behaviour  # type: ignore[assignment]
    store = reader(misbehaving)
    for read in (
        lambda: store.fetch(at(key), deadline=SOON, max_bytes=10_000),
        lambda: store.head(at(key), HEAD_BYTES),
    ):
        began = time.monotonic()
        with pytest.raises(FetchError) as caught:
            read()
        assert caught.value.code == "unavailable"
        assert time.monotonic() - began < 10


def test_no_second_look_after_the_deadline(misbehaving: Misbehaving) -> None:
    misbehaving.behaviour = Reply(403, "AccessDenied")
    with pytest.raises(FetchError) as caught:
        reader(misbehaving).fetch(at("a.md"), deadline=Deadline(0.0), max_bytes=10)
    assert caught.value.code == "unavailable"
    assert len(misbehaving.seen) == 1


def test_threads_share_one_reader(bucket: BucketShelf) -> None:
    """Eight threads from cold, each a key for obstore and one for boto3: nobody reads another's document."""
    keys = [f"{folder}{number}.md" for number in range(8) for folder in ("a/", "a//")]
    for key in keys:
        bucket.put(key, key.encode())
    found: dict[str, bytes] = {}

    def read(some: list[str]) -> None:
        for key in some:
            found[key] = bucket.store.fetch(bucket.location(key), deadline=SOON, max_bytes=100).content

    threads = [threading.Thread(target=read, args=(keys[n::8],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {key: key.encode() for key in keys}
