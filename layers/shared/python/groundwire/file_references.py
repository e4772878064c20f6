"""Use case: bodies in Gemini's Files API, each once (G-6).

A file is named by its content, lives for 48 hours and cannot be prolonged. One that soon ends is put again
under its second name, so that whoever got the first still has it. What was put is noted, so that the next
question need not ask; a file that the service no longer shows is gone, whatever the note says.
"""

import time
from dataclasses import dataclass, replace
from typing import Protocol

from groundwire.deadline import Deadline
from groundwire.documents import PreparedDocument, StoredFile, file_name
from groundwire.errors import Unavailable
from groundwire.limits import FILE_REUSED_S, FILE_TRUSTED_S
from groundwire.ports import FileStore


@dataclass(frozen=True, slots=True)
class FileNote:
    """A file as it was last seen, at `seen` seconds since the epoch."""

    file: StoredFile
    seen: float


class FileNotes(Protocol):
    """What was put into the Files API, by the body's SHA-256 and its type."""

    def get(self, sha256: str, mime_type: str, *, deadline: Deadline) -> FileNote | None:
        """The last note; None where there is none, or its file has ended."""
        ...

    def put(self, sha256: str, mime_type: str, note: FileNote) -> None: ...


class FileReferences:
    """A FileReferrer that puts a body only where it is not there yet."""

    def __init__(self, files: FileStore, notes: FileNotes) -> None:
        self._files = files
        self._notes = notes

    def refer(self, document: PreparedDocument, *, deadline: Deadline) -> StoredFile:
        """A file with the document's bytes that has an hour to live at least.

        ImportRefused where the service will not take them, Unavailable where it does not answer.
        """
        if deadline.passed():  # the notes' own timeouts would come on top, for one document after the other
            raise Unavailable(document.uri, "no time was left to hand it over")
        now = time.time()
        note = self._noted(document, deadline)
        if note and _lasts(note.file, now) and now - note.seen < FILE_TRUSTED_S:
            return note.file
        file = self._held(note.file.name, deadline) if note and _lasts(note.file, now) else None
        if file is None or not _lasts(file, now):
            file = self._put(document, now, deadline)
        self._note(document, FileNote(file, now))
        return file

    def _put(self, document: PreparedDocument, now: float, deadline: Deadline) -> StoredFile:
        file: StoredFile | None = None
        for again in (False, True):
            file = self._files.put(
                file_name(document.content, document.mime_type, again=again),
                document.content,
                mime_type=document.mime_type,
                display_name=document.display_name,
                deadline=deadline,
            )
            if _lasts(file, now):
                break
        assert file is not None
        return file

    def _held(self, name: str, deadline: Deadline) -> StoredFile | None:
        return self._files.get(name, deadline=deadline)

    def _noted(self, document: PreparedDocument, deadline: Deadline) -> FileNote | None:
        try:
            return self._notes.get(document.sha256, document.mime_type, deadline=deadline)
        except Unavailable:
            return None  # the service knows as well, and takes a moment longer

    def _note(self, document: PreparedDocument, note: FileNote) -> None:
        try:
            self._notes.put(document.sha256, document.mime_type, note)
        except Unavailable:
            return  # the file is there; the next question asks the service


def _lasts(file: StoredFile, now: float) -> bool:
    return file.expires is None or file.expires - now > FILE_REUSED_S


class MemoryFileNotes:
    """The FileNotes of one process (P-2)."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, str], FileNote] = {}

    def get(self, sha256: str, mime_type: str, *, deadline: Deadline) -> FileNote | None:
        note = self._notes.get((sha256, mime_type))
        over = note and note.file.expires is not None and note.file.expires <= time.time()
        return None if over else note

    def put(self, sha256: str, mime_type: str, note: FileNote) -> None:
        self._notes[sha256, mime_type] = replace(note)
