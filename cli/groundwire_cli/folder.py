"""A plain folder as a storage root: the command line's store, with a bucket's exactness.

Names are compared exactly on every operating system (I-5); links are followed only inside the root (I-8).
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument
from groundwire.errors import (
    DocumentForbidden,
    DocumentNotFound,
    DocumentTooLarge,
    KeyNotAddressable,
    Unavailable,
)
from groundwire.limits import HEAD_BYTES
from groundwire.media_types import is_text, media_type
from groundwire.pointers import Location
from groundwire.ports import ObjectHead
from groundwire.roots import StorageRoot, is_key

MARKER = "groundwire.toml"
"""A file that makes its folder a storage root."""


def enclosing_root(path: Path) -> Path | None:
    """The nearest folder, `path` or above it, that holds groundwire.toml or .git."""
    folder = path if path.is_dir() else path.parent
    for candidate in (folder, *folder.parents):
        if (candidate / MARKER).exists() or (candidate / ".git").exists():
            return candidate
    return None


class Folder:
    """The files below one folder, by key; a DocumentFetcher and a HeadReader."""

    def __init__(self, path: Path, *, is_whole: bool = False) -> None:
        """`is_whole`: folders below that are marked as storage roots belong to this one all the same."""
        self.path = path.resolve()
        self._is_whole = is_whole
        name = self.path.name or "root"
        self.root = StorageRoot(name, "local", name)
        self._names: dict[Path, frozenset[str]] = {}
        self.unaddressable: list[KeyNotAddressable] = []
        """Files that a walk came upon and no key can name."""

    def location(self, path: Path) -> Location:
        """The location of a file given by its path; ValueError where it is not below the folder.

        KeyNotAddressable where its name can be no key.
        """
        # The link itself is the document: only its folder is resolved.
        absolute = path.parent.resolve() / path.name
        key = absolute.relative_to(self.path).as_posix()
        if not is_key(key):
            raise KeyNotAddressable(self.root.uri(key), "its name is not UTF-8, or too long for a key")
        return Location(self.root, key)

    def root_location(self, key: str) -> Location:
        """The location of a key."""
        return Location(self.root, key)

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        path = self._file(location)
        try:
            size = path.stat().st_size
            if size > max_bytes:
                raise DocumentTooLarge(location.uri, size, max_bytes)
            content = path.read_bytes()
        except PermissionError as error:
            raise DocumentForbidden(location.uri, "the file may not be read") from error
        except OSError as error:
            raise Unavailable(location.uri, f"the file cannot be read: {error.strerror}") from error
        return FetchedDocument(location, content, hashlib.sha256(content).hexdigest())

    def exists(self, location: Location, *, deadline: Deadline) -> bool:
        return self.stored(location.key) is not None

    def head(self, location: Location, max_bytes: int = HEAD_BYTES) -> ObjectHead:
        path = self._file(location)
        try:
            with path.open("rb") as file:
                content = file.read(max_bytes)
                file.seek(0)
                version = hashlib.file_digest(file, "sha256").hexdigest()
            size = path.stat().st_size
        except PermissionError as error:
            raise DocumentForbidden(location.uri, "the file may not be read") from error
        except OSError as error:
            raise Unavailable(location.uri, f"the file cannot be read: {error.strerror}") from error
        return ObjectHead(content, size, version, None, None)

    def stored(self, key: str) -> str | None:
        """`key` where a file has exactly this name, or None."""
        return key if self._existing(key) else None

    def files(self, below: Path | None = None) -> Iterator[str]:
        """The keys of all files below a folder, sorted, without those that begin with a dot.

        A folder that is a storage root of its own is left out unless it is where the walk begins; names
        that can be no keys are noted in `unaddressable`.
        """
        start = below or self.path
        for folder, names, files in os.walk(start):
            here = Path(folder)
            names[:] = sorted(
                name
                for name in names
                if not name.startswith(".") and (self._is_whole or not (here / name / MARKER).exists())
            )
            prefix = here.relative_to(self.path).as_posix()
            for name in sorted(files):
                key = name if prefix == "." else f"{prefix}/{name}"
                if name.startswith("."):
                    continue
                if not is_key(key):
                    what = "its name is not UTF-8, or too long for a key"
                    self.unaddressable.append(KeyNotAddressable(self.root.uri(key), what))
                elif self._existing(key):
                    yield key

    def texts(self, below: Path | None = None) -> Iterator[str]:
        """The keys of all text documents below a folder."""
        return (key for key in self.files(below) if is_text(media_type(None, key)))

    def _file(self, location: Location) -> Path:
        path = self._existing(location.key)
        if path is None:
            raise DocumentNotFound(location.uri, "no such file")
        return path

    def _existing(self, key: str) -> Path | None:
        """The regular file of exactly this name inside the root, links followed."""
        path = self.path
        for segment in key.split("/"):
            if segment in ("", ".", "..") or "\0" in segment or segment not in self._listing(path):
                return None
            path = path / segment
        try:
            real = path.resolve(strict=True)
            inside = real.is_relative_to(self.path) and real.is_file()
        except (OSError, RuntimeError):  # a dangling link, or a loop of links
            return None
        return path if inside else None

    def _listing(self, folder: Path) -> frozenset[str]:
        if folder not in self._names:
            try:
                names = frozenset(os.listdir(folder))  # noqa: PTH208 - names, not paths
            except OSError:
                names = frozenset()
            self._names[folder] = names
        return self._names[folder]


def nested_roots(start: Path) -> Iterator[Path]:
    """Folders below `start` that are storage roots of their own."""
    for folder, names, files in os.walk(start):
        names[:] = sorted(name for name in names if not name.startswith("."))
        if MARKER in files and Path(folder) != start:
            yield Path(folder)
