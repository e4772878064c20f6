"""What only Cloud Storage can do to a reader: names that clients rewrite, gzip, generations, tokens."""

import gzip
import os
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx2
import pytest
from hypothesis import HealthCheck, example, given, settings

from groundwire.adapters.access_tokens import AccessToken, NoToken
from groundwire.adapters.gcs import GcsDocumentFetcher
from groundwire.adapters.obstore_rules import obstore_may_read
from groundwire.composition import CompositionLoader
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.deadline import Deadline
from groundwire.documents import Context, FetchedDocument
from groundwire.errors import DocumentNotFound, DocumentTooLarge, FetchError
from groundwire.fetching import CanonicalDocumentFetcher, locate
from groundwire.grounding import CanonicalGroundingService
from groundwire.nodes import Node
from groundwire.pointers import GcsDocumentPointer, Location
from groundwire.policy import CompositionPolicy
from groundwire.resolution import KnowledgeSource
from groundwire.roots import StorageRoot, StorageRoots
from tests.contracts.misbehaving import Misbehaving, Reply
from tests.contracts.shelves import CloudStorageShelf, hour_long_token
from tests.contracts.test_document_stores import ODD_KEYS
from tests.contracts.test_s3_store import KEYS, UNTRUSTED_KEYS
from tests.fakes import MemoryIndex

SOON = Deadline.after(24 * 3600)
ROOT = StorageRoot("kb", "gcs", "facilities-kb")
BOTH_WAYS = pytest.mark.parametrize("key", ["a.md", "a//b.md"])
UNNAMEABLE = (".", "..")


def reader(store: Misbehaving) -> GcsDocumentFetcher:
    return GcsDocumentFetcher(hour_long_token, store.endpoint)


def at(key: str, version: str | None = None) -> Location:
    return Location(ROOT, key, version)


def stored(body: bytes, **headers: str) -> Reply:
    return Reply(200, body=body, headers={"x-goog-generation": "1700000000000001", "ETag": '"1"'} | headers)


def fetched(store: Misbehaving, location: Location, max_bytes: int = 10_000) -> FetchedDocument:
    return reader(store).fetch(location, deadline=SOON, max_bytes=max_bytes)


# -- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [each for each in UNTRUSTED_KEYS if each not in UNNAMEABLE])
def test_names_that_obstore_would_rewrite_are_one_quoted_segment(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.behaviour = stored(b"text")
    assert fetched(misbehaving, at(key)).content == b"text"
    assert reader(misbehaving).exists(at(key), deadline=SOON)
    paths = [urlsplit(each.path) for each in misbehaving.seen]
    assert {each.path for each in paths} == {f"/storage/v1/b/facilities-kb/o/{quote(key, safe='')}"}
    assert [each.query for each in paths] == ["alt=media", "fields=name"]


@pytest.mark.parametrize("key", UNNAMEABLE)
def test_names_that_no_object_can_have_are_not_asked_for(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.behaviour = stored(b"text")
    assert not reader(misbehaving).exists(at(key), deadline=SOON)
    with pytest.raises(DocumentNotFound):
        fetched(misbehaving, at(key))
    assert misbehaving.seen == []


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(key=KEYS.filter(lambda key: key not in UNNAMEABLE))
@example(key="a%2Fb.md")
@example(key="a/../b#c?d.md")
def test_any_name_is_asked_for_as_itself(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.seen.clear()
    misbehaving.behaviour = stored(b"text")
    store = misbehaving.__dict__.setdefault("reader", reader(misbehaving))
    store.fetch(at(key), deadline=SOON, max_bytes=10)
    (seen,) = misbehaving.seen
    path, query = urlsplit(seen.path).path, urlsplit(seen.path).query
    if obstore_may_read(key):
        assert (unquote(path), query) == (f"/facilities-kb/{key}", "")
    else:
        assert (path, query) == (f"/storage/v1/b/facilities-kb/o/{quote(key, safe='')}", "alt=media")


@pytest.mark.parametrize("key", [*ODD_KEYS, "/lead.md", "trail.md/", "a//b.md", "./a.md", "a/../b.md"])
def test_every_name_of_a_bucket_is_found(cloud_storage: CloudStorageShelf, key: str) -> None:
    location = cloud_storage.put(key, key.encode(), "text/markdown; charset=utf-8")
    document = cloud_storage.store.fetch(location, deadline=SOON, max_bytes=10_000)
    assert (document.content, document.stored_mime_type) == (key.encode(), "text/markdown; charset=utf-8")
    assert cloud_storage.store.exists(location, deadline=SOON)


# -- generations --------------------------------------------------------------------------------


def generation(shelf: CloudStorageShelf, key: str) -> str:
    """What the store itself calls the current one."""
    reply = httpx2.get(f"{shelf.endpoint}/storage/v1/b/{shelf.bucket}/o/{quote(key, safe='')}")
    return str(reply.json()["generation"])


@BOTH_WAYS
def test_the_version_is_the_generation(cloud_storage: CloudStorageShelf, key: str) -> None:
    location = cloud_storage.put(key, b"text")
    document = cloud_storage.store.fetch(location, deadline=SOON, max_bytes=10)
    assert document.version == generation(cloud_storage, key)


@BOTH_WAYS
def test_a_pinned_generation_is_that_one_or_nothing(cloud_storage: CloudStorageShelf, key: str) -> None:
    place = cloud_storage.put(key, b"one")
    pinned = Location(place.root, key, generation(cloud_storage, key))
    assert cloud_storage.store.fetch(pinned, deadline=SOON, max_bytes=10).content == b"one"
    assert cloud_storage.store.exists(pinned, deadline=SOON)
    cloud_storage.put(key, b"two")
    assert cloud_storage.store.fetch(place, deadline=SOON, max_bytes=10).content == b"two"
    assert not cloud_storage.store.exists(pinned, deadline=SOON)
    with pytest.raises(DocumentNotFound):
        cloud_storage.store.fetch(pinned, deadline=SOON, max_bytes=10)


@BOTH_WAYS
def test_the_store_is_asked_for_the_pinned_generation(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.behaviour = stored(b"text")
    fetched(misbehaving, at(key, "1700000000000001"))
    reader(misbehaving).exists(at(key, "1700000000000001"), deadline=SOON)
    assert [parse_qs(urlsplit(each.path).query)["generation"] for each in misbehaving.seen] == [
        ["1700000000000001"]
    ] * 2


@BOTH_WAYS
@pytest.mark.parametrize("version", ["latest", "1&alt=json", "-1", "1.7e15", "\u0661", "9" * 20])
def test_what_is_no_generation_is_not_asked_for(misbehaving: Misbehaving, key: str, version: str) -> None:
    misbehaving.behaviour = stored(b"text")
    with pytest.raises(DocumentNotFound):
        fetched(misbehaving, at(key, version))
    assert misbehaving.seen == []


def test_a_pin_is_no_part_of_a_documents_name() -> None:
    pinned = at("a.md", "1")
    assert (pinned, pinned.uri, hash(pinned)) == (at("a.md"), at("a.md").uri, hash(at("a.md")))
    assert pinned.at("b.md").version is None
    roots = StorageRoots([ROOT])
    pointer = GcsDocumentPointer(gcs_bucket=ROOT.bucket, gcs_object="a.md", gcs_generation="1")
    assert locate(pointer, roots).version == "1"
    assert locate(pointer, roots).pointer() == pointer


def test_a_pointer_pins_its_own_document_and_not_what_that_includes(misbehaving: Misbehaving) -> None:
    markdown = {"Content-Type": "text/markdown"}
    misbehaving.paths = {
        "/facilities%2Dkb/sops%2Fa%2Emd": stored(b"---\nincludes: [b.md]\n---\n", **markdown),
        "/facilities%2Dkb/sops%2Fb%2Emd": stored(b"text", **markdown),
    }
    fetcher = CanonicalDocumentFetcher({"gcs": reader(misbehaving)}, StorageRoots([ROOT]))
    config = CanonicalGroundingConfig(composition_policy=CompositionPolicy())
    pointer = GcsDocumentPointer(
        gcs_bucket=ROOT.bucket, gcs_object="sops/a.md", gcs_generation="1700000000000001"
    )
    result = CanonicalGroundingService(None, fetcher, config).prepare_from_sources(
        [KnowledgeSource(pointer=pointer)], Context("u", "a")
    )
    assert result.complete
    assert [each.location.key for each in result.all_documents_for_attachment] == ["sops/a.md", "sops/b.md"]
    assert result.pointers == (pointer,)
    assert sorted(unquote(each.path) for each in misbehaving.seen) == [
        f"/{ROOT.bucket}/sops/a.md?generation=1700000000000001",
        f"/{ROOT.bucket}/sops/b.md",
    ]


class Repairs:
    """What the indexer would be told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def request(self, locations: Iterable[Location]) -> None:
        self.told += [each.uri for each in locations]

    def learn(self, sightings: Iterable[Node]) -> None:
        self.told += [each.location.uri for each in sightings]


@pytest.mark.parametrize("behaviour", [stored(b"# Old"), Reply(404)], ids=["there", "gone"])
def test_what_a_pin_shows_is_not_what_the_index_should_say(
    misbehaving: Misbehaving, behaviour: Reply
) -> None:
    misbehaving.behaviour = behaviour
    roots = StorageRoots([ROOT])
    index, repairs = MemoryIndex([Node(at("a.md"), "1700000000000009", mime_type="text/markdown")]), Repairs()
    fetcher = CanonicalDocumentFetcher({"gcs": reader(misbehaving)}, roots)
    policy = CompositionPolicy()
    service = CanonicalGroundingService(
        None,
        fetcher,
        CanonicalGroundingConfig(composition_policy=policy),
        loader=CompositionLoader(fetcher, policy, index=index),
        repairs=repairs,
    )

    def ask(generation: str | None) -> None:
        pointer = GcsDocumentPointer(gcs_bucket=ROOT.bucket, gcs_object="a.md", gcs_generation=generation)
        service.prepare_from_sources([KnowledgeSource(pointer=pointer)], Context("u", "a"))

    for _ in range(5):
        ask("1700000000000001")
    assert (index.levels, repairs.told) == ([], [])
    for _ in range(500):  # the index is read beside the store, and may be later than the answer
        ask(None)
        if repairs.told:
            break
    assert set(repairs.told) == {at("a.md").uri}


# -- gzip and sizes -----------------------------------------------------------------------------

TEXT = b"---\nincludes: [b.md]\n---\n" + b"text " * 2_000
PACKED = {"Content-Encoding": "gzip", "Content-Type": "text/markdown"}


@BOTH_WAYS
@pytest.mark.parametrize("encoding", ["gzip", "GZIP"])
def test_a_gzip_encoded_object_is_inflated(misbehaving: Misbehaving, key: str, encoding: str) -> None:
    misbehaving.behaviour = stored(gzip.compress(TEXT), **PACKED | {"Content-Encoding": encoding})
    document = fetched(misbehaving, at(key), len(TEXT))
    assert (document.content, document.stored_mime_type) == (TEXT, "text/markdown")
    (seen,) = misbehaving.seen
    # Else the store would inflate, and not say how long the body is.
    assert {name.lower(): value for name, value in seen.headers.items()}["accept-encoding"] == "gzip"


@BOTH_WAYS
def test_a_gzip_bomb_is_too_large(misbehaving: Misbehaving, key: str) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    misbehaving.behaviour = stored(bomb, **PACKED)
    assert len(bomb) < 100_000
    with pytest.raises(DocumentTooLarge) as caught:
        fetched(misbehaving, at(key), 100_000)
    assert caught.value.size_bytes == 100_001, "no more than that was inflated"


@BOTH_WAYS
def test_one_byte_over_the_limit_is_too_large_when_inflated(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.behaviour = stored(gzip.compress(TEXT), **PACKED)
    with pytest.raises(DocumentTooLarge):
        fetched(misbehaving, at(key), len(TEXT) - 1)


@BOTH_WAYS
@pytest.mark.parametrize("content", [b"", os.urandom(300_000)], ids=["empty", "noise"])
def test_what_grew_when_it_was_compressed_still_fits(
    misbehaving: Misbehaving, key: str, content: bytes
) -> None:
    packed = gzip.compress(content)
    assert len(packed) > len(content)
    misbehaving.behaviour = stored(packed, **PACKED)
    assert fetched(misbehaving, at(key), len(content)).content == content


@BOTH_WAYS
def test_a_gzip_of_several_members_is_whole(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.behaviour = stored(gzip.compress(b"one ") + gzip.compress(b"two"), **PACKED)
    assert fetched(misbehaving, at(key)).content == b"one two"


@BOTH_WAYS
@pytest.mark.parametrize(
    "content",
    [b"# Plain text", gzip.compress(TEXT)[:-20], gzip.compress(TEXT)[:-8] + b"12345678", b"\x1f\x8b\x08\x00"],
    ids=["text", "cut", "wrong checksum", "head"],
)
def test_what_only_claims_to_be_gzip_is_delivered_as_it_is(
    misbehaving: Misbehaving, key: str, content: bytes
) -> None:
    misbehaving.behaviour = stored(content, **PACKED)
    document = fetched(misbehaving, at(key), len(TEXT))
    assert (document.content, document.stored_mime_type) == (content, "application/gzip")


@BOTH_WAYS
def test_a_body_over_the_limit_is_not_read(misbehaving: Misbehaving, key: str) -> None:
    """A body that never comes shows that nobody waits for it."""
    misbehaving.behaviour = "drip"
    with pytest.raises(DocumentTooLarge) as caught:
        fetched(misbehaving, at(key), 999)
    assert caught.value.size_bytes == 1_000


@BOTH_WAYS
def test_a_body_without_its_length_is_read_as_far_as_it_may_go(misbehaving: Misbehaving, key: str) -> None:
    """So the store answers when it inflates on its way out, whatever was accepted."""
    misbehaving.behaviour = stored(TEXT, **{"Content-Length": ""})
    assert fetched(misbehaving, at(key), len(TEXT)).content == TEXT
    with pytest.raises(DocumentTooLarge):
        fetched(misbehaving, at(key), len(TEXT) - 1)
    misbehaving.behaviour = stored(b"x" * 5_000_000, **{"Content-Length": ""})
    with pytest.raises(DocumentTooLarge) as caught:
        fetched(misbehaving, at(key), 1_000)
    assert caught.value.size_bytes < 5_000_000, "the rest was not waited for"


# -- failures -----------------------------------------------------------------------------------


@BOTH_WAYS
@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (Reply(404), "not_found"),
        (Reply(403), "forbidden"),
        (Reply(429), "throttled"),
        (Reply(503), "unavailable"),
        (Reply(500), "unavailable"),
        (Reply(401), "unavailable"),
        (Reply(400), "unavailable"),
        (Reply(302, headers={"Location": "http://127.0.0.1:9/elsewhere"}), "unavailable"),
        ("reset", "unavailable"),
    ],
)
def test_each_failure_has_its_code(misbehaving: Misbehaving, key: str, behaviour: Reply, code: str) -> None:
    misbehaving.behaviour = behaviour
    with pytest.raises(FetchError) as caught:
        fetched(misbehaving, at(key))
    assert (caught.value.code, caught.value.uri) == (code, at(key).uri)


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (Reply(403), "forbidden"),
        (Reply(429), "throttled"),
        (Reply(503), "unavailable"),
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


@BOTH_WAYS
def test_a_body_that_is_cut_off_is_no_document(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.behaviour = "cut"
    with pytest.raises(FetchError) as caught:
        fetched(misbehaving, at(key))
    assert caught.value.code == "unavailable"


def test_one_failure_is_tried_again(misbehaving: Misbehaving) -> None:
    misbehaving.script = [Reply(503)]
    misbehaving.behaviour = stored(b"text")
    assert fetched(misbehaving, at("a.md")).content == b"text"


def test_a_missing_document_is_asked_for_once(misbehaving: Misbehaving) -> None:
    with pytest.raises(DocumentNotFound):
        fetched(misbehaving, at("a.md"))
    assert len(misbehaving.seen) == 1


@BOTH_WAYS
def test_nothing_listens_is_unavailable(key: str) -> None:
    with socket.socket() as bound:  # a port of our own that refuses every connection
        bound.bind(("127.0.0.1", 0))
        store = GcsDocumentFetcher(hour_long_token, f"http://127.0.0.1:{bound.getsockname()[1]}")
        with pytest.raises(FetchError) as caught:
            store.fetch(at(key), deadline=SOON, max_bytes=10)
        assert caught.value.code == "unavailable"


def code_in_time(read: Callable[[], object]) -> str:
    """The code of a read that fails; one that does not end is not waited for, its store lets it go later."""
    pool = ThreadPoolExecutor(1)
    try:
        error = pool.submit(read).exception(timeout=30)
    finally:
        pool.shutdown(wait=False)
    assert isinstance(error, FetchError)
    return error.code


@BOTH_WAYS
@pytest.mark.parametrize("behaviour", ["hang", "drip"])
@pytest.mark.parametrize(("limit", "left"), [(3_600, 0.2), (0.2, 3_600)], ids=["deadline", "own limit"])
def test_a_store_that_hangs_or_drips_costs_no_more_than_there_is(
    misbehaving: Misbehaving,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    behaviour: str,
    limit: float,
    left: float,
) -> None:
    for module in ("gcs", "gcs_json"):
        monkeypatch.setattr(f"groundwire.adapters.{module}.STORE_TIMEOUT_S", limit)
    misbehaving.behaviour = behaviour  # type: ignore[assignment]
    store = reader(misbehaving)
    read = lambda: store.fetch(at(key), deadline=Deadline.after(left), max_bytes=10_000)  # noqa: E731
    assert code_in_time(read) == "unavailable"
    if behaviour == "hang":
        look = lambda: store.exists(at(key), deadline=Deadline.after(left))  # noqa: E731
        assert code_in_time(look) == "unavailable"


@BOTH_WAYS
@pytest.mark.parametrize(("limit", "left"), [(3_600, 0.1), (0.1, 3_600)], ids=["deadline", "own limit"])
def test_a_token_that_never_comes_costs_no_more_than_there_is(
    misbehaving: Misbehaving, monkeypatch: pytest.MonkeyPatch, key: str, limit: float, left: float
) -> None:
    monkeypatch.setattr("groundwire.adapters.gcs.STORE_TIMEOUT_S", limit)
    released = threading.Event()

    def never() -> AccessToken:
        released.wait()
        raise NoToken("let go")

    store = GcsDocumentFetcher(never, misbehaving.endpoint)
    try:
        for read in (
            lambda: store.fetch(at(key), deadline=Deadline.after(left), max_bytes=10),
            lambda: store.exists(at(key), deadline=Deadline.after(left)),
        ):
            assert code_in_time(read) == "unavailable"
    finally:
        released.set()
    assert misbehaving.seen == []


@BOTH_WAYS
def test_nobody_is_asked_after_the_deadline(misbehaving: Misbehaving, key: str) -> None:
    misbehaving.behaviour = stored(b"text")
    with pytest.raises(FetchError) as caught:
        reader(misbehaving).fetch(at(key), deadline=Deadline(0.0), max_bytes=10)
    assert caught.value.code == "unavailable"
    assert misbehaving.seen == []


def test_a_root_may_have_an_endpoint_of_its_own(misbehaving: Misbehaving) -> None:
    misbehaving.behaviour = stored(b"text")
    elsewhere = StorageRoot("kb", "gcs", "facilities-kb", endpoint=misbehaving.endpoint)
    store = GcsDocumentFetcher(hour_long_token, "http://127.0.0.1:9")
    for key in ("a.md", "a//b.md"):
        assert store.fetch(Location(elsewhere, key), deadline=SOON, max_bytes=10).content == b"text"


def test_threads_share_one_reader(cloud_storage: CloudStorageShelf) -> None:
    """Eight threads from cold, each a name for obstore and one for the JSON API."""
    keys = [f"{folder}{number}.md" for number in range(8) for folder in ("a/", "a//")]
    for key in keys:
        cloud_storage.put(key, key.encode())
    together = threading.Barrier(8)

    def read(some: list[str]) -> dict[str, bytes]:
        together.wait()
        return {
            key: cloud_storage.store.fetch(cloud_storage.location(key), deadline=SOON, max_bytes=100).content
            for key in some
        }

    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(read, keys[2 * n : 2 * n + 2]) for n in range(8)]
    assert {k: v for each in found for k, v in each.result().items()} == {key: key.encode() for key in keys}
