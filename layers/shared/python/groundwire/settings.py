"""What each function reads from its environment; the CDK app writes the same models.

`XSettings(...).environment()` gives the variables, `XSettings.model_validate(os.environ)` reads them.
Fields that CDK fills with tokens are plain strings: a pattern would judge the placeholder.
"""

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class StorageRootSettings(BaseModel):
    """One storage root as deployed (spec section 1); `bucket` is the drive id for SharePoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    source_type: str = "s3"
    bucket: str
    prefix: str = ""
    region: str | None = None
    endpoint: str | None = None
    force_path_style: bool = False
    readers: tuple[str, ...] = ()
    inbox_prefix: str = "inbox/"


def _from_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


class _FunctionSettings(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    table: str = Field(alias="GROUNDWIRE_TABLE")
    storage_roots: Annotated[tuple[StorageRootSettings, ...], BeforeValidator(_from_json)] = Field(
        alias="GROUNDWIRE_STORAGE_ROOTS"
    )
    reverse_shards: int = Field(default=16, alias="GROUNDWIRE_REVERSE_SHARDS")

    def environment(self) -> dict[str, str]:
        """The variables that `model_validate(os.environ)` turns back into this."""
        return {
            name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            for name, value in self.model_dump(mode="json", by_alias=True, exclude_none=True).items()
        }


class IndexerSettings(_FunctionSettings):
    """The indexer's environment."""


class GroundingSettings(_FunctionSettings):
    """The grounding function's environment."""

    index_queue_url: str = Field(alias="GROUNDWIRE_INDEX_QUEUE_URL")
    """Where the grounding function asks for a repair of a stale index entry (B-9)."""
    open_description: bool = Field(default=False, alias="GROUNDWIRE_OPEN_DESCRIPTION")
    """Whether healthz, openapi.json and the docs page answer without credentials (never in prod)."""
