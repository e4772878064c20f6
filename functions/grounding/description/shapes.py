"""What the answers and the parts of requests look like: for the description only, nothing is checked by it.

Lists of codes are the code's own tables. Tests hold every answer of theirs against these shapes.
"""

from dataclasses import MISSING, fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema, create_model
from pydantic.alias_generators import to_camel

from groundwire.errors import FetchCode, SourceCode
from groundwire.findings import CODES, Severity, Verdict
from groundwire.graph import Direction
from groundwire.includes import REFUSALS
from groundwire.pointers import GcsDocumentPointer, S3DocumentPointer, SharePointDocumentPointer
from groundwire.policy import OnFetchError
from groundwire.traversal import ABORTED, CycleCode, SkipReason
from groundwire_api.problems import ProblemCode

HIDDEN: Final = "forbidden"
"""Z-1: what callers are told is `not_found` instead."""
FETCH_CODES: Final = [code for code in get_args(FetchCode) if code != HIDDEN]
SOURCE_CODES: Final = [*get_args(SourceCode), *FETCH_CODES]
SKIP_CODES: Final = [*FETCH_CODES, ABORTED, *get_args(CycleCode), *REFUSALS]
DELIVERIES: Final = ("text", "geminiDocument", "geminiFileReference", "downloadUrl", "undelivered")

CanonicalUri = Annotated[
    str,
    Field(
        pattern=r"^(s3|gs|sharepoint)://[^/]+/[\s\S]+$",
        description="s3://bucket/key, gs://bucket/name or sharepoint://drive/path, the key as it is stored",
    ),
]


def _one_of(codes: list[str]) -> Any:
    return WithJsonSchema({"type": "string", "enum": codes})


def _left_out(**more: Any) -> Any:
    """Of a field that is not there where there is nothing to say: null is never written."""
    return Field(default_factory=str, **more)


class Shape(BaseModel):
    """camelCase, and nothing that is not named here."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", use_attribute_docstrings=True)


# -- documents ------------------------------------------------------------------------------------


def _pointer(kind: type, **extra: Any) -> type[BaseModel]:
    """The seed's pointer under the seed's names, as the dataclass has it."""
    types, shape = get_type_hints(kind), {}
    for each in fields(kind):
        required = each.default is MISSING
        what = Annotated[types[each.name], Field(min_length=1)] if required else types[each.name]
        shape[each.name] = (what, ... if required else None)
    source_type = get_args(types["source_type"])[0]
    return create_model(  # type: ignore[call-overload,no-any-return]
        kind.__name__,
        __config__=ConfigDict(extra="forbid", json_schema_extra=extra),
        __doc__=kind.__doc__,
        source_type=(source_type, ...),
        **shape,
    )


_ITEM_OR_PATH: Final = [
    {"required": [name], "properties": {name: {"type": "string", "minLength": 1}}}
    for name in ("sharepoint_item_id", "sharepoint_path")
]
S3Pointer = _pointer(S3DocumentPointer)
GcsPointer = _pointer(GcsDocumentPointer)
SharePointPointer = _pointer(SharePointDocumentPointer, anyOf=_ITEM_OR_PATH)
if TYPE_CHECKING:
    Pointer = Any
else:
    Pointer = Annotated[S3Pointer | GcsPointer | SharePointPointer, Field(discriminator="source_type")]


class Finding(Shape):
    """A remark on a document; `line` and `column` count from 1 in the stored file."""

    code: Annotated[str, _one_of(list(CODES))]
    severity: Severity
    line: int | None
    column: int | None
    message: str
    hint: str
    moved_to: Annotated[str, _left_out()]
    """Where a missing target's content is now, as far as its fingerprint tells."""


class GeminiDocument(Shape):
    """A body as Gemini takes it."""

    mime_type: str
    data: Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]


class GeminiFileReference(Shape):
    """A file that Gemini's Files API holds for a while."""

    file_uri: str
    mime_type: str
    name: str
    expiration_time: datetime | None


class DownloadUrl(Shape):
    """A URL that gives the stored bytes to whoever holds it, until it expires."""

    url: str
    expires_at: datetime


class Document(Shape):
    """A document without its body."""

    uri: str
    pointer: Pointer
    display_name: str
    mime_type: str
    size_bytes: int
    version: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    findings: list[Finding]


_ONE: Final[list[JsonValue]] = [{"required": [name]} for name in DELIVERIES]


class AttachedDocument(Document):
    """A document with its body, in one of five ways; in a dry run without."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [*_ONE, {"not": {"anyOf": _ONE}}]})

    text: Annotated[str, _left_out()]
    gemini_document: Annotated[GeminiDocument, Field(default_factory=str)]
    gemini_file_reference: Annotated[GeminiFileReference, Field(default_factory=str)]
    download_url: Annotated[DownloadUrl, Field(default_factory=str)]
    undelivered: Annotated[str, _one_of(FETCH_CODES), _left_out()]
    """The answer had no room for the body, and there was no other way: why."""
    files_api: Annotated[str, _left_out()]
    """Why Gemini's Files API does not have it although that was asked for."""


# -- bundles and sources --------------------------------------------------------------------------


class Edge(Shape):
    """One include that resolved, whether or not its document is attached."""

    from_: Annotated[str, Field(alias="from")]
    to: str
    relative_path: str
    """As the author wrote it."""
    depth: Annotated[int, Field(ge=1)]


class Skip(Shape):
    """One include that is not attached, and why."""

    parent_uri: str
    relative_path: str
    reason: SkipReason
    code: Annotated[str, _one_of(SKIP_CODES)] | None
    detail: str | None
    line: int | None


class Policy(Shape):
    """The bounds that the search had."""

    traversable_mime_types: list[str]
    max_depth: int
    max_docs: int
    max_include_bytes: int
    timeout_ms: int
    on_fetch_error: OnFetchError


class Bundle(Shape):
    """A document, what it includes, and what became of every include."""

    root: Document
    root_pointer: Pointer
    included: list[Document]
    included_pointers: list[Pointer]
    edges: list[Edge]
    skipped: list[Skip]
    policy: Policy
    complete: bool
    """False where anything was lost, or may have been lost unseen."""
    aborted: bool
    bundle_id: str
    """Equal content, equal id."""


class Source(Shape):
    """What became of one source; it may resolve and still not be fetched."""

    index: int
    status: Literal["resolved", "unresolved"]
    uri: str | None
    code: Annotated[str, _one_of(SOURCE_CODES)] | None
    detail: str | None


class Timings(Shape):
    """Milliseconds of each phase."""

    catalogue_ms: float
    resolve_ms: float
    fetch_ms: float
    compose_ms: float
    total_ms: float


Abridged = Annotated[Literal[True], Field(default_factory=bool)]
"""There and true where even the reports did not fit and only their beginning is there."""


class GroundAnswer(Shape):
    """Bodies stand once, in `allDocumentsForAttachment`; roots first, then includes."""

    pointers: list[Pointer]
    prepared_documents: list[Document]
    composition_bundles: list[Bundle] | None
    """One for each prepared document; null where composition is switched off."""
    all_documents_for_attachment: list[AttachedDocument]
    sources: list[Source]
    complete: bool
    bundle_id: str
    timings: Timings
    index_stale: list[str]
    """Documents of which the index said something else; the answer is by the documents."""
    lookup_errors: list[Annotated[str, Field(pattern="^(index|catalogue|listing|get): [a-z_]+$")]]
    """Ways of looking sources up that failed."""
    abridged: Abridged


class ComposeAnswer(Bundle):
    """A bundle with its bodies."""

    root: AttachedDocument
    included: list[AttachedDocument]  # type: ignore[assignment]
    abridged: Abridged


# -- what the index knows ---------------------------------------------------------------------------


class Include(Shape):
    """One entry of `includes`; `target` is a URI, also of a missing document."""

    raw: str | None
    index: int
    line: int
    target: str | None
    code: Annotated[str, _one_of(list(CODES))] | None


class ValidateAnswer(Shape):
    """What would be found in a document at this place."""

    path: str
    uri: str
    verdict: Verdict
    title: str | None
    canonical_path: str | None
    includes: list[Include]
    findings: list[Finding]
    finding_count: int
    abridged: Abridged
    complete: Annotated[Literal[False], Field(default_factory=bool)]


class DocumentStatus(Shape):
    """What the index knows of a document."""

    uri: str
    verdict: Verdict
    findings: list[Finding]
    """Those that are stored; `findingCount` counts all."""
    finding_count: int
    title: str | None
    canonical_path: str | None
    mime_type: str
    size_bytes: int
    version: str
    version_id: str | None
    includes: list[Include]
    indexed_at: str


class GraphNode(Shape):
    """A document; one that does not exist is named but not there."""

    uri: str
    exists: bool
    title: str | None
    mime_type: str | None
    size_bytes: int | None
    version: str | None


class GraphAnswer(Shape):
    """The documents around one, in order of distance, and the includes between them."""

    uri: str
    direction: Direction
    depth: int
    nodes: list[GraphNode]
    edges: list[Edge]
    truncated: bool
    """Whether there are more."""
    abridged: Abridged
    complete: Annotated[Literal[False], Field(default_factory=bool)]


class Dependent(Shape):
    """A document that includes another, itself or through others."""

    uri: str
    title: str | None
    verdict: Verdict
    distance: Annotated[int, Field(ge=1)]
    why: list[str]
    """The chain of URIs that leads from it to the one that was asked for."""


class DependentsAnswer(Shape):
    """One page; `cursor` continues, null at the end."""

    uri: str
    dependents: list[Dependent]
    cursor: str | None


class UploadAnswer(Shape):
    """Leave to put one document where it belongs, with these headers, until `expiresAt`."""

    uri: str
    url: str
    method: Literal["PUT"]
    headers: dict[str, str]
    expires_at: datetime


class Health(Shape):
    """The function runs."""

    status: Literal["ok"]
    version: str


# -- problems ---------------------------------------------------------------------------------------


class WrongField(Shape):
    """A field as the caller wrote it, dotted where nested."""

    field: str
    problem: str


class Problem(Shape):
    """RFC 9457 problem details."""

    type: str
    title: str
    status: int
    code: ProblemCode
    """Stable: programs decide by it."""
    detail: str
    errors: Annotated[list[WrongField], Field(default_factory=list)]
    """Of a wrong request: what is wrong with it."""


class GatewayRefusal(Shape):
    """What API Gateway says of a request that it does not hand on."""

    message: str
