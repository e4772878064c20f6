"""What the request bodies look like where the models of ../models.py leave it open, and an example of each.

The models take more than this: snake_case, and whatever else Gemini returns.
"""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from grounding import models
from grounding.description.shapes import CanonicalUri, Pointer
from groundwire.limits import SOURCES_PER_REQUEST


class _Found(BaseModel):
    """Part of a search result: what is not named here is left alone."""

    model_config = ConfigDict(alias_generator=to_camel, use_attribute_docstrings=True)


class MetadataEntry(_Found):
    """One value of a document's custom metadata."""

    key: str
    string_value: str | None = None
    numeric_value: float | None = None


class KnowledgeSource(_Found):
    """One search result: what it says of the document it was cut from."""

    uri: str | None = None
    title: str | None = None
    """The document's display name in its File Search store."""
    text: str | None = None
    file_search_store: str | None = None
    """`fileSearchStores/<id>`."""
    document_name: str | None = None
    """`fileSearchStores/<id>/documents/<id>`."""
    custom_metadata: list[MetadataEntry] | dict[str, str | float | bool | None] | None = None


class GroundingChunk(_Found):
    """One chunk; without `retrievedContext` it is a web page's."""

    retrieved_context: KnowledgeSource | None = None


class GroundingMetadata(_Found):
    """As Gemini returns it."""

    grounding_chunks: list[GroundingChunk] | None = None


def _exactly_one(**kinds: str) -> dict[str, Any]:
    """Of these fields one is given and not null."""
    return {"oneOf": [{"required": [n], "properties": {n: {"type": kind}}} for n, kind in kinds.items()]}


_Sources = Annotated[list[str | Pointer | KnowledgeSource], Field(max_length=SOURCES_PER_REQUEST)]


class GroundRequest(models.GroundRequest):
    """Search results: Gemini's grounding metadata as it came, or a list of sources, URIs and pointers."""

    model_config = ConfigDict(json_schema_extra=_exactly_one(sources="array", groundingMetadata="object"))

    grounding_metadata: GroundingMetadata | None = None  # type: ignore[assignment]
    sources: _Sources | None = None  # type: ignore[assignment]


class ComposeRequest(models.ComposeRequest):
    """One document, by URI or by pointer."""

    model_config = ConfigDict(json_schema_extra=_exactly_one(uri="string", pointer="object"))

    uri: CanonicalUri | None = None
    pointer: Pointer | None = None


_POINTER: Final = {"source_type": "s3", "s3_bucket": "handbook", "s3_key": "sops/cold-complaint.md"}
_URI: Final = "s3://handbook/sops/cold-complaint.md"
GROUND_EXAMPLES: Final[dict[str, Any]] = {
    "Gemini's grounding metadata": {
        "groundingMetadata": {
            "groundingChunks": [
                {
                    "retrievedContext": {
                        "title": "Cold complaint",
                        "text": "Check the thermostat first.",
                        "fileSearchStore": "fileSearchStores/handbook",
                        "customMetadata": [
                            {"key": name, "stringValue": value} for name, value in _POINTER.items()
                        ],
                    }
                }
            ]
        },
        "ctx": {"userId": 123, "auditingId": 456},
        "overrides": {"maxDocuments": 3, "compositionPolicy": {"maxDepth": 2}},
    },
    "URIs": {"sources": [_URI, "gs://labs/protocols/spill.md"]},
    "Pointers": {"sources": [_POINTER], "overrides": {"prepareDocumentOptions": {"useFilesApi": "auto"}}},
    "A dry run": {"sources": [_URI], "dryRun": True},
}
COMPOSE_EXAMPLES: Final[dict[str, Any]] = {
    "By URI": {"uri": _URI},
    "By pointer": {"pointer": _POINTER, "overrides": {"compositionPolicy": {"onFetchError": "abort"}}},
    "A dry run": {"uri": _URI, "dryRun": True},
}
VALIDATE_EXAMPLES: Final[dict[str, Any]] = {
    "A document before its upload": {
        "path": "sops/cold-complaint.md",
        "content": "---\ntitle: Cold complaint\nincludes: [../shared/glossary.md]\n---\nCheck.\n",
    }
}
UPLOAD_EXAMPLES: Final[dict[str, Any]] = {
    "Any size": {"path": "sops/cold-complaint.md"},
    "Exactly this document": {
        "path": "sops/cold-complaint.md",
        "root": "handbook",
        "contentType": "text/markdown",
        "sizeBytes": 15,
        "sha256": "f29bc64a9d3732b4b9035125fdb3285f5b6455778edca72414671e0ca3b2e0de",
    },
}
URI_EXAMPLE: Final = _URI
