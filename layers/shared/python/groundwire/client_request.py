"""What an application has in its hands after a search, as the HTTPS API takes it (G-1), pure.

Nothing of Google's is imported: its objects are known by what they can do. What is not recognised is refused,
since the API would take an unknown object for a search that found nothing.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from pydantic.alias_generators import to_camel

from groundwire.composition import policy_json
from groundwire.errors import InvalidRequest
from groundwire.fetching import PrepareDocumentOptions
from groundwire.pointers import (
    CanonicalDocumentPointer,
    GcsDocumentPointer,
    LocalDocumentPointer,
    S3DocumentPointer,
    SharePointDocumentPointer,
)
from groundwire.policy import CompositionPolicy
from groundwire.resolution import KnowledgeSource
from groundwire.shapes import pointer_json

Json = dict[str, Any]

_POINTERS = (S3DocumentPointer, GcsDocumentPointer, SharePointDocumentPointer, LocalDocumentPointer)


def _both(*names: str) -> frozenset[str]:
    """The names in snake_case and in camelCase."""
    return frozenset(names) | {to_camel(name) for name in names}


_OF_A_SOURCE: Final = _both(
    "uri",
    "title",
    "custom_metadata",
    "document_name",
    "file_search_store",
    "source_type",
    "document_uri",
    "file_name",
)
_OF_A_CHUNK: Final = _both("retrieved_context", "web", "maps", "image")
_OF_METADATA: Final = _both(
    "grounding_chunks",
    "grounding_supports",
    "retrieval_metadata",
    "retrieval_queries",
    "search_entry_point",
    "web_search_queries",
    "image_search_queries",
    "google_maps_widget_context_token",
    "source_flagging_uris",
) | {"steps", "outputs", "annotations", "status"}
"""Grounding metadata, and what an answer of the Interactions API has."""
_OF_A_RESPONSE: Final = _both(
    "candidates", "prompt_feedback", "usage_metadata", "model_version", "response_id"
)
"""A whole answer of generateContent; a blocked one has no candidates."""
_OF_A_CANDIDATE: Final = _both("grounding_metadata", "finish_reason")


def ground_request(found: Any) -> Json:
    """The part of a request that says what a search found.

    `found`: grounding metadata, a whole answer of generateContent or of the Interactions API or a candidate,
    each as an object of google-genai or as JSON; a list of sources, chunks, URIs and pointers, or one of
    them; None for a model that returned no grounding at all, which is a search that found nothing.
    InvalidRequest for anything else.
    """
    value = _plain(found, "sources")
    if value is None:
        return {"groundingMetadata": {}}
    if isinstance(value, str):
        return {"sources": [value]}
    if isinstance(value, Mapping):
        return _object(value)
    if not isinstance(value, Sequence):
        raise InvalidRequest("sources", f"a {type(found).__name__} is nothing that a search returns")
    entries = [_entry(each, f"sources.{index}") for index, each in enumerate(value)]
    chunks = [isinstance(each, Mapping) and bool(each.keys() & _OF_A_CHUNK) for each in entries]
    if any(chunks) and all(chunks):
        return {"groundingMetadata": {"groundingChunks": entries}}
    if any(chunks):
        raise InvalidRequest("sources", "holds chunks beside other sources: give one kind at a time")
    return {"sources": entries}


def compose_request(document: "str | CanonicalDocumentPointer | Mapping[str, Any]") -> Json:
    """The part of a request that names one document."""
    if isinstance(document, str):
        return {"uri": document}
    pointer = _entry(document, "pointer")
    if isinstance(pointer, Mapping) and pointer.keys() & {"source_type", "sourceType"}:
        return {"pointer": pointer}
    raise InvalidRequest("pointer", f"a {type(document).__name__} is neither a URI nor a pointer")


def overrides(
    *,
    max_documents: int | None = None,
    allowed_source_types: Sequence[str] | None = None,
    composition_policy: "CompositionPolicy | Mapping[str, Any] | str | None" = None,
    prepare: PrepareDocumentOptions | Mapping[str, Any] | None = None,
) -> Json:
    """What differs from the service's configuration; what is None is left to it."""
    given: Json = {}
    if max_documents is not None:
        given["maxDocuments"] = max_documents
    if allowed_source_types is not None:
        given["allowedSourceTypes"] = list(allowed_source_types)
    if isinstance(composition_policy, CompositionPolicy):
        given["compositionPolicy"] = policy_json(composition_policy)
    elif isinstance(composition_policy, str):
        if composition_policy != "off":
            raise InvalidRequest("composition_policy", 'is a policy, a mapping, "off" or None')
        given["compositionPolicy"] = None
    elif composition_policy is not None:
        given["compositionPolicy"] = dict(composition_policy)
    if isinstance(prepare, PrepareDocumentOptions):
        given["prepareDocumentOptions"] = {
            "forceContentType": prepare.force_content_type,
            "useFilesApi": prepare.use_files_api,
        }
    elif prepare is not None:
        given["prepareDocumentOptions"] = dict(prepare)
    return given


def _object(value: Mapping[str, Any]) -> Json:
    if value.keys() & _OF_A_RESPONSE:
        return {"groundingMetadata": {"groundingChunks": _chunks_of(value.get("candidates"))}}
    if value.keys() & _OF_A_CANDIDATE:
        return {"groundingMetadata": {"groundingChunks": _chunks_of([value])}}
    if not value or value.keys() & _OF_METADATA:
        return {"groundingMetadata": dict(value)}
    if value.keys() & _OF_A_CHUNK:
        return {"groundingMetadata": {"groundingChunks": [dict(value)]}}
    if value.keys() & _OF_A_SOURCE:
        return {"sources": [dict(value)]}
    raise InvalidRequest("sources", "this object is neither grounding metadata nor a source")


def _chunks_of(candidates: Any) -> list[Any]:
    """The chunks of all candidates of an answer."""
    found: list[Any] = []
    for each in candidates or ():
        metadata = _either(each, "groundingMetadata", "grounding_metadata") or {}
        found += _either(metadata, "groundingChunks", "grounding_chunks") or ()
    return found


def written(value: Any) -> Any:
    """JSON for what an application's own dump left as an object or as bytes; TypeError for anything else."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if not callable(getattr(value, "model_dump", None)):
        raise TypeError(f"a {type(value).__name__} is no JSON")
    return _plain(value, "sources")


def _entry(value: Any, where: str) -> Any:
    """One source as the API takes it: text or an object."""
    if isinstance(value, _POINTERS):
        return pointer_json(value)
    if isinstance(value, KnowledgeSource):
        return _source(value)
    plain = _plain(value, where)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, Mapping) and plain.keys() & (_OF_A_SOURCE | _OF_A_CHUNK):
        return dict(plain)
    raise InvalidRequest(where, f"a {type(value).__name__} is no source, chunk, URI or pointer")


def _plain(value: Any, where: str) -> Any:
    """JSON for an object of google-genai, or of any other library on pydantic; pointers in a list of one."""
    if isinstance(value, (*_POINTERS, KnowledgeSource)):
        return [value]
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json", by_alias=True, exclude_none=True)
    if is_dataclass(value):
        raise InvalidRequest(where, f"a {type(value).__name__} is no source")
    return value


def _source(source: KnowledgeSource) -> Any:
    if source.pointer:
        return pointer_json(source.pointer)
    if source.is_web:
        raise InvalidRequest("sources", "a web page is no document of a storage root")
    values = {each.name: getattr(source, each.name) for each in fields(source)}
    values["custom_metadata"] = dict(source.custom_metadata)
    del values["pointer"], values["is_web"]
    return {name: value for name, value in values.items() if value}


def _either(values: Any, camel: str, snake: str) -> Any:
    if not isinstance(values, Mapping):
        raise InvalidRequest("sources", "the answer's candidates are not as Gemini returns them")
    return values[camel] if values.get(camel) is not None else values.get(snake)
