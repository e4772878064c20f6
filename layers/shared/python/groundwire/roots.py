"""Storage roots, who may use them, and the one question: may this caller read, or write, this root?

Nothing is ever read outside a root. A pointer's bucket, drive, endpoint and region must be a root's (Z-2).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlsplit

from groundwire.errors import ConfigurationError, PointerRefused
from groundwire.limits import KEY_BYTES

SourceType = Literal["s3", "gcs", "sharepoint", "local"]
SOURCE_TYPES: Final[tuple[SourceType, ...]] = ("s3", "gcs", "sharepoint", "local")
_SCHEMES: Final[dict[SourceType, str]] = {
    "s3": "s3",
    "gcs": "gs",
    "sharepoint": "sharepoint",
    "local": "local",
}

ANYONE: Final = "*"
"""An entry of `readers` or `writers`: every caller that API Gateway authenticated."""


@dataclass(frozen=True, slots=True)
class StorageRoot:
    """A place documents may be read from; `bucket` is the drive id on SharePoint, the name on local."""

    name: str
    source_type: SourceType
    bucket: str
    prefix: str = ""
    """Without slashes at its ends; empty for the whole bucket."""
    region: str | None = None
    endpoint: str | None = None
    force_path_style: bool = False
    readers: tuple[str, ...] = ()
    """`*`, an IAM role or user ARN, `group:<id>` or `scope:<name>`; nobody where empty."""
    writers: tuple[str, ...] = ()
    """Z-5: who may upload, named as in `readers`; S3 only."""
    inbox_prefix: str = "inbox/"
    """C-4: relative to the root."""
    inbox_destinations: tuple[str, ...] = ()
    """C-4: folders below the root that the inbox may place into; anywhere outside the inbox where empty."""
    delegated: bool = False
    """Z-4: read on behalf of each caller, with their own token, instead of as the application."""

    def uri(self, key: str) -> str:
        """The canonical URI of the document at the full key `key`."""
        return f"{_SCHEMES[self.source_type]}://{self.bucket}/{key}"

    def contains(self, key: str) -> bool:
        """Whether `key` is a full key below the prefix, compared by whole segments."""
        head = key[: len(self.prefix)]
        is_below = head == self.prefix or (self.source_type == "sharepoint" and _same(head, self.prefix))
        if self.endpoint is not None and not {".", ".."}.isdisjoint(key.split("/")):
            return False  # a store that is not the cloud's own may fold them, and read another document
        return is_key(key) and (not self.prefix or (is_below and key[len(head) :].startswith("/")))

    def full_key(self, relative_path: str) -> str:
        """The full key of a path from the root."""
        return f"{self.prefix}/{relative_path}" if self.prefix else relative_path

    def may_place(self, relative_path: str) -> bool:
        """Whether the inbox may place a document there, compared by whole segments."""
        folders = [folder.strip("/") + "/" for folder in self.inbox_destinations]
        outside = not relative_path.startswith(self.inbox_prefix)
        return outside and (not folders or any(relative_path.startswith(each) for each in folders))

    def relative(self, key: str) -> str:
        """`key` without the prefix; the key must lie inside."""
        return key[len(self.prefix) + 1 :] if self.prefix else key


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as the platform authenticated them; never what a request body says (Z-3)."""

    principal: str
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()

    def names(self) -> Iterator[str]:
        """Everything a root's `readers` and `writers` may call this caller."""
        yield self.principal
        yield from (f"group:{group}" for group in self.groups)
        yield from (f"scope:{scope}" for scope in self.scopes)


IN_PROCESS: Final = Caller("in-process")
"""The application that uses Groundwire as a library, or the person at the command line."""


def may_read(caller: Caller, root: StorageRoot) -> bool:
    """Whether `caller` may read documents of `root` (Z-1)."""
    return _is_among(root.readers, caller)


def may_write(caller: Caller, root: StorageRoot) -> bool:
    """Whether `caller` may upload documents to `root` (Z-5); reading is another right."""
    return _is_among(root.writers, caller)


def _is_among(entries: tuple[str, ...], caller: Caller) -> bool:
    return caller is IN_PROCESS or ANYONE in entries or any(name in entries for name in caller.names())


class StorageRoots:
    """The configured roots; refuses a configuration that could be read in two ways."""

    def __init__(self, roots: Iterable[StorageRoot]) -> None:
        self._roots = tuple(roots)
        self.by_name = {root.name: root for root in self._roots}
        if len(self.by_name) != len(self._roots):
            raise ConfigurationError("two storage roots have the same name")
        homes: dict[tuple[str, str], object] = {}
        readings: dict[tuple[str, str], bool] = {}
        places: set[tuple[str, str, str]] = set()
        for root in self._roots:
            _check(root)
            home = _endpoint(root.endpoint)
            if homes.setdefault((root.source_type, root.bucket), home) != home:
                raise ConfigurationError(f"bucket {root.bucket!r} is configured at two endpoints")
            if readings.setdefault((root.source_type, root.bucket), root.delegated) != root.delegated:
                raise ConfigurationError(f"only some roots of drive {root.bucket!r} are delegated")
            prefix = root.prefix.casefold() if root.source_type == "sharepoint" else root.prefix
            place = (root.source_type, root.bucket, prefix)
            if place in places:
                raise ConfigurationError(f"two storage roots hold {root.uri(root.prefix)!r}")
            places.add(place)

    def __iter__(self) -> Iterator[StorageRoot]:
        return iter(self._roots)

    def innermost(self, root: StorageRoot, key: str) -> StorageRoot:
        """`root`, or the root nested in it that holds the full key: its readers are the document's (Z-1)."""
        place = (root.source_type, root.bucket)
        nested = (each for each in self if (each.source_type, each.bucket) == place and each.contains(key))
        return max(nested, key=lambda each: len(each.prefix), default=root)

    def is_innermost(self, root: StorageRoot, key: str) -> bool:
        """Whether `root` is the one that the full key is indexed under, and judged by."""
        return self.innermost(root, key) == root

    def holding(
        self,
        source_type: str,
        bucket: str,
        key: str,
        *,
        region: str | None = None,
        endpoint: str | None = None,
    ) -> StorageRoot:
        """The root that holds the full key: of several, the one with the longest prefix.

        An omitted region is the root's, an omitted endpoint is the cloud's own; PointerRefused
        (`root_not_configured`) where no root matches.
        """
        if not is_key(key):
            raise PointerRefused("uri_unsupported", "no store holds a key like this")
        matching = [
            root
            for root in self._roots
            if root.source_type == source_type
            and root.bucket == bucket
            and root.contains(key)
            and (region is None or region == root.region)
            # Only an S3 pointer can say where its store is.
            and (source_type != "s3" or _endpoint(endpoint) == _endpoint(root.endpoint))
        ]
        if not matching:
            raise PointerRefused("root_not_configured", "no storage root holds this document")
        return max(matching, key=lambda root: len(root.prefix))


def is_key(key: str) -> bool:
    """Whether a store could hold this key: Unicode text of at most 1,024 bytes."""
    return is_unicode(key) and 0 < len(key.encode("utf-8")) <= KEY_BYTES


def is_unicode(text: str) -> bool:
    """Whether `text` can be written in UTF-8; JSON can spell out half a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _check(root: StorageRoot) -> None:
    if not root.name or not root.bucket or "/" in root.bucket:
        raise ConfigurationError(
            f"storage root {root.name!r}: name and bucket must be given, without slashes"
        )
    if root.prefix and not all(part not in ("", ".", "..") for part in root.prefix.split("/")):
        raise ConfigurationError(f"storage root {root.name!r}: prefix {root.prefix!r} is not a plain path")
    if root.delegated and root.source_type != "sharepoint":
        raise ConfigurationError(f"storage root {root.name!r}: only SharePoint is read on behalf of a caller")
    if root.writers and root.source_type != "s3":
        raise ConfigurationError(f"storage root {root.name!r}: documents are uploaded to S3 only")
    for kind, entries in (("reader", root.readers), ("writer", root.writers)):
        for entry in entries:
            if not entry or any(char in " ,[]" or char < " " for char in entry):
                raise ConfigurationError(
                    f"storage root {root.name!r}: {kind} {entry!r} holds a blank, comma or bracket"
                )


def _same(path: str, other: str) -> bool:
    """As SharePoint compares names: one letter for one letter, whatever their case."""
    return [each.casefold() for each in path] == [each.casefold() for each in other]


def _endpoint(endpoint: str | None) -> tuple[str | int | None, ...] | None:
    """An endpoint in the form two spellings of it share; None is the cloud's own.

    What stands before the host or behind the port makes another endpoint, but for a slash at its end.
    """
    if endpoint is None:
        return None
    try:
        parts = urlsplit(endpoint)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return "", endpoint, -1  # equals no endpoint that is configured
    user, path = parts.netloc.rpartition("@")[0], parts.path.rstrip("/")
    return parts.scheme, user, (parts.hostname or "").lower(), port, path, parts.query, parts.fragment
