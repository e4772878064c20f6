"""What every request body is: strict, in both spellings, and no flood of fields."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from groundwire.limits import DOCUMENT_BYTES, MEDIA_TYPE_CHARS
from groundwire.roots import is_unicode


def _checked(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("holds half a surrogate pair")
    return text


Text = Annotated[str, AfterValidator(_checked)]
"""What can be answered and logged: JSON can spell out text that UTF-8 cannot."""
_FIELDS = 100
"""More than any object here has: a million unknown names would make as many errors."""


class Model(BaseModel):
    """An object whose unknown fields and wrong types are refused; camelCase and snake_case are accepted."""

    model_config = ConfigDict(strict=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _is_no_flood(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > _FIELDS:
            raise ValueError(f"an object holds at most {_FIELDS} fields")
        return value


# A parameter is for text alone: botocore leaves one type of forms, with its charset, out of the signature.
_MEDIA_TYPE = r"^(text/[A-Za-z0-9.+-]+(; ?charset=[A-Za-z0-9-]+)?|[a-z]+/[A-Za-z0-9.+-]+)$"


class UploadRequest(Model):
    """A document that is going to be uploaded: its path from the storage root, and what is known of it."""

    path: Text
    root: Text | None = None
    """The storage root's name; may be left out where the caller writes to one only."""
    content_type: Annotated[str, Field(pattern=_MEDIA_TYPE, max_length=MEDIA_TYPE_CHARS)] | None = None
    """By the path's extension where it is left out."""
    size_bytes: Annotated[int, Field(ge=0, le=DOCUMENT_BYTES)] | None = None
    """The store then takes no other size; nothing larger would ever be read."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The store then takes no other content."""
