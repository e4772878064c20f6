"""What the HTTPS API takes, strictly: unknown fields and wrong types are refused, both spellings accepted."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from groundwire.roots import SourceType


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class RequestContext(_Model):
    """For the audit record; grants nothing."""

    user_id: int | str | None = None
    auditing_id: int | str | None = None


class CompositionPolicyOverride(_Model):
    """Bounds of the search; larger values than the service's maxima are clamped."""

    traversable_mime_types: list[str] | None = None
    max_depth: Annotated[int, Field(ge=0)] | None = None
    max_docs: Annotated[int, Field(ge=1)] | None = None
    max_include_bytes: Annotated[int, Field(ge=0)] | None = None
    timeout_ms: Annotated[int, Field(ge=1)] | None = None
    on_fetch_error: Literal["skip", "abort"] | None = None


class PrepareOptions(_Model):
    """The form documents are handed over in: `attachment` gives text as bytes too."""

    force_content_type: Literal["text", "attachment"] | None = None


class ComposeOverrides(_Model):
    """A call's configuration, merged over the service's."""

    prepare_document_options: PrepareOptions | None = None
    composition_policy: CompositionPolicyOverride | None = None
    """null switches composition off: the root alone."""


class Overrides(ComposeOverrides):
    """The same, for several documents."""

    max_documents: Annotated[int, Field(ge=1)] | None = None
    allowed_source_types: list[SourceType] | None = None


class GroundRequest(_Model):
    """Search results: Gemini's grounding metadata as it came, or a list of sources, URIs and pointers."""

    grounding_metadata: dict[str, Any] | None = None
    sources: list[str | dict[str, Any]] | None = None
    ctx: RequestContext = RequestContext()
    overrides: Overrides = Overrides()


class ComposeRequest(_Model):
    """One document, by URI or by pointer."""

    uri: str | None = None
    pointer: dict[str, Any] | None = None
    ctx: RequestContext = RequestContext()
    overrides: ComposeOverrides = ComposeOverrides()


def given(model: BaseModel) -> dict[str, Any]:
    """The fields that the caller wrote, under their camelCase names."""
    return model.model_dump(by_alias=True, exclude_unset=True)
