"""From what a search returned to a pointer (G-1, G-3), pure: Gemini's shapes in, pointers or codes out.

camelCase and snake_case are read alike; unknown keys are left alone. No URL is ever fetched: a URI only
names a document of a storage root.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

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
_TRUE: Final = frozenset({"true", "1", "yes"})


@dataclass(frozen=True, slots=True)
class KnowledgeSource:
    """One search result: what it says of the document it was cut from (seed)."""

    uri: str | None = None
    title: str | None = None
    custom_metadata: Mapping[str, Any] = field(default_factory=dict)
    pointer: CanonicalDocumentPointer | None = None
    is_web: bool = False


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
    chunks = _either(metadata, "groundingChunks", "grounding_chunks")
    if chunks is None:
        return []  # some models return none: zero sources is an answer
    if not isinstance(chunks, Sequence) or isinstance(chunks, str):
        raise InvalidRequest("groundingMetadata.groundingChunks", "must be a list")
    found: list[KnowledgeSource] = []
    for index, chunk in enumerate(chunks):
        where = f"groundingMetadata.groundingChunks.{index}"
        if not isinstance(chunk, Mapping):
            raise InvalidRequest(where, "must be an object")
        context = _either(chunk, "retrievedContext", "retrieved_context")
        if context is None:
            found.append(KnowledgeSource(is_web=True))
        elif not isinstance(context, Mapping):
            raise InvalidRequest(f"{where}.retrievedContext", "must be an object")
        else:
            found.append(_source(context, f"{where}.retrievedContext"))
    return found


def _source(value: Any, where: str) -> KnowledgeSource:
    if isinstance(value, str):
        return KnowledgeSource(uri=value)
    if not isinstance(value, Mapping):
        raise InvalidRequest(where, "must be a source, a URI or a pointer")
    if "source_type" in value or "sourceType" in value:
        return KnowledgeSource(pointer=pointer_from(_snake_keys(value), where))
    metadata = _metadata(_either(value, "customMetadata", "custom_metadata"), f"{where}.customMetadata")
    uri, title = value.get("uri"), value.get("title")
    for name, text in (("uri", uri), ("title", title)):
        if text is not None and not isinstance(text, str):
            raise InvalidRequest(f"{where}.{name}", "must be text")
    return KnowledgeSource(uri or None, title, metadata)


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


def resolve(source: KnowledgeSource, roots: StorageRoots) -> CanonicalDocumentPointer:
    """The pointer a source carries; PointerRefused with a G-3 code where it carries none."""
    if source.pointer:
        return source.pointer
    if source.is_web:
        raise PointerRefused("web_source", "the source is a web page, not a document")
    source_type = source.custom_metadata.get("source_type")
    if source_type is not None:
        if source_type not in SOURCE_TYPES:
            raise PointerRefused(
                "source_type_unknown", f"source_type must be one of {', '.join(SOURCE_TYPES)}"
            )
        pointer = _pointer(source.custom_metadata)
        if pointer:
            return pointer
    if source.uri:
        return pointer_from_uri(source.uri, roots)
    raise PointerRefused("metadata_missing", "the source's metadata holds no complete pointer")


def pointer_from(values: Mapping[str, Any], where: str) -> CanonicalDocumentPointer:
    """A pointer that a caller wrote out; InvalidRequest names what is missing."""
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


def _snake_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "".join("_" + char.lower() if char.isupper() else char for char in name): value
        for name, value in values.items()
    }
