"""What a FileStore does for us, Gemini's and the fake: G-6."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from groundwire.adapters.gemini import Gemini, GeminiFiles
from groundwire.deadline import Deadline
from groundwire.documents import StoredFile, file_name
from groundwire.errors import ImportRefused, Unavailable
from groundwire.ports import FileStore
from local.servers.gemini import GeminiServer, refusal, reply
from local.servers.loopback import On
from tests.fakes import MemoryFiles

PDF = b"%PDF-1.7\n\x00\xff boiler room"
HOUR = 3600


def soon() -> Deadline:
    return Deadline.after(20)


def put(files: FileStore, content: bytes = PDF, mime_type: str = "application/pdf") -> StoredFile:
    name = file_name(content, mime_type)
    return files.put(name, content, mime_type=mime_type, display_name="Kesselraum 図", deadline=soon())


@dataclass
class Drawer:
    """A FileStore, and what lets time pass for it."""

    files: FileStore
    pass_time: Callable[[float], None]
    puts: Callable[[], int]


@pytest.fixture(params=["memory", "gemini"])
def drawer(request: pytest.FixtureRequest) -> Drawer:
    if request.param == "memory":
        memory = MemoryFiles()
        return Drawer(memory, memory.clock.turn, lambda: memory.puts)
    server: GeminiServer = request.getfixturevalue("gemini_server")
    files: GeminiFiles = request.getfixturevalue("gemini_files")
    return Drawer(files, server.advance, lambda: sum("upload_id" in each.query for each in server.requests))


def test_what_was_put_can_be_got(drawer: Drawer) -> None:
    stored = put(drawer.files)
    assert stored.name == file_name(PDF, "application/pdf")
    assert (stored.mime_type, stored.uri.endswith(stored.name)) == ("application/pdf", True)
    assert drawer.files.get(stored.name, deadline=soon()) == stored


def test_what_is_there_is_not_put_again(drawer: Drawer) -> None:
    assert put(drawer.files) == put(drawer.files)
    assert drawer.puts() == 1


def test_it_lives_for_48_hours(drawer: Drawer) -> None:
    first = put(drawer.files)
    drawer.pass_time(47 * HOUR)
    assert drawer.files.get(first.name, deadline=soon()) == first
    drawer.pass_time(HOUR)
    assert drawer.files.get(first.name, deadline=soon()) is None
    again = put(drawer.files)
    assert (again.expires or 0) - (first.expires or 0) >= 48 * HOUR


def test_what_was_never_put(drawer: Drawer) -> None:
    assert drawer.files.get(file_name(b"other", "text/plain"), deadline=soon()) is None


def test_no_time_no_answer(drawer: Drawer) -> None:
    with pytest.raises(Unavailable):
        drawer.files.get(file_name(PDF, "application/pdf"), deadline=Deadline.after(0))
    with pytest.raises(Unavailable):
        drawer.files.put(
            "files/a", b"a", mime_type="text/plain", display_name="a", deadline=Deadline.after(0)
        )


def test_the_name_is_of_the_content_and_its_type() -> None:
    name = file_name(b"a", "text/plain")
    assert name == "files/gw-ot4mv6e2lj55whtnbufxthm2vafamwub"
    assert len({name, file_name(b"a", "text/html"), file_name(b"b", "text/plain")}) == 3
    # The type ends where the content begins.
    assert file_name(b"nb", "text/plai") != file_name(b"b", "text/plain")


def test_the_service_holds_the_bytes_under_the_given_names(
    gemini_server: GeminiServer, gemini_files: GeminiFiles
) -> None:
    body = hashlib.shake_128(b"").digest(9 * 1024 * 1024)  # more than the SDK sends in one piece
    stored = put(gemini_files, body)
    held = gemini_server.files[stored.name]
    assert (held.content == body, held.display_name, held.state) == (True, "Kesselraum 図", "ACTIVE")
    pieces = [each for each in gemini_server.requests if "upload_id" in each.query]
    assert len(pieces) == 2


def test_a_display_name_is_cut_to_what_the_service_takes(
    gemini_server: GeminiServer, gemini_files: GeminiFiles
) -> None:
    gemini_files.put("files/a", b"a", mime_type="text/plain", display_name="水" * 600, deadline=soon())
    assert gemini_server.files["files/a"].display_name == "水" * 512


def test_a_type_that_the_service_refuses_is_put_as_plain_text(
    gemini_server: GeminiServer, gemini_files: GeminiFiles
) -> None:
    gemini_server.refused_mime_types.add("text/markdown")
    stored = put(gemini_files, b"# Water leak\n", "text/markdown")
    assert (stored.name, stored.mime_type) == (file_name(b"# Water leak\n", "text/markdown"), "text/plain")
    assert put(gemini_files, b"# Water leak\n", "text/markdown") == stored


def test_no_image_becomes_text(gemini_server: GeminiServer, gemini_files: GeminiFiles) -> None:
    gemini_server.refused_mime_types.add("image/png")
    with pytest.raises(ImportRefused) as refused:
        put(gemini_files, b"\x89PNG", "image/png")
    assert refused.value.code == "INVALID_ARGUMENT"
    assert gemini_server.files == {}


@pytest.mark.parametrize(
    ("status", "word"), [(409, "ALREADY_EXISTS"), (400, "INVALID_ARGUMENT"), (403, "PERMISSION_DENIED")]
)
def test_however_the_service_says_that_the_name_is_in_use(
    gemini_server: GeminiServer, gemini_files: GeminiFiles, status: int, word: str
) -> None:
    stored = put(gemini_files)
    gemini_server.script.append(refusal(status, word))
    assert put(gemini_files) == stored


def test_a_file_of_another_key_is_none(gemini_server: GeminiServer, gemini_files: GeminiFiles) -> None:
    gemini_server.keys.add("their-key")
    theirs = Gemini(lambda: "their-key", gemini_server.url)
    stored = put(GeminiFiles(theirs))
    theirs.close()
    assert gemini_files.get(stored.name, deadline=soon()) is None
    with pytest.raises(ImportRefused) as refused:
        put(gemini_files)
    assert refused.value.code == "ALREADY_EXISTS"


def test_a_file_that_is_being_processed_is_waited_for(
    gemini_server: GeminiServer, gemini_files: GeminiFiles
) -> None:
    stored = put(gemini_files)
    gemini_server.files[stored.name].state = "PROCESSING"
    assert gemini_files.get(stored.name, deadline=soon()) == stored
    assert gemini_server.files[stored.name].state == "ACTIVE"


def test_a_file_that_failed_is_none(gemini_server: GeminiServer, gemini_files: GeminiFiles) -> None:
    name = file_name(PDF, "application/pdf")
    failed = {"name": name, "uri": "u", "mimeType": "application/pdf", "state": "FAILED"}
    gemini_server.script.append(On("GET", reply(failed)))
    with pytest.raises(ImportRefused) as refused:
        put(gemini_files)
    assert refused.value.code == "FAILED"
    gemini_server.files[name].state = "FAILED"
    assert gemini_files.get(name, deadline=soon()) is None


def test_a_file_that_expired_by_our_clock_is_none(
    gemini_server: GeminiServer, gemini_files: GeminiFiles
) -> None:
    name = file_name(PDF, "application/pdf")
    late = {"name": name, "uri": "u", "mimeType": "application/pdf", "state": "ACTIVE"}
    gemini_server.script.append(reply(late | {"expirationTime": "2026-03-02T08:15:00Z"}))
    assert gemini_files.get(name, deadline=soon()) is None
