"""Rule G-6: bodies in the Files API are put once and handed out until shortly before their end."""

import time

import pytest

from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument, PreparedDocument, StoredFile, file_name
from groundwire.errors import ImportRefused, Unavailable
from groundwire.fetching import prepare
from groundwire.file_references import FileNote, FileReferences, MemoryFileNotes
from tests.unit.graphs import at

LIFE = 48 * 3600.0


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.time()
        monkeypatch.setattr("time.time", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Service:
    """A FileStore as the Files API behaves: a name in use is answered with the file that has it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.files: dict[str, tuple[StoredFile, bytes]] = {}
        self.calls: list[str] = []
        self.error: Exception | None = None

    def put(
        self, name: str, content: bytes, *, mime_type: str, display_name: str, deadline: Deadline
    ) -> StoredFile:
        self.calls.append("put")
        if self.error:
            raise self.error
        if held := self._get(name):
            return held
        file = StoredFile(name, f"https://files.example/{name}", mime_type, self.clock.now + LIFE)
        self.files[name] = (file, content)
        return file

    def get(self, name: str, *, deadline: Deadline) -> StoredFile | None:
        self.calls.append("get")
        if self.error:
            raise self.error
        return self._get(name)

    def _get(self, name: str) -> StoredFile | None:
        file, _ = self.files.get(name, (None, b""))
        return file if file and file.expires and file.expires > self.clock.now else None


def document(content: bytes = b"%PDF a plan", mime_type: str = "application/pdf") -> PreparedDocument:
    return prepare(FetchedDocument(at("plan.pdf"), content, "v1", mime_type))


def refer(references: FileReferences, given: PreparedDocument) -> StoredFile:
    return references.refer(given, deadline=Deadline.after(5))


def test_a_body_is_put_once_and_named_by_its_content(clock: Clock) -> None:
    service = Service(clock)
    references = FileReferences(service, MemoryFileNotes())
    first, second = refer(references, document()), refer(references, document())
    assert first == second
    assert service.calls == ["put"]
    assert service.files[first.name][1] == b"%PDF a plan"
    assert refer(references, document(b"another")).name != first.name
    assert refer(references, document(mime_type="text/plain")).name != first.name


def test_a_file_is_looked_after_when_it_was_not_seen_for_a_while(clock: Clock) -> None:
    service = Service(clock)
    references = FileReferences(service, MemoryFileNotes())
    first = refer(references, document())
    clock.now += 301
    assert refer(references, document()) == first
    assert refer(references, document()) == first
    assert service.calls == ["put", "get"]


def test_a_file_that_is_gone_or_not_ours_is_put_again(clock: Clock) -> None:
    """The service answers 403 for all of these."""
    service = Service(clock)
    references = FileReferences(service, MemoryFileNotes())
    first = refer(references, document())
    service.files.clear()
    clock.now += 301
    assert refer(references, document()).name == first.name
    assert service.calls == ["put", "get", "put"]


def test_a_file_that_soon_ends_is_put_under_its_other_name(clock: Clock) -> None:
    """And the first stays for whoever was given it; the names take turns for ever."""
    service = Service(clock)
    references = FileReferences(service, MemoryFileNotes())
    names = []
    for _ in range(4):
        file = refer(references, document())
        assert file.expires is not None
        assert file.expires - clock.now > 3_600
        names.append(file.name)
        clock.now = file.expires - 3_600
    assert names == [names[0], names[1]] * 2
    assert names[0] != names[1] == file_name(b"%PDF a plan", "application/pdf", again=True)


def test_another_process_without_notes_finds_the_file_by_its_name(clock: Clock) -> None:
    service = Service(clock)
    first = refer(FileReferences(service, MemoryFileNotes()), document())
    assert refer(FileReferences(service, MemoryFileNotes()), document()) == first
    assert len(service.files) == 1


class Broken:
    """FileNotes of a table that does not answer."""

    def get(self, sha256: str, mime_type: str, *, deadline: Deadline) -> FileNote | None:
        raise Unavailable("table", "down")

    def put(self, sha256: str, mime_type: str, note: FileNote) -> None:
        raise Unavailable("table", "down")


def test_notes_that_cannot_be_read_or_written_cost_a_request_only(clock: Clock) -> None:
    service = Service(clock)
    references = FileReferences(service, Broken())
    assert refer(references, document()) == refer(references, document())
    assert service.calls == ["put", "put"]


@pytest.mark.parametrize("error", [Unavailable("files/x", "down"), ImportRefused("files/x", "400", "no")])
def test_what_the_service_does_not_take_is_said(clock: Clock, error: Exception) -> None:
    service = Service(clock)
    service.error = error
    with pytest.raises(type(error)):
        refer(FileReferences(service, MemoryFileNotes()), document())


def test_the_notes_are_not_asked_when_the_time_is_over(clock: Clock) -> None:
    """A table that hangs would hold up each of many documents for as long as its client waits."""

    class Asked(MemoryFileNotes):
        def get(self, sha256: str, mime_type: str, *, deadline: Deadline) -> FileNote | None:
            raise AssertionError("asked too late")

    service = Service(clock)
    with pytest.raises(Unavailable):
        FileReferences(service, Asked()).refer(document(), deadline=Deadline.after(-1))
    assert service.calls == []
