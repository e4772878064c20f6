"""What a search returned (G-1), and the pointer that a source carries itself (G-3), pure.

Gemini's shapes in, sources and pointers out. camelCase and snake_case are read alike; unknown keys are left
alone. No URL is ever fetched: a URI only names a document of a storage root.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from groundwire.catalogue import GROUNDWIRE_ID
from groundwire.errors import InvalidRequest, PointerRefused
from groundwire.limits import SOURCES_PER_REQUEST
from groundwire.pointers import (
    CanonicalDocumentPointer,
    GcsDocumentPointer,
    LocalDocumentPointer,
    S3DocumentPointer,
    SharePointDocumentPointer,
)
from groundwire.roots import SOURCE_TYPES, StorageRoots, is_unicode

_POINTERS: Final[dict[str, Any]] = {
    "s3": S3DocumentPointer,
    "gcs": GcsDocumentPointer,
    "sharepoint": SharePointDocumentPointer,
    "local": LocalDocumentPointer,
}
_NEEDED: Final = {
    "s3": ("s3_bucket", "s3_key"),
    "gcs": ("gcs_bucket", "gcs_object"),
    "sharepoint": ("sharepoint_drive_id",),
    "local": ("local_root", "local_path"),
}
_PARTS: Final = {"source_type"} | {each.name for kind in _POINTERS.values() for each in fields(kind)}
_WEB_CHUNKS: Final = ("web", "maps", "image")
_WEB_CITATIONS: Final = ("url_citation", "place_citation")
_TRUE: Final = frozenset({"true", "1", "yes"})
_DOCUMENT_NAME: Final = re.compile(r"fileSearchStores/[^/\s]{1,200}/documents/[^/\s]{1,200}")
_ID_CHARS: Final = 64
"""More than an id has, and less than a key of the index may."""


@dataclass(frozen=True, slots=True)
class KnowledgeSource:
    """One search result: what it says of the document it was cut from (seed)."""

    uri: str | None = None
    title: str | None = None
    """The display name of its document in the File Search store, or its id there; Gemini may leave it out."""
    custom_metadata: Mapping[str, Any] = field(default_factory=dict)
    pointer: CanonicalDocumentPointer | None = None
    is_web: bool = False
    file_search_store: str | None = None
    document_name: str | None = None
    """The resource name of its document: `fileSearchStores/<store>/documents/<id>`."""
    text: str | None = field(default=None, repr=False)

    @property
    def groundwire_id(self) -> str | None:
        """The id that the importer wrote into the document's metadata (X-10)."""
        return id_in(self.custom_metadata)


def sources(request: Mapping[str, Any]) -> list[KnowledgeSource]:
    """The sources of a request, in order: its `groundingMetadata` or its `sources`.

    InvalidRequest where there is neither, both, or too many.
    """
    metadata, given = _either(request, "groundingMetadata", "grounding_metadata"), request.get("sources")
    if (metadata is None) == (given is None):
        raise InvalidRequest("sources", "give either sources or groundingMetadata")
    name = "sources" if metadata is None else "groundingMetadata"
    if metadata is None:
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InvalidRequest(name, "must be a list of sources, URIs or pointers")
        found = [_source(each, f"sources.{index}") for index, each in enumerate(given)]
    else:
        found = _from_metadata(metadata)
    if len(found) > SOURCES_PER_REQUEST:
        raise InvalidRequest(name, f"holds {len(found)} sources; at most {SOURCES_PER_REQUEST} are allowed")
    return found


def _from_metadata(metadata: Any) -> list[KnowledgeSource]:
    if not isinstance(metadata, Mapping):
        raise InvalidRequest("groundingMetadata", "must be an object, as Gemini returns it")
    if any(name in metadata for name in ("steps", "outputs", "annotations")):
        return [_source(note, where) for note, where in _annotations(metadata, "groundingMetadata")]
    if "candidates" in metadata:  # the whole answer
        candidates = [*_objects(metadata["candidates"], "groundingMetadata.candidates")]
    elif metadata.keys() & {"groundingMetadata", "grounding_metadata"}:  # one of its candidates
        candidates = [(metadata, "groundingMetadata")]
    else:
        return _from_chunks(metadata, "groundingMetadata")
    found: list[KnowledgeSource] = []
    for candidate, where in candidates:
        inner = _either(candidate, "groundingMetadata", "grounding_metadata")
        at = f"{where}.groundingMetadata"
        if not isinstance(inner, Mapping | None):
            raise InvalidRequest(at, "must be an object")
        found += _from_chunks(inner or {}, at)
    return found


def _from_chunks(metadata: Mapping[str, Any], where: str) -> list[KnowledgeSource]:
    """The sources of its chunks; some models return none, and zero sources is an answer."""
    found: list[KnowledgeSource] = []
    chunks = _either(metadata, "groundingChunks", "grounding_chunks")
    for chunk, at in _objects(chunks, f"{where}.groundingChunks"):
        context = _either(chunk, "retrievedContext", "retrieved_context")
        if context is None:
            found.append(KnowledgeSource(is_web=any(chunk.get(kind) is not None for kind in _WEB_CHUNKS)))
        elif not isinstance(context, Mapping):
            raise InvalidRequest(f"{at}.retrievedContext", "must be an object")
        else:
            found.append(_source(context, f"{at}.retrievedContext"))
    return found


def _annotations(answer: Mapping[str, Any], where: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The citations of an answer of the Interactions API: in its steps' content, or by themselves."""
    holders = [(answer, where), *_objects(answer.get("outputs"), f"{where}.outputs")]
    for step, at in _objects(answer.get("steps"), f"{where}.steps"):
        holders += _objects(step.get("content"), f"{at}.content")
    for holder, at in holders:
        for note, place in _objects(holder.get("annotations"), f"{at}.annotations"):
            if note.get("type") in ("file_citation", *_WEB_CITATIONS):
                yield note, place


def _objects(values: Any, where: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    if values is None:
        return
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise InvalidRequest(where, "must be a list")
    for index, value in enumerate(values):
        if not isinstance(value, Mapping):
            raise InvalidRequest(f"{where}.{index}", "must be an object")
        yield value, f"{where}.{index}"


def _source(value: Any, where: str) -> KnowledgeSource:
    if isinstance(value, str):
        return KnowledgeSource(uri=value)
    if not isinstance(value, Mapping):
        raise InvalidRequest(where, "must be a source, a URI or a pointer")
    if "source_type" in value or "sourceType" in value:
        flat = _flat(value, where)
        pointer = _pointer(flat) if flat["source_type"] in SOURCE_TYPES else None
        # One that leads nowhere costs its own source a code, not the request.
        return KnowledgeSource(pointer=pointer, custom_metadata={} if pointer else flat)
    if value.get("type") in _WEB_CITATIONS:
        return KnowledgeSource(is_web=True)
    uri = _written(value, "uri", where) or _written(value, "documentUri", where)
    store = _written(value, "fileSearchStore", where)
    document = _written(value, "documentName", where)
    if document is None and uri and _DOCUMENT_NAME.fullmatch(uri):
        document, uri = uri, None
    return KnowledgeSource(
        uri=uri,
        title=_written(value, "title", where) or _written(value, "fileName", where),
        text=_written(value, "text", where),
        custom_metadata=_metadata(
            _either(value, "customMetadata", "custom_metadata"), f"{where}.customMetadata"
        ),
        file_search_store=store if store is None or "/" in store else f"fileSearchStores/{store}",
        document_name=document if document and _DOCUMENT_NAME.fullmatch(document) else None,
    )


def _written(values: Mapping[str, Any], camel: str, where: str) -> str | None:
    """A text that a source may hold; None where it is missing, null or empty."""
    value = _either(values, camel, _snake(camel))
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"{where}.{camel}", "must be text")
    return value if value and is_unicode(value) else None


def _metadata(value: Any, where: str) -> dict[str, Any]:
    """Custom metadata as a dict, whether it came as one or as Gemini's list of pairs."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidRequest(where, "must be a list of entries or an object")
    found: dict[str, Any] = {}
    for index, entry in enumerate(value):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("key"), str):
            raise InvalidRequest(f"{where}.{index}", "must be an object with a key")
        text = _either(entry, "stringValue", "string_value")
        found[entry["key"]] = text if text is not None else _either(entry, "numericValue", "numeric_value")
    return found


def own_pointer(source: KnowledgeSource, roots: StorageRoots) -> CanonicalDocumentPointer | None:
    """The pointer a source carries itself, in its metadata or as its URI; None where it carries none.

    PointerRefused (`web_source`, `source_type_unknown`) where nothing else could lead to one.
    """
    if source.pointer:
        return source.pointer
    if source.is_web:
        raise PointerRefused("web_source", "the source is a web page, not a document")
    pointer = pointer_in(source.custom_metadata)
    if pointer is None and source.uri:
        try:
            return pointer_from_uri(source.uri, roots)
        except PointerRefused:
            return None
    return pointer


def pointer_in(metadata: Mapping[str, Any]) -> CanonicalDocumentPointer | None:
    """The pointer that a document's metadata holds; None where it holds none, or an incomplete one.

    PointerRefused (`source_type_unknown`) where it speaks of a kind of store that there is not.
    """
    source_type = metadata.get("source_type")
    if source_type is None:
        return None
    if source_type not in SOURCE_TYPES:
        raise PointerRefused("source_type_unknown", f"source_type must be one of {', '.join(SOURCE_TYPES)}")
    return _pointer(metadata)


def id_in(metadata: Mapping[str, Any]) -> str | None:
    """The groundwire_id that a document's metadata holds; None where it holds none that could be one."""
    value = metadata.get(GROUNDWIRE_ID)
    fits = isinstance(value, str) and value.isascii() and 0 < len(value) <= _ID_CHARS
    return value if fits else None


def pointer_from(values: Mapping[str, Any], where: str) -> CanonicalDocumentPointer:
    """A pointer that a caller wrote out; InvalidRequest names what is missing or no text."""
    values = _flat(values, where)
    source_type = values.get("source_type")
    if source_type not in SOURCE_TYPES:
        raise InvalidRequest(f"{where}.source_type", f"must be one of {', '.join(SOURCE_TYPES)}")
    pointer = _pointer(values)
    if pointer is None:
        needed = list(_NEEDED[source_type])
        if source_type == "sharepoint":
            needed.append("sharepoint_item_id or sharepoint_path")
        raise InvalidRequest(where, f"a pointer of type {source_type} needs {' and '.join(needed)}")
    return pointer


def pointer_from_uri(uri: str, roots: StorageRoots) -> CanonicalDocumentPointer:
    """The pointer that a canonical URI names; keys are raw, nothing is decoded (section 1).

    A URI says neither region nor endpoint: they are those of the root that has the bucket.
    """
    scheme, separator, rest = uri.partition("://")
    place, slash, key = rest.partition("/")
    if separator and slash and place and key:
        if scheme == "s3":
            root = next((each for each in roots if (each.source_type, each.bucket) == ("s3", place)), None)
            endpoint = root.endpoint if root else None
            return S3DocumentPointer(s3_bucket=place, s3_key=key, s3_endpoint=endpoint)
        if scheme == "gs":
            return GcsDocumentPointer(gcs_bucket=place, gcs_object=key)
        if scheme == "sharepoint":
            return SharePointDocumentPointer(sharepoint_drive_id=place, sharepoint_path=key)
        if scheme == "local":
            return LocalDocumentPointer(local_root=place, local_path=key)
    raise PointerRefused("uri_unsupported", "a document URI is s3://, gs:// or sharepoint:// with a key")


def _pointer(values: Mapping[str, Any]) -> CanonicalDocumentPointer | None:
    """The pointer in flat values, or None where it is incomplete; numbers and booleans may be text."""
    source_type = str(values["source_type"])
    kind = _POINTERS[source_type]
    known = {each.name for each in fields(kind)}
    given = {name: _text(value) for name, value in values.items() if name in known}
    given = {name: value for name, value in given.items() if value}
    if source_type == "sharepoint" and not given.keys() & {"sharepoint_item_id", "sharepoint_path"}:
        return None
    if not given.keys() >= set(_NEEDED[source_type]):
        return None
    arguments: dict[str, Any] = dict(given)
    if "s3_force_path_style" in arguments:
        arguments["s3_force_path_style"] = arguments["s3_force_path_style"].lower() in _TRUE
    pointer: CanonicalDocumentPointer = kind(**arguments)
    return pointer


def _text(value: Any) -> str | None:
    """A metadata value as text: the service returns every number as a float."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    return value if isinstance(value, str) and is_unicode(value) else None


def _either(values: Mapping[str, Any], camel: str, snake: str) -> Any:
    return values[camel] if values.get(camel) is not None else values.get(snake)


def _flat(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """What a caller wrote as a pointer, in snake_case; InvalidRequest where a part of one is no text."""
    flat = {_snake(name): value for name, value in values.items()}
    for name in _PARTS & flat.keys():
        if isinstance(flat[name], Mapping | list):
            raise InvalidRequest(f"{where}.{name}", "must be text")
    return flat


def _snake(name: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in name)
