"""The contract of DocumentFetcher, on every store, and of HeadReader, on those that are indexed."""

import unicodedata

import pytest

from groundwire.deadline import Deadline
from groundwire.errors import DocumentNotFound, DocumentTooLarge
from groundwire.limits import HEAD_BYTES, KEY_BYTES
from tests.contracts.shelves import IndexedShelf, Shelf

SOON = Deadline.after(24 * 3600)
LONGEST = "/".join(["k" * 200] * 5) + "/" + "x" * 16 + ".md"
ODD_KEYS = [
    "plain.md",
    "a folder/with spaces.md",
    "a+b.md",
    "100%.md",
    "a%20b.md",
    "%2e%2e/%2Fetc.md",
    "a#b.md",
    "a?b=c&d.md",
    "é.md",
    unicodedata.normalize("NFD", "é.md"),
    "日本語/手順.md",
    "a'b\"c`d.md",
    "a\\b.md",
    ".hidden/..y.md",
    "[x]{y}*~^|<>;,=@!$().md",
    "\N{RIGHT-TO-LEFT OVERRIDE}dm.\N{PILE OF POO}",
    "no-extension",
    LONGEST,
]


def test_the_longest_key_is_as_long_as_one_may_be() -> None:
    assert len(LONGEST.encode()) == KEY_BYTES


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_document_is_read_by_exactly_its_key(exact_shelf: Shelf, key: str) -> None:
    location = exact_shelf.put(key, key.encode())
    fetched = exact_shelf.store.fetch(location, deadline=SOON, max_bytes=10_000)
    assert (fetched.location, fetched.content) == (location, key.encode())
    assert exact_shelf.store.exists(location, deadline=SOON)


@pytest.mark.parametrize("key", ODD_KEYS)
def test_a_head_is_read_by_exactly_its_key(indexed_shelf: IndexedShelf, key: str) -> None:
    location = indexed_shelf.put(key, key.encode())
    assert indexed_shelf.store.head(location, HEAD_BYTES).content == key.encode()


SPELLINGS = [
    ("a/b.md", "a//b.md"),
    ("a/b.md", "/a/b.md"),
    ("a/b.md", "a/b.md/"),
    ("a/b.md", "a/./b.md"),
    ("a/b.md", "a/c/../b.md"),
    ("a/b.md", "a%2Fb.md"),
    ("a/b.md", "a"),
    ("a/b.md", "a/"),
    ("a b.md", "a+b.md"),
    ("a b.md", "a%20b.md"),
    ("é.md", unicodedata.normalize("NFD", "é.md")),
    ("b.md", "a\x00.md"),
    ("a/b.md", "b"),
    ("a/b.md", "."),
    ("a/b.md", ".."),
]
"""What was stored, and what does not find it; letter case aside."""
OTHER_SPELLINGS = pytest.mark.parametrize(("stored", "asked"), [*SPELLINGS, ("a/b.md", "a/B.md")])


@OTHER_SPELLINGS
def test_no_other_spelling_finds_it(exact_shelf: Shelf, stored: str, asked: str) -> None:
    exact_shelf.put(stored, b"text")
    location = exact_shelf.location(asked)
    assert not exact_shelf.store.exists(location, deadline=SOON)
    with pytest.raises(DocumentNotFound) as caught:
        exact_shelf.store.fetch(location, deadline=SOON, max_bytes=10_000)
    assert (caught.value.code, caught.value.uri) == ("not_found", location.uri)


@OTHER_SPELLINGS
def test_no_other_spelling_finds_its_head(indexed_shelf: IndexedShelf, stored: str, asked: str) -> None:
    indexed_shelf.put(stored, b"text")
    with pytest.raises(DocumentNotFound):
        indexed_shelf.store.head(indexed_shelf.location(asked), HEAD_BYTES)


def test_an_empty_document_is_a_document(shelf: Shelf) -> None:
    location = shelf.put("empty.md", b"", "text/markdown")
    fetched = shelf.store.fetch(location, deadline=SOON, max_bytes=0)
    assert fetched.content == b""
    assert fetched.version
    assert shelf.store.exists(location, deadline=SOON)


def test_an_empty_document_has_a_head(indexed_shelf: IndexedShelf) -> None:
    location = indexed_shelf.put("empty.md", b"", "text/markdown")
    head = indexed_shelf.store.head(location, HEAD_BYTES)
    assert (head.content, head.size_bytes) == (b"", 0)
    assert head.version == indexed_shelf.store.fetch(location, deadline=SOON, max_bytes=0).version


def test_a_document_may_be_as_large_as_the_limit(shelf: Shelf) -> None:
    location = shelf.put("a.md", b"x" * 5_000)
    assert len(shelf.store.fetch(location, deadline=SOON, max_bytes=5_000).content) == 5_000


def test_one_byte_over_the_limit_is_too_large_and_says_how_large(shelf: Shelf) -> None:
    location = shelf.put("a.md", b"x" * 5_001)
    with pytest.raises(DocumentTooLarge) as caught:
        shelf.store.fetch(location, deadline=SOON, max_bytes=5_000)
    assert (caught.value.code, caught.value.size_bytes) == ("too_large", 5_001)
    assert caught.value.uri == location.uri


@pytest.mark.parametrize("size", [1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, 3 * HEAD_BYTES])
def test_the_head_is_the_first_bytes_and_tells_the_size_of_the_whole(
    indexed_shelf: IndexedShelf, size: int
) -> None:
    content = bytes(number % 251 for number in range(size))
    location = indexed_shelf.put("long.md", content)
    head = indexed_shelf.store.head(location, HEAD_BYTES)
    assert head.content == content[:HEAD_BYTES]
    assert head.size_bytes == size


@pytest.mark.parametrize("wanted", [1, 7, 10, 11])
def test_the_head_is_as_long_as_is_asked(indexed_shelf: IndexedShelf, wanted: int) -> None:
    location = indexed_shelf.put("a.md", b"0123456789")
    assert indexed_shelf.store.head(location, wanted).content == b"0123456789"[:wanted]


def test_the_version_changes_with_the_content(shelf: Shelf) -> None:
    location = shelf.put("a.md", b"one")
    first = shelf.store.fetch(location, deadline=SOON, max_bytes=100).version
    assert shelf.store.fetch(location, deadline=SOON, max_bytes=100).version == first
    shelf.put("a.md", b"two")
    assert shelf.store.fetch(location, deadline=SOON, max_bytes=100).version != first


def test_the_version_of_an_indexed_document_changes_only_then(indexed_shelf: IndexedShelf) -> None:
    location = indexed_shelf.put("a.md", b"one")
    first = indexed_shelf.store.fetch(location, deadline=SOON, max_bytes=100).version
    assert indexed_shelf.store.head(location, HEAD_BYTES).version == first
    indexed_shelf.put("a.md", b"one")
    assert indexed_shelf.store.fetch(location, deadline=SOON, max_bytes=100).version == first


@pytest.mark.parametrize("size", [10, HEAD_BYTES + 10])
def test_head_and_fetch_name_the_same_version(indexed_shelf: IndexedShelf, size: int) -> None:
    location = indexed_shelf.put("a.md", b"x" * size)
    fetched = indexed_shelf.store.fetch(location, deadline=SOON, max_bytes=size)
    assert indexed_shelf.store.head(location, HEAD_BYTES).version == fetched.version
    assert '"' not in fetched.version
