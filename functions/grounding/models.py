"""What the HTTPS API takes, strictly: unknown fields and wrong types are refused, both spellings accepted."""

from typing import Annotated, Any, Literal, LiteralString

from pydantic import (
    BaseModel,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from groundwire.limits import SOURCES_PER_REQUEST
from groundwire.roots import SourceType
from groundwire_api.models import Model, Text

_FIRST = Field(fail_fast=True)
"""Of a list's wrong entries the first is named: a million would make as many errors."""

_MimeType = Annotated[Text, WithJsonSchema({"type": "string", "pattern": "/"})]


def _said(problem: LiteralString) -> WrapValidator:
    """One problem for what may be one of two things; pydantic would name our types as if they were fields."""

    def checked(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check(value)
        except ValidationError:
            raise PydanticCustomError("neither", problem) from None

    return WrapValidator(checked)


_Id = Annotated[int | Text, _said("must be text or a whole number")]
_Source = Annotated[str | dict[str, Any], _said("must be a URI or an object")]


class RequestContext(Model):
    """For the audit record; grants nothing."""

    user_id: _Id | None = None
    auditing_id: _Id | None = None


class CompositionPolicyOverride(Model):
    """Bounds of the search; larger values than the service's maxima are clamped."""

    traversable_mime_types: Annotated[list[_MimeType], _FIRST] | None = None
    max_depth: Annotated[int, Field(ge=0)] | None = None
    max_docs: Annotated[int, Field(ge=1)] | None = None
    max_include_bytes: Annotated[int, Field(ge=0)] | None = None
    timeout_ms: Annotated[int, Field(ge=1)] | None = None
    on_fetch_error: Literal["skip", "abort"] | None = None


class PrepareOptions(Model):
    """The form documents are handed over in: `attachment` gives text as bytes too."""

    force_content_type: Literal["text", "attachment"] | None = None
    use_files_api: Literal["auto", "always", "never"] | None = None
    """`never` (the default): inline, else a URL. `auto`: Gemini's Files API for what is no text and would not
    stay inline. `always`: for every document."""


class ComposeOverrides(Model):
    """A call's configuration, merged over the service's."""

    prepare_document_options: PrepareOptions | None = None
    composition_policy: CompositionPolicyOverride | None = None
    """null switches composition off: the root alone."""


class Overrides(ComposeOverrides):
    """The same, for several documents."""

    max_documents: Annotated[int, Field(ge=1)] | None = None
    allowed_source_types: Annotated[list[SourceType], _FIRST] | None = None


class GroundRequest(Model):
    """Search results: Gemini's grounding metadata as it came, or a list of sources, URIs and pointers."""

    grounding_metadata: dict[str, Any] | None = None
    sources: Annotated[list[_Source], Field(max_length=SOURCES_PER_REQUEST, fail_fast=True)] | None = None
    ctx: RequestContext = RequestContext()
    overrides: Overrides = Overrides()
    dry_run: bool = False
    """Everything but the bodies: which documents there would be, of what size, and why others are missing."""


class ComposeRequest(Model):
    """One document, by URI or by pointer."""

    uri: Text | None = None
    pointer: dict[str, Any] | None = None
    ctx: RequestContext = RequestContext()
    overrides: ComposeOverrides = ComposeOverrides()
    dry_run: bool = False
    """Everything but the bodies."""


class ValidateRequest(Model):
    """A document before it is uploaded: its path from the storage root, and its content."""

    path: Text
    content: Text
    root: Text | None = None
    """The storage root's name; may be left out where the caller reads one only."""


def given(model: BaseModel) -> dict[str, Any]:
    """The fields that the caller wrote, under their camelCase names."""
    return model.model_dump(by_alias=True, exclude_unset=True)
