"""Rule G-7: an answer always fits; the largest bodies become URLs, and nothing is lost in silence."""

import base64
import json
import threading
import time
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire import delivery
from groundwire.deadline import Deadline
from groundwire.delivery import Attachment, Delivery, DownloadSigner, DownloadUrl, UseFilesApi, envelope_bytes
from groundwire.documents import FetchedDocument, PreparedDocument, StoredFile
from groundwire.errors import FetchError, ImportRefused, Throttled, Unavailable
from groundwire.fetching import prepare
from groundwire.limits import RESPONSE_BYTES
from groundwire.pointers import Location
from tests.unit.graphs import at

EXPIRES = datetime(2026, 3, 1, 12, 10, tzinfo=UTC)
SMALL = 40_000
TEXTS = [
    "x",
    "äö",
    "日本語の手順",
    '"\\',
    "\n\t|",
    "\x00\x1b\x7f",
    "\u2028\ufeff",
    "😀",
    "a\u0301",
    "</script>",
]


class Signer:
    """Signs every key but those that begin with a slash, as clients would rewrite them."""

    def __init__(self) -> None:
        self.signed: list[str] = []

    def sign(self, location: Location) -> DownloadUrl | None:
        if location.key.startswith("/"):
            return None
        self.signed.append(location.key)
        return DownloadUrl(f"https://kb.example/{location.key}?X-Amz-Signature={'0' * 64}", EXPIRES)


def encode(shape: dict[str, Any]) -> str:
    return orjson.dumps(shape).decode()


def sent(text: str) -> int:
    """The bytes that leave: the answer's text once more as a JSON string, beside its status and headers."""
    headers = {"Content-Type": "application/json", "Server-Timing": "x" * 200}
    response = {"statusCode": 200, "body": text, "isBase64Encoded": False, "headers": headers, "cookies": []}
    return len(json.dumps(response, ensure_ascii=False).encode())


def prepared(document: dict[str, Any]) -> PreparedDocument:
    if "text" in document:
        return prepare(FetchedDocument(at(document["key"]), document["text"].encode(), "v1"))
    content = base64.b64decode(document["geminiDocument"]["data"])
    return prepare(FetchedDocument(at(document["key"]), content, "v1", "application/pdf"))


def answer(*documents: dict[str, Any]) -> tuple[dict[str, Any], list[Attachment]]:
    shape = {"complete": True, "documents": list(documents)}
    return shape, [(document, prepared(document)) for document in documents]


def fit(shape: dict[str, Any], bodies: list[Attachment], signer: DownloadSigner, encode: Any) -> str:
    return Delivery(signer).fit(shape, bodies, encode, deadline=Deadline.after(5))


def text(key: str, body: str) -> dict[str, Any]:
    return {"key": key, "text": body}


def binary(key: str, body: bytes) -> dict[str, Any]:
    data = base64.b64encode(body).decode()
    return {"key": key, "geminiDocument": {"mimeType": "application/pdf", "data": data}}


@st.composite
def documents(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Bodies of hostile text and of bytes, from nothing to more than the envelope."""
    found = []
    for number in range(draw(st.integers(0, 8))):
        key = draw(st.sampled_from(["", "/"])) + f"{number}.md"
        size = draw(st.sampled_from([0, 10, 3_000, 9_000, 30_000, 60_000]))
        any_text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
        body = draw(st.sampled_from(TEXTS) | any_text)
        body *= size // len(body)
        found.append(binary(key, body.encode()) if draw(st.booleans()) else text(key, body))
    return found


@given(before=documents())
def test_an_answer_fits_and_every_body_is_there_or_accounted_for(before: list[dict[str, Any]]) -> None:
    """Measured as it is sent; what was moved is no smaller than what stayed."""
    shape, bodies = answer(*deepcopy(before))
    signer = Signer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", SMALL)
        written = fit(shape, bodies, signer, encode)
    assert sent(written) <= SMALL
    after = json.loads(written)
    assert after == shape
    moved, stayed = [0.0], [float("inf")]
    for old, new in zip(before, after["documents"], strict=True):
        size = len(json.dumps(encode(old), ensure_ascii=False).encode())
        if new == old:
            stayed.append(size)
            continue
        moved.append(size)
        assert "text" not in new
        assert "geminiDocument" not in new
        if old["key"].startswith("/"):
            assert new == {"key": old["key"], "undelivered": "key_not_addressable"}
        else:
            assert new["downloadUrl"]["expiresAt"] == "2026-03-01T12:10:00+00:00"
            assert new["downloadUrl"]["url"].startswith(f"https://kb.example/{old['key']}?")
    assert after["complete"] == all("undelivered" not in document for document in after["documents"])
    unchanged = [s for s in stayed if s != float("inf")]
    assert not moved[1:] or min(moved[1:]) + 60 >= max(unchanged, default=0)


def test_what_fits_is_left_alone() -> None:
    shape, bodies = answer(text("a.md", "x" * 1_000), binary("b.pdf", b"y" * 1_000))
    signer = Signer()
    assert fit(deepcopy(shape), bodies, signer, encode) == encode(shape)
    assert signer.signed == []


def test_only_as_many_as_must_are_moved_and_the_largest_first() -> None:
    third = RESPONSE_BYTES // 3
    sizes = {"small.md": 1_000, "large.md": third + 9_000, "larger.md": third + 9_999, "mid.md": third}
    shape, bodies = answer(*(text(key, "x" * size) for key, size in sizes.items()))
    signer = Signer()
    written = fit(shape, bodies, signer, encode)
    assert signer.signed == ["larger.md"]
    assert sent(written) <= RESPONSE_BYTES


@pytest.mark.parametrize(
    ("kind", "growth"), [("x", 1), ("日本語", 3), ('"\\', 4), ("\x00\x1b", 7), ("\n|", 2)], ids=range(5)
)
def test_the_real_envelope_holds_whatever_the_text(kind: str, growth: int) -> None:
    """Four documents of which not quite three fit, as large as their characters become on the way."""
    body = kind * (RESPONSE_BYTES // 3 // growth // len(kind))
    shape, bodies = answer(*(text(f"{n}.md", body) for n in range(4)))
    written = fit(shape, bodies, Signer(), encode)
    assert RESPONSE_BYTES // 3 < sent(written) <= RESPONSE_BYTES
    assert json.loads(written)["complete"]


def test_an_answer_that_is_all_signposts_is_abridged() -> None:
    """When every body is moved and the rest is still too large, the beginning of what it reports is left."""
    shape, bodies = answer(text("a.md", "secret" * 2_000), text("b.md", "secret"))
    shape["edges"] = ["x" * SMALL]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", SMALL)
        written = fit(shape, bodies, Signer(), encode)
    assert "secret" not in written
    assert sent(written) <= SMALL
    assert json.loads(written)["edges"] == ["x" * 2_048]
    assert (shape["complete"], shape["abridged"]) == (False, True)


def test_an_answer_that_just_fits_without_bodies_is_not_abridged() -> None:
    """It is measured again when the last body is moved; the estimate on the way there is too high."""

    class LongWinded(Signer):
        def sign(self, location: Location) -> DownloadUrl | None:
            return DownloadUrl(f"https://kb.example/?{'0' * 2_000}", EXPIRES)

    shape, bodies = answer(text("a.md", "x" * 3_000))
    shape["edges"] = ["x" * 1_000] * 35
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", SMALL)
        written = fit(shape, bodies, LongWinded(), encode)
    assert json.loads(written) == shape
    assert (shape["complete"], len(shape["edges"])) == (True, 35)
    assert "downloadUrl" in shape["documents"][0]


@given(body=st.text(max_size=200))
def test_the_measure_is_never_less_than_what_is_sent(body: str) -> None:
    assert envelope_bytes(encode({"text": body})) >= sent(encode({"text": body}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", 0)  # measured, not guessed
        assert envelope_bytes(encode({"text": body})) >= sent(encode({"text": body}))


class Shelf:
    """Takes everything, or fails."""

    def __init__(self, error: FetchError | None = None) -> None:
        self.error = error
        self.laid: list[str] = []

    def lay(self, document: PreparedDocument, *, deadline: Deadline) -> DownloadUrl:
        if self.error:
            raise self.error
        self.laid.append(document.location.key)
        return DownloadUrl(f"https://shelf.example/{document.sha256}", EXPIRES)


class Files:
    """Takes every body but those of a key that it refuses."""

    def __init__(self, **refused: FetchError | ImportRefused) -> None:
        self.refused = refused
        self.held: list[str] = []

    def refer(self, document: PreparedDocument, *, deadline: Deadline) -> StoredFile:
        key = document.location.key
        if error := self.refused.get(key.partition(".")[0]):
            raise error
        self.held.append(key)
        return StoredFile(f"files/{key}", f"https://files.example/{key}", document.mime_type, 1_772_366_400.0)


def handed(
    *documents: dict[str, Any],
    shelf: Shelf | None = None,
    files: Files | None = None,
    use: UseFilesApi = "never",
    limit: int = SMALL,
) -> dict[str, Any]:
    """The answer as it is read again; small enough in every case."""
    shape, bodies = answer(*documents)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", limit)
        delivers = Delivery(Signer(), shelf, files)
        written = delivers.fit(shape, bodies, encode, deadline=Deadline.after(5), use_files_api=use)
    assert sent(written) <= limit
    read: dict[str, Any] = json.loads(written)
    return read


def ways(shape: dict[str, Any]) -> list[str]:
    """How each document is handed over."""
    known = ("text", "geminiDocument", "geminiFileReference", "downloadUrl", "undelivered")
    found = [[name for name in known if name in document] for document in shape["documents"]]
    assert all(len(names) == 1 for names in found)
    return [names[0] for names in found]


def test_what_its_store_cannot_give_out_is_laid_on_the_shelf() -> None:
    shelf = Shelf()
    shape = handed(text("/a.md", "x" * SMALL), text("b.md", "x" * SMALL), shelf=shelf)
    assert ways(shape) == ["downloadUrl", "downloadUrl"]
    assert shape["documents"][0]["downloadUrl"]["url"].startswith("https://shelf.example/")
    assert shape["documents"][1]["downloadUrl"]["url"].startswith("https://kb.example/b.md?")
    assert (shelf.laid, shape["complete"]) == (["/a.md"], True)


@pytest.mark.parametrize("error", [Unavailable("s3://kb/a.md", "down"), Throttled("s3://kb/a.md", "busy")])
def test_a_shelf_that_fails_leaves_the_others_and_says_so(error: FetchError) -> None:
    shape = handed(text("/a.md", "x" * SMALL), text("b.md", "y" * 100), shelf=Shelf(error))
    assert ways(shape) == ["undelivered", "text"]
    assert (shape["documents"][0]["undelivered"], shape["complete"]) == (error.code, False)


def test_with_always_every_body_goes_to_the_files_api() -> None:
    files = Files()
    shape = handed(text("a.md", "x"), binary("b.pdf", b"y"), files=files, use="always")
    assert ways(shape) == ["geminiFileReference", "geminiFileReference"]
    assert shape["documents"][1]["geminiFileReference"] == {
        "fileUri": "https://files.example/b.pdf",
        "mimeType": "application/pdf",
        "name": "files/b.pdf",
        "expirationTime": "2026-03-01T12:00:00+00:00",
    }
    assert sorted(files.held) == ["a.md", "b.pdf"]
    assert shape["complete"]


def test_with_auto_only_what_is_no_text_and_would_not_stay_inline_goes_there() -> None:
    """A URL is of more use for text: every application can read it, and every model takes it."""
    files = Files()
    documents = (text("a.md", "x" * SMALL), binary("b.pdf", b"y" * SMALL), binary("c.pdf", b"y" * 10))
    shape = handed(*documents, files=files, use="auto")
    assert ways(shape) == ["downloadUrl", "geminiFileReference", "geminiDocument"]
    assert files.held == ["b.pdf"]


def test_with_never_nothing_goes_there() -> None:
    files = Files()
    shape = handed(binary("b.pdf", b"y" * SMALL), files=files)
    assert (ways(shape), files.held) == (["downloadUrl"], [])


@pytest.mark.parametrize(
    "error", [Unavailable("files/a", "down"), ImportRefused("files/a", "INVALID_ARGUMENT", "no")]
)
@pytest.mark.parametrize("use", ["auto", "always"])
def test_what_the_files_api_does_not_take_goes_another_way_and_says_why(
    error: FetchError | ImportRefused, use: UseFilesApi
) -> None:
    files = Files(a=error)
    shape = handed(binary("a.pdf", b"y" * SMALL), binary("b.pdf", b"y" * SMALL), files=files, use=use)
    assert ways(shape) == ["downloadUrl", "geminiFileReference"]
    assert shape["documents"][0]["filesApi"] == error.code
    assert shape["complete"]


@pytest.mark.parametrize("use", ["auto", "always"])
def test_without_a_files_api_the_option_changes_nothing(use: UseFilesApi) -> None:
    shape = handed(text("a.md", "x"), binary("b.pdf", b"y" * SMALL), use=use)
    assert ways(shape) == ["text", "downloadUrl"]


def test_references_and_urls_stay_whole_when_an_answer_is_abridged() -> None:
    long = "https://kb.example/?" + "0" * 3_000

    class LongWinded(Signer):
        def sign(self, location: Location) -> DownloadUrl | None:
            return DownloadUrl(long, EXPIRES)

    shape, bodies = answer(text("a.md", "x" * SMALL))
    shape["edges"] = ["x" * SMALL]
    written = ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", SMALL)
        written = fit(shape, bodies, LongWinded(), encode)
    assert json.loads(written)["documents"][0]["downloadUrl"]["url"] == long


def test_bodies_that_cannot_all_stay_are_never_encoded_together() -> None:
    """Five documents of 25 MB, encoded three times over, are more than the function's memory."""
    shape, bodies = answer(*(text(f"{number}.md", "x" * SMALL) for number in range(5)))
    encoded: list[int] = []

    def counting(shape: dict[str, Any]) -> str:
        encoded.append(len(encode(shape)))
        return encode(shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", 2 * SMALL)
        fit(shape, bodies, Signer(), counting)
    assert max(encoded) <= 2 * SMALL


@pytest.mark.parametrize("use", ["auto", "always"])
def test_a_files_api_that_hangs_leaves_time_for_the_shelf(use: UseFilesApi) -> None:
    class HungFiles(Files):
        def refer(self, document: PreparedDocument, *, deadline: Deadline) -> StoredFile:
            time.sleep(deadline.left())
            raise Unavailable(document.uri, "still processing")

    class PunctualShelf(Shelf):
        def lay(self, document: PreparedDocument, *, deadline: Deadline) -> DownloadUrl:
            if deadline.passed():
                raise Unavailable(document.uri, "no time was left")
            return super().lay(document, deadline=deadline)

    shape, bodies = answer(binary("/a.pdf", b"y" * SMALL))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", SMALL)
        delivers = Delivery(Signer(), PunctualShelf(), HungFiles())
        delivers.fit(shape, bodies, encode, deadline=Deadline.after(1), use_files_api=use)
    assert ways(shape) == ["downloadUrl"]
    assert shape["documents"][0]["filesApi"] == "unavailable"


class Hanging(Shelf):
    """A shelf, or a Files API, whose socket is silent."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def lay(self, document: PreparedDocument, *, deadline: Deadline) -> DownloadUrl:
        assert self.over.wait(30)
        return super().lay(document, deadline=deadline)

    def refer(self, document: PreparedDocument, *, deadline: Deadline) -> StoredFile:
        assert self.over.wait(30)
        raise Unavailable("files/x", "over")


def test_what_hangs_is_not_waited_for_past_the_deadline() -> None:
    """B-8: and what it says later changes nothing any more."""
    hanging = Hanging()
    shape, bodies = answer(text("/a.md", "x" * SMALL), text("b.md", "y" * SMALL), text("c.md", "z"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", SMALL)
        written = Delivery(Signer(), hanging).fit(shape, bodies, encode, deadline=Deadline.after(0.3))
    hanging.over.set()
    assert ways(json.loads(written)) == ["undelivered", "downloadUrl", "text"]
    assert json.loads(written)["documents"][0]["undelivered"] == "unavailable"


def test_a_files_api_that_hangs_leaves_the_body_where_it_is() -> None:
    hanging = Hanging()
    shape, bodies = answer(text("a.md", "x"), binary("b.pdf", b"y"))
    delivers = Delivery(Signer(), None, hanging)
    written = delivers.fit(shape, bodies, encode, deadline=Deadline.after(0.3), use_files_api="always")
    hanging.over.set()
    read = json.loads(written)
    assert ways(read) == ["text", "geminiDocument"]
    assert [document["filesApi"] for document in read["documents"]] == ["unavailable"] * 2
    assert read["complete"]


def test_urls_are_signed_even_when_no_time_is_left() -> None:
    shape, bodies = answer(*(text(f"{number}.md", "x" * SMALL) for number in range(20)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "RESPONSE_BYTES", SMALL)
        written = Delivery(Signer()).fit(shape, bodies, encode, deadline=Deadline.after(-1))
    assert set(ways(json.loads(written))) == {"downloadUrl"}
