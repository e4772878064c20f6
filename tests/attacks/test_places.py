"""Pointers to other places (Z-2): pointers.yaml by every door, and stores that send their reader elsewhere.

The canary would answer anybody; that it was never asked is what is asserted.
"""

import json
from collections.abc import Iterator
from posixpath import normpath
from typing import Any

import httpx2
import pytest

from local.servers.loopback import Answer, Behaviour, LoopbackServer, On, Request
from tests.attacks.keep import PLANTED, SECRET_FOLDER, Canary, Keep, corpus
from tests.captured import object_event
from tests.cloud import Cloud
from tests.integration.driving import deliver, post, upload
from tests.integration.test_access import READER, role
from tests.integration.test_external_stores import DRIVE, STORE

pytestmark = pytest.mark.attacks

POINTERS = corpus("pointers")
FOREIGN_DRIVE = "b!foreign"
STATUSES = (301, 302, 303, 307, 308)


@pytest.fixture
def canary() -> Iterator[Canary]:
    with Canary() as server:
        yield server
        assert server.requests == []


@pytest.fixture(scope="module")
def names(outside: Keep) -> dict[str, str]:
    """What the rows call the places, filled: planted documents where no pointer may lead."""
    upload(outside.cloud, {"a.md": "Here."})
    outside.store("a.md", b"Here.")
    outside.graph.put(DRIVE, "a.md", b"Here.")
    foreign = outside.cloud.new_bucket(f"{outside.cloud.bucket}-foreign")
    outside.cloud.s3.put_object(Bucket=foreign, Key="plan.md", Body=PLANTED.encode())
    httpx2.post(f"{outside.gcs}/storage/v1/b?project=p", json={"name": foreign}).raise_for_status()
    place = f"{outside.gcs}/upload/storage/v1/b/{foreign}/o?uploadType=media&name=plan.md"
    httpx2.post(place, content=PLANTED.encode()).raise_for_status()
    for drive, path in ((FOREIGN_DRIVE, "plan.md"), (DRIVE, f"{SECRET_FOLDER}/plan.md")):
        outside.graph.put(drive, path, PLANTED.encode())
    return {"bucket": outside.cloud.bucket, "foreign": foreign, "labs": outside.bucket, "drive": DRIVE}


def pointer(row: dict[str, Any], names: dict[str, str]) -> dict[str, str]:
    """A pointer to a document that is there, changed as the row says."""
    changed = {name: value.format(**names) for name, value in row["changed"].items()}
    return {"source_type": "s3", "s3_bucket": names["bucket"], "s3_key": "a.md"} | changed


@pytest.mark.parametrize("door", ["pointer", "metadata", "catalogue"])
@pytest.mark.parametrize("row", POINTERS.values(), ids=POINTERS.keys())
def test_a_pointer_leads_into_a_root_or_nowhere(
    outside: Keep, names: dict[str, str], canary: Canary, row: dict[str, Any], door: str
) -> None:
    values = pointer(row, names | {"canary": canary.url})
    source: Any = values
    if door == "metadata":
        source = {"customMetadata": [{"key": name, "stringValue": value} for name, value in values.items()]}
    elif door == "catalogue":
        source = outside.catalogued({name: value for name, value in values.items() if value})
    outside.graph.requests.clear()
    answer = post("/v1/ground", {"sources": [source]})
    assert PLANTED not in answer.body
    assert FOREIGN_DRIVE not in json.dumps([each.path for each in outside.graph.requests])
    if answer.status == 400:  # a pointer that is written out must be one
        assert door == "pointer"
        assert row["code"] in ("metadata_missing", "source_type_unknown")
        return
    assert answer.status == 200, answer.body
    (outcome,) = answer.json["sources"]
    assert outcome["code"] == row["code"]
    texts = [each["text"] for each in answer.json["allDocumentsForAttachment"]]
    assert texts == ([] if row["code"] else ["Here."])


def test_a_file_search_store_that_is_not_ours_is_not_asked(keep: Keep) -> None:
    """The key may open others; only those that are configured are read with it, by no other path."""
    upload(keep.cloud, {"a.md": PLANTED})
    foreign = keep.gemini.add_store("foreign")
    pointer = {"source_type": "s3", "s3_bucket": keep.cloud.bucket, "s3_key": "a.md"}
    name = keep.gemini.add_document(foreign, display_name="Plan", metadata=pointer)
    sources = [
        {"documentName": name},
        {"title": "Plan", "fileSearchStore": foreign},
        {"title": name.rpartition("/")[2], "fileSearchStore": foreign},
        {"documentName": f"{STORE}/documents/../../foreign/documents/{name.rpartition('/')[2]}"},
        {"documentName": f"{STORE}/documents/..%2f..%2ffiles"},
        {"documentName": f"{STORE}/documents/x?key=1#"},
        {"documentName": "files/x"},
    ]
    answer = post("/v1/ground", {"sources": sources})
    assert {each["status"] for each in answer.json["sources"]} == {"unresolved"}
    assert PLANTED not in answer.body
    asked = [each.path.partition("?")[0] for each in keep.gemini.requests]
    assert [each for each in asked if not each.startswith(f"/v1beta/{STORE}/documents")] == []
    assert not any(".." in each or "%" in each or "foreign" in each for each in asked)


URLS = (
    "{canary}/plan.md",
    "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
    "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
    "https://kb.s3.eu-north-1.amazonaws.com/plan.md?X-Amz-Signature=0",
    "file:///proc/self/environ",
    "gopher://127.0.0.1:6379/_x",
    "ftp://example.com/plan.md",
    "dict://127.0.0.1:11211/stats",
    "data:text/plain,x",
    "javascript:x",
    "//example.com/plan.md",
    "s3://{canary}/plan.md",
    "s3://x@{bucket}/a.md",
    "s3:///a.md",
    "S3://{bucket}/a.md",
    "gs://{bucket}@example.com/a.md",
    "sharepoint://https://contoso.sharepoint.com/a.md",
    "local:///etc/passwd",
    "local://kb/../../etc/passwd",
)


@pytest.mark.parametrize("url", URLS)
def test_no_url_of_a_request_is_fetched(
    outside: Keep, names: dict[str, str], canary: Canary, url: str
) -> None:
    url = url.format(canary=canary.url, **names)
    web = {"groundingChunks": [{"web": {"uri": url, "title": url}}]}
    context = {"groundingChunks": [{"retrievedContext": {"uri": url, "title": url, "text": url}}]}
    for body in ({"sources": [url]}, {"groundingMetadata": web}, {"groundingMetadata": context}):
        answer = post("/v1/ground", body)
        assert answer.json["allDocumentsForAttachment"] == []
        assert PLANTED not in answer.body
    assert post("/v1/compose", {"uri": url}).status in (400, 404)


# -- stores that send their reader elsewhere ----------------------------------------------------


class Elsewhere(LoopbackServer):
    """A store that redirects whatever it is asked."""

    def __init__(self, to: str) -> None:
        super().__init__()
        self.to = to
        self.status = 302

    def answer(self, request: Request) -> Answer:
        return self.status, b"", {"Location": f"{self.to}/plan.md", "Connection": "close"}


@pytest.fixture
def elsewhere(canary: Canary) -> Iterator[Elsewhere]:
    with Elsewhere(canary.url) as server:
        yield server


KEYS = ("a.md", "x//a.md", "a%2f..%2fb.md")


# Not 303: botocore leaves its socket to the garbage collector.
@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("key", KEYS)
def test_a_store_of_s3s_protocol_sends_nobody_elsewhere(
    cloud: Cloud, elsewhere: Elsewhere, status: int, key: str
) -> None:
    cloud.wire(cloud.root(endpoint=elsewhere.url))
    elsewhere.status = status
    answer = post("/v1/compose", {"uri": cloud.uri(key)})
    assert (answer.status, answer.json["code"]) == (503, "unavailable")
    deliver(object_event(cloud.bucket, key))
    assert 0 < len(elsewhere.requests) < 8, "nor does anybody ask for ever"


class Folding(LoopbackServer):
    """A store that folds dot segments, as many a proxy does; it has one document."""

    def answer(self, request: Request) -> Answer:
        if normpath(request.name).endswith("/hidden/plan.md"):
            return 200, PLANTED.encode(), {"ETag": '"1"', "Connection": "close"}
        return 404, b"", {"Connection": "close"}


@pytest.mark.parametrize(
    "way", ["x/../hidden/plan.md", "./hidden/plan.md", "hidden/./plan.md", "x/../x/../hidden/plan.md"]
)
def test_a_store_that_folds_dot_segments_is_sent_none(cloud: Cloud, way: str) -> None:
    """The key would be the outer root's, and the document the inner one's."""
    with Folding() as store:
        hidden = cloud.root(name="hidden", prefix="hidden", readers=(READER,), endpoint=store.url)
        cloud.wire(cloud.root(endpoint=store.url), hidden)
        inside = post("/v1/compose", {"uri": cloud.uri("hidden/plan.md")}, role("reader"))
        assert PLANTED in inside.body
        store.requests.clear()
        answer = post("/v1/compose", {"uri": cloud.uri(way)}, role("app"))
        assert (answer.status, store.requests) == (404, [])
        deliver(object_event(cloud.bucket, way))
        assert store.requests == []


@pytest.mark.parametrize("status", STATUSES)
def test_cloud_storage_sends_nobody_elsewhere(keep: Keep, elsewhere: Elsewhere, status: int) -> None:
    keep.gcs = elsewhere.url
    keep.wire()
    elsewhere.status = status
    for key in KEYS:
        answer = post("/v1/compose", {"uri": f"gs://{keep.bucket}/{key}"})
        assert (answer.status, answer.json["code"]) == (503, "unavailable")
    assert len(elsewhere.requests) >= len(KEYS)


@pytest.mark.parametrize("status", STATUSES)
def test_whoever_gives_out_googles_tokens_sends_nobody_elsewhere(
    keep: Keep, elsewhere: Elsewhere, status: int
) -> None:
    """What goes there is signed by the function's own role."""
    elsewhere.status = status
    keep.cloud.environment(
        GROUNDWIRE_GOOGLE=json.dumps({"audience": "//iam.example/aws", "token_url": f"{elsewhere.url}/token"})
    )
    keep.store("a.md", b"Here.")
    answer = post("/v1/compose", {"uri": f"gs://{keep.bucket}/a.md"})
    assert (answer.status, answer.json["code"]) == (503, "unavailable")
    assert elsewhere.requests


@pytest.mark.parametrize("status", STATUSES)
def test_gemini_sends_nobody_elsewhere(keep: Keep, elsewhere: Elsewhere, status: int) -> None:
    """What goes there carries the API key in a header of its own, which no client strips."""
    elsewhere.status = status
    keep.cloud.environment(GROUNDWIRE_GEMINI_ENDPOINT=elsewhere.url)
    keep.store("a.bin", b"\0")
    sources = [keep.catalogued({"author": "x"}), f"gs://{keep.bucket}/a.bin"]
    options = {"prepareDocumentOptions": {"useFilesApi": "always"}}
    answer = post("/v1/ground", {"sources": sources, "overrides": options})
    assert answer.status == 200
    assert answer.json["lookupErrors"]
    assert elsewhere.requests


def test_graph_is_followed_nowhere_but_to_contents(keep: Keep, canary: Canary) -> None:
    keep.graph.put(DRIVE, "a.md", b"Here.")
    uri = f"sharepoint://{DRIVE}/a.md"
    for status in STATUSES:
        moved: Behaviour = (status, b"", {"Location": f"{canary.url}/plan.md"})
        for script in (
            [moved],
            [On("/content", (status, b"", {"Location": canary.url}))] if status != 302 else [],
        ):
            keep.graph.script[:] = script
            answer = post("/v1/compose", {"uri": uri})
            assert PLANTED not in answer.body
            assert (answer.status == 503) is bool(script)
        keep.graph.downloads.script[:] = [moved]
        assert post("/v1/compose", {"uri": uri}).status == 503


@pytest.mark.parametrize(
    "location",
    [
        "",
        "/plan.md",
        "//{host}/plan.md",
        "file:///proc/self/environ",
        "gopher://{host}/_x",
        "ftp://{host}/plan.md",
        "http://user:word@{host}/plan.md",
        "http:///plan.md",
        "http://[::1",
        "data:,x",
    ],
)
def test_contents_are_fetched_from_a_plain_url_or_not_at_all(
    keep: Keep, canary: Canary, location: str
) -> None:
    keep.graph.put(DRIVE, "a.md", b"Here.")
    to = location.format(host=canary.url.removeprefix("http://"))
    keep.graph.script[:] = [On("/content", (302, b"", {"Location": to}))]
    assert post("/v1/compose", {"uri": f"sharepoint://{DRIVE}/a.md"}).status == 503


def test_where_contents_are_no_token_goes(keep: Keep) -> None:
    """The one redirect that is followed: its host learns nothing of whoever asks."""
    carried: list[dict[str, str]] = []

    class Host(LoopbackServer):
        def answer(self, request: Request) -> Answer:
            carried.append({name.lower(): value for name, value in request.headers.items()})
            return 200, b"Here.", {"Set-Cookie": "a=b"}

    keep.graph.put(DRIVE, "a.md", b"Here.")
    with Host() as host:
        for _ in range(2):
            keep.graph.script[:] = [On("/content", (302, b"", {"Location": f"{host.url}/x?tempauth=1"}))]
            assert post("/v1/compose", {"uri": f"sharepoint://{DRIVE}/a.md"}).status == 200
    assert len(carried) == 2
    for headers in carried:
        assert not headers.keys() & {"authorization", "cookie", "referer", "x-amz-security-token"}
