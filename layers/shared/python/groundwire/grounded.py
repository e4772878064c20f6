"""What an application gets from the HTTPS API (G-5, G-6): the JSON as typed values, and what it lacks.

`complete` is hard to overlook: a result that lacks something is false, says so wherever it is shown, and
opens what it gives to a model with a notice.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, SkipValidation
from pydantic.alias_generators import to_camel

from groundwire.errors import ContentUnavailable, IncompleteBundle
from groundwire.findings import LOSES_INCLUDES
from groundwire.grounding import HARMLESS
from groundwire.invisible import visible
from groundwire.media_types import is_delivered_as_text
from groundwire.pointers import CanonicalDocumentPointer
from groundwire.resolution import pointer_from

if TYPE_CHECKING:
    from google.genai.types import Part  # noqa: TID251 - for type checkers only

_SHAPE = ConfigDict(alias_generator=to_camel, extra="ignore")
"""camelCase outside; fields that a newer service adds are passed over."""


def _pointer(value: Any) -> CanonicalDocumentPointer:
    if not isinstance(value, Mapping):
        raise ValueError("is no object")
    return pointer_from(value, "pointer")


Pointer = Annotated[SkipValidation[CanonicalDocumentPointer], BeforeValidator(_pointer)]


@dataclass(frozen=True)
class Finding:
    """A remark on a document; `line` and `column` count from 1."""

    __pydantic_config__ = _SHAPE
    code: str
    severity: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    moved_to: str | None = None


@dataclass(frozen=True)
class DocumentFacts:
    """A document without its body; `sha256` is of the delivered bytes, in hex."""

    __pydantic_config__ = _SHAPE
    uri: str
    pointer: Pointer
    display_name: str
    mime_type: str
    size_bytes: int
    version: str
    sha256: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class GeminiDocument:
    """Bytes, inline: `data` is standard base64."""

    __pydantic_config__ = _SHAPE
    mime_type: str
    data: str = field(repr=False)


@dataclass(frozen=True)
class GeminiFileReference:
    """A file that Gemini's Files API holds until `expiration_time` (ISO 8601)."""

    __pydantic_config__ = _SHAPE
    file_uri: str
    mime_type: str
    name: str
    expiration_time: str | None = None


@dataclass(frozen=True)
class DownloadUrl:
    """Gives the body to whoever holds it, until `expires_at` (ISO 8601): never log it."""

    __pydantic_config__ = _SHAPE
    url: str = field(repr=False)
    expires_at: str


@dataclass(frozen=True)
class GroundedDocument(DocumentFacts):
    """A document with the one way its body came (G-6); with none of them, there is no body."""

    text: str | None = field(default=None, repr=False)
    gemini_document: GeminiDocument | None = None
    gemini_file_reference: GeminiFileReference | None = None
    download_url: DownloadUrl | None = None
    undelivered: str | None = None
    """Why the body could not be delivered, where it could not."""
    files_api: str | None = None
    """Why the Files API did not take it, where that was asked for."""
    download: Callable[["GroundedDocument"], bytes] | None = field(default=None, repr=False, compare=False)
    """How the body behind `download_url` is had; the client's."""

    def content(self) -> bytes:
        """The delivered bytes; those behind a URL are fetched on first use and kept.

        ContentUnavailable where they cannot be had here, ContentChanged where they are others by now,
        GroundwireUnavailable where nobody answers.
        """
        if self.text is not None:
            return self.text.encode()
        return self._bytes

    @cached_property
    def as_text(self) -> str | None:
        """The body as text, None where it is none or cannot be had here; raises as `content` does.

        Bytes that are not UTF-8 are shown as U+FFFD.
        """
        if self.text is not None or self.absence or not is_delivered_as_text(self.mime_type):
            return self.text
        return self.content().decode(errors="replace")

    @property
    def absence(self) -> str | None:
        """Why `content` cannot give the bytes; None where it can try."""
        if self.text is not None or self.gemini_document or self.download_url:
            return None
        if self.gemini_file_reference:
            return "its body is held by Gemini's Files API, which does not give it out"
        return f"its body was not delivered: {self.undelivered or 'it was not asked for'}"

    @cached_property
    def _bytes(self) -> bytes:
        if self.gemini_document:
            return base64.b64decode(self.gemini_document.data)
        if self.absence:
            raise ContentUnavailable(self.uri, self.absence)
        if self.download is None:
            raise ContentUnavailable(self.uri, "no client is there to download its body")
        return self.download(self)


@dataclass(frozen=True)
class CompositionEdge:
    """One include that resolved, whether or not its document was attached."""

    __pydantic_config__ = _SHAPE
    from_uri: Annotated[str, Field(alias="from")]
    to_uri: Annotated[str, Field(alias="to")]
    relative_path: str
    depth: int


@dataclass(frozen=True)
class SkippedInclude:
    """One include that was not fetched; every `reason` but `cycle` means that something is missing (B-5)."""

    __pydantic_config__ = _SHAPE
    parent_uri: str
    relative_path: str
    reason: str
    code: str | None = None
    detail: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class GroundedBundle:
    """A root document and what became of its includes; bodies are in the result's `documents`."""

    __pydantic_config__ = _SHAPE
    root: DocumentFacts
    included: tuple[DocumentFacts, ...]
    edges: tuple[CompositionEdge, ...]
    skipped: tuple[SkippedInclude, ...]
    policy: Mapping[str, Any]
    complete: bool
    aborted: bool
    bundle_id: str


@dataclass(frozen=True)
class SourceOutcome:
    """What became of one source that was given: `uri` where it resolved, `code` where it led to nothing."""

    __pydantic_config__ = _SHAPE
    index: int
    status: Literal["resolved", "unresolved"]
    uri: str | None = None
    code: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Missing:
    """One thing that a complete answer would have held."""

    kind: Literal["source", "include", "body", "unread_includes", "unnamed"]
    """`unread_includes`: a document is here, and what it includes could not be read."""
    subject: str
    """The document's URI, the include as its author wrote it, or which source."""
    reason: str
    code: str | None = None
    detail: str | None = None
    parent_uri: str | None = None
    """Of an include: the document that declares it, on `line`."""
    line: int | None = None

    def __str__(self) -> str:
        where = f", included by {self.parent_uri}" if self.parent_uri else ""
        where += f" on line {self.line}" if self.line else ""
        why = ", ".join(filter(None, (self.reason, self.code, self.detail)))
        return visible(f"{self.subject}{where}: {why}")


@dataclass(frozen=True)
class BodyWarning:
    """A character that cannot be seen, or that reorders what is seen, in a body: `line` counts from 1.

    `count` is how often the document has it; its first lines are named, one value each.
    """

    uri: str
    line: int
    character: str
    """As `U+202E RIGHT-TO-LEFT OVERRIDE`."""
    count: int


@dataclass(frozen=True, repr=False)
class GroundedResult:
    """The answer of `ground` and `compose`; true where there are documents and nothing is missing."""

    __pydantic_config__ = _SHAPE
    documents: Annotated[tuple[GroundedDocument, ...], Field(alias="allDocumentsForAttachment")]
    """In the order to attach them in: roots first, then includes, each once."""
    pointers: tuple[Pointer, ...]
    """Of the roots."""
    bundles: Annotated[tuple[GroundedBundle, ...] | None, Field(alias="compositionBundles")]
    """One for each root; None where composition was off."""
    sources: tuple[SourceOutcome, ...]
    complete: bool
    bundle_id: str
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds of each phase."""
    index_stale: tuple[str, ...] = ()
    lookup_errors: tuple[str, ...] = ()
    abridged: bool = False
    """Whether the reports would not have fitted and only their beginnings are here."""
    raw: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The JSON as it came."""

    def __bool__(self) -> bool:
        return self.complete and bool(self.documents)

    def __repr__(self) -> str:
        state = "complete" if self.complete else f"INCOMPLETE, {len(self.missing)} missing"
        uris = ", ".join(each.uri for each in self.documents)
        return f"<GroundedResult {state}, {len(self.documents)} documents: {uris}>"

    @cached_property
    def missing(self) -> tuple[Missing, ...]:
        """What was lost and why; empty exactly where the result is complete."""
        return () if self.complete else tuple(_missing(self))

    @cached_property
    def warnings(self) -> tuple[BodyWarning, ...]:
        """Characters of I-4's list in the bodies that are text, which stay as they are.

        Bodies behind a URL are downloaded for it; raises as `GroundedDocument.content`.
        """
        from groundwire.rendering import body_warnings

        texts = ((each.uri, each.as_text) for each in self.documents)
        return tuple(found for uri, text in texts if text for found in body_warnings(uri, text))

    def downloading(self, download: Callable[[GroundedDocument], bytes]) -> Self:
        """The same result, whose documents get what is behind their URLs by `download`."""
        return replace(self, documents=tuple(replace(each, download=download) for each in self.documents))

    def require_complete(self) -> Self:
        """The result itself; IncompleteBundle where anything is missing."""
        if not self.complete:
            raise IncompleteBundle(self.missing)
        return self

    def to_text(self) -> str:
        """All documents as one text for a model, each between lines with a random boundary.

        The boundary is new with each call and occurs in no document. Begins with a notice where something
        is missing, or is no text. Raises as `GroundedDocument.content`.
        """
        from groundwire.rendering import pieces

        return "".join(str(piece) for piece in pieces(self))

    def to_gemini_parts(self) -> "list[Part]":
        """All documents as google-genai's parts: text as text, PDF and images as bytes or file references.

        What Gemini does not take is named in the notice and at its place. Raises as
        `GroundedDocument.content`.
        """
        from groundwire.adapters.gemini_parts import gemini_parts  # noqa: TID251 - loaded where it is used

        return gemini_parts(self)


def _missing(result: GroundedResult) -> Iterator[Missing]:
    """What an incomplete answer lacks: at least one value, in the order of sources, bundles and documents."""
    named = [*_lost_sources(result), *_lost_includes(result), *_lost_bodies(result)]
    named += _unread(result.documents, LOSES_INCLUDES)
    # Whether a doubled key was `includes` is not told by its code.
    named = named or [*_unread(result.documents, frozenset({"yaml_duplicate_key"}))]
    yield from named
    if result.abridged:
        yield Missing("unnamed", "the report", "abridged", detail="more may be missing than is named here")
    elif not named and result.bundles is None:
        yield Missing("unnamed", "includes", "composition_off", detail="nobody followed any include")
    elif not named:
        yield Missing("unnamed", "something", "not_named", detail="the service says no more")


def _lost_sources(result: GroundedResult) -> Iterator[Missing]:
    for each in result.sources:
        if each.code and each.code not in HARMLESS:
            reason = "fetch_failed" if each.uri else "not_resolved"
            yield Missing("source", each.uri or f"source {each.index}", reason, each.code, each.detail)


def _lost_includes(result: GroundedResult) -> Iterator[Missing]:
    for bundle in result.bundles or ():
        for each in bundle.skipped:
            if each.reason != "cycle":
                yield Missing(
                    "include",
                    each.relative_path,
                    each.reason,
                    each.code,
                    each.detail,
                    each.parent_uri,
                    each.line,
                )


def _lost_bodies(result: GroundedResult) -> Iterator[Missing]:
    for each in result.documents:
        if each.undelivered:
            yield Missing("body", each.uri, "undelivered", each.undelivered)


def _unread(documents: tuple[GroundedDocument, ...], codes: frozenset[str]) -> Iterator[Missing]:
    for document in documents:
        for each in document.findings:
            if each.code in codes:
                reason = "its includes may be unread"
                yield Missing("unread_includes", document.uri, reason, each.code, line=each.line)
