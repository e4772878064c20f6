"""What the HTTPS API takes, strictly: unknown fields and wrong types are refused, both spellings accepted."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from groundwire.limits import SOURCES_PER_REQUEST
from groundwire.roots import SourceType, is_unicode


def _checked(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("holds half a surrogate pair")
    return text


_Text = Annotated[str, AfterValidator(_checked)]
"""What can be answered and logged: JSON can spell out text that UTF-8 cannot."""
_FIELDS = 100
"""More than any object here has: a million unknown names would make as many errors."""
_FIRST = Field(fail_fast=True)
"""Of a list's wrong entries the first is named, for the same reason."""


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _is_no_flood(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > _FIELDS:
            raise ValueError(f"an object holds at most {_FIELDS} fields")
        return value


class RequestContext(_Model):
    """For the audit record; grants nothing."""

    user_id: int | _Text | None = None
    auditing_id: int | _Text | None = None


class CompositionPolicyOverride(_Model):
    """Bounds of the search; larger values than the service's maxima are clamped."""

    traversable_mime_types: Annotated[list[_Text], _FIRST] | None = None
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
    allowed_source_types: Annotated[list[SourceType], _FIRST] | None = None


class GroundRequest(_Model):
    """Search results: Gemini's grounding metadata as it came, or a list of sources, URIs and pointers."""

    grounding_metadata: dict[str, Any] | None = None
    sources: (
        Annotated[list[str | dict[str, Any]], Field(max_length=SOURCES_PER_REQUEST, fail_fast=True)] | None
    ) = None
    ctx: RequestContext = RequestContext()
    overrides: Overrides = Overrides()


class ComposeRequest(_Model):
    """One document, by URI or by pointer."""

    uri: _Text | None = None
    pointer: dict[str, Any] | None = None
    ctx: RequestContext = RequestContext()
    overrides: ComposeOverrides = ComposeOverrides()


def given(model: BaseModel) -> dict[str, Any]:
    """The fields that the caller wrote, under their camelCase names."""
    return model.model_dump(by_alias=True, exclude_unset=True)
