"""The other answers of the HTTPS API as typed values, and how all of them are read from its JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Final

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from groundwire.errors import GroundwireApiError, InvalidRequest
from groundwire.grounded import CompositionEdge, Finding, GroundedResult
from groundwire.grounding import CanonicalGroundingResult
from groundwire.shapes import bundle_json, document_json, pointer_json

Json = Mapping[str, Any]

_SHAPE = ConfigDict(alias_generator=to_camel, extra="ignore")
_adapter: Final[Callable[[Any], TypeAdapter[Any]]] = cache(TypeAdapter)


@dataclass(frozen=True)
class DeclaredInclude:
    """One entry of a document's `includes`; `target` is a URI, also of a missing document."""

    __pydantic_config__ = _SHAPE
    raw: str | None
    index: int
    line: int | None = None
    target: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class DocumentStatus:
    """What the index knows of a document; `indexed_at` is ISO 8601."""

    __pydantic_config__ = _SHAPE
    uri: str
    verdict: str
    findings: tuple[Finding, ...]
    finding_count: int
    """How many there are; `findings` holds the first of each kind."""
    title: str | None
    canonical_path: str | None
    mime_type: str | None
    size_bytes: int | None
    version: str | None
    includes: tuple[DeclaredInclude, ...]
    indexed_at: str | None
    version_id: str | None = None


@dataclass(frozen=True)
class GraphNode:
    """A document of a graph; one that is named and not there does not `exist`."""

    __pydantic_config__ = _SHAPE
    uri: str
    exists: bool
    title: str | None = None
    mime_type: str | None = None
    size_bytes: int | None = None
    version: str | None = None


@dataclass(frozen=True)
class Graph:
    """The include graph around a document; `truncated` where there is more than is shown."""

    __pydantic_config__ = _SHAPE
    uri: str
    direction: str
    depth: int
    nodes: tuple[GraphNode, ...]
    edges: tuple[CompositionEdge, ...]
    truncated: bool


@dataclass(frozen=True)
class Dependent:
    """A document that would lose another one; `why` is the chain of URIs that leads there."""

    __pydantic_config__ = _SHAPE
    uri: str
    verdict: str
    distance: int
    why: tuple[str, ...]
    title: str | None = None


@dataclass(frozen=True)
class DependentsPage:
    """Some dependents; `cursor` asks for those that follow, None where none do."""

    __pydantic_config__ = _SHAPE
    dependents: tuple[Dependent, ...]
    cursor: str | None = None


@dataclass(frozen=True)
class Validation:
    """What the indexer would say of a document that is not uploaded yet."""

    __pydantic_config__ = _SHAPE
    path: str
    uri: str
    verdict: str
    findings: tuple[Finding, ...]
    includes: tuple[DeclaredInclude, ...]
    title: str | None = None
    canonical_path: str | None = None


@dataclass(frozen=True)
class UploadTicket:
    """Leave to store one document at `uri` until `expires_at`: whoever holds `url` has it."""

    __pydantic_config__ = _SHAPE
    url: str = field(repr=False)
    method: str
    uri: str
    expires_at: str
    headers: Annotated[Mapping[str, str], Field(default_factory=dict)]


def read[T](kind: type[T], answer: Any) -> T:
    """The answer as a `kind`; GroundwireApiError (`unreadable_answer`) where it has another shape."""
    try:
        value: T = _adapter(kind).validate_python(answer)
    except ValidationError as error:
        # Never the input: it may be a document.
        wrong = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(map(str, wrong["loc"]))
        raise unreadable(f"{where}: {wrong['type']}") from None
    except InvalidRequest as error:
        raise unreadable(error.field) from None
    return value


def read_json(body: bytes) -> Any:
    """The body as JSON; GroundwireApiError (`unreadable_answer`) where it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise unreadable(f"{len(body)} bytes that are no JSON") from None


def unreadable(detail: str) -> GroundwireApiError:
    """The error of an answer that was no refusal and cannot be used."""
    return GroundwireApiError(200, "unreadable_answer", "The answer cannot be read", detail)


def result_of(answer: Any) -> GroundedResult:
    """The answer of `POST /v1/ground`."""
    return replace(read(GroundedResult, answer), raw=answer)


def composed_of(answer: Any) -> GroundedResult:
    """The answer of `POST /v1/compose`: a result of one bundle and no sources."""
    if not isinstance(answer, Mapping) or not isinstance(answer.get("included"), list):
        raise unreadable("no bundle")
    whole = {
        "allDocumentsForAttachment": [answer.get("root"), *answer["included"]],
        "pointers": [answer.get("rootPointer")],
        "compositionBundles": [answer],
        "sources": [],
        "complete": answer.get("complete"),
        "bundleId": answer.get("bundleId"),
        "abridged": answer.get("abridged", False),
    }
    return replace(read(GroundedResult, whole), raw=answer)


def grounded(result: CanonicalGroundingResult) -> GroundedResult:
    """The same for a result of this very process (P-2), so that a model gets it in the same form."""
    bundles = result.composition_bundles
    shape = {
        "allDocumentsForAttachment": [
            document_json(each, body=True) for each in result.all_documents_for_attachment
        ],
        "pointers": [pointer_json(each) for each in result.pointers],
        "compositionBundles": bundles and [bundle_json(each, bodies=False) for each in bundles],
        "sources": [
            {
                "index": each.index,
                "status": each.status,
                "uri": each.uri,
                "code": each.code,
                "detail": each.detail,
            }
            for each in result.sources
        ],
        "complete": result.complete,
        "bundleId": result.bundle_id,
        "timings": dict(result.timings),
        "indexStale": list(result.index_stale),
        "lookupErrors": list(result.lookup_errors),
    }
    return result_of(shape)
