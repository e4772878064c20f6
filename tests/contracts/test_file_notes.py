"""The contract of what is noted of files in the Files API: in memory and in DynamoDB, the same answers."""

import time

import pytest

from groundwire.adapters.file_notes import DynamoFileNotes
from groundwire.deadline import Deadline
from groundwire.documents import StoredFile
from groundwire.file_references import FileNote, FileNotes, MemoryFileNotes
from tests.cloud import Cloud


@pytest.fixture(params=["memory", "dynamodb"])
def notes(request: pytest.FixtureRequest) -> FileNotes:
    if request.param == "memory":
        return MemoryFileNotes()
    cloud: Cloud = request.getfixturevalue("cloud")
    return DynamoFileNotes(cloud.dynamodb, cloud.table)


def test_a_note_is_kept_as_it_was_put(notes: FileNotes) -> None:
    file = StoredFile("files/gw-a", "https://files.example/a", "text/plain", time.time() + 100.5)
    assert notes.get("0" * 64, "text/plain", deadline=Deadline.after(5)) is None
    notes.put("0" * 64, "text/plain", FileNote(file, 1_764_460_800.25))
    assert notes.get("0" * 64, "text/plain", deadline=Deadline.after(5)) == FileNote(file, 1_764_460_800.25)
    assert notes.get("0" * 64, "application/pdf", deadline=Deadline.after(5)) is None

    unsaid = StoredFile("files/gw-a", "https://files.example/a", "text/plain", None)
    notes.put("1" * 64, "text/plain", FileNote(unsaid, time.time()))
    held = notes.get("1" * 64, "text/plain", deadline=Deadline.after(5))
    assert held is not None
    assert held.file == unsaid


def test_a_note_of_a_file_that_has_ended_is_none(notes: FileNotes) -> None:
    file = StoredFile("files/gw-a", "https://files.example/a", "text/plain", time.time() - 1)
    notes.put("0" * 64, "text/plain", FileNote(file, time.time() - 100))
    assert notes.get("0" * 64, "text/plain", deadline=Deadline.after(5)) is None
