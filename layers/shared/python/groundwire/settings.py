"""What each function reads from its environment; the CDK app writes the same models.

`XSettings(...).environment()` gives the variables, `XSettings.model_validate(os.environ)` reads them.
Fields that CDK fills with tokens are plain strings: a pattern would judge the placeholder.
"""

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from groundwire.roots import SourceType, StorageRoot, StorageRoots


class StorageRootSettings(BaseModel):
    """One storage root as deployed (spec section 1); `bucket` is the drive id for SharePoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    source_type: SourceType = "s3"
    bucket: str
    prefix: str = ""
    region: str | None = None
    endpoint: str | None = None
    force_path_style: bool = False
    readers: tuple[str, ...] = ()
    inbox_prefix: str = "inbox/"
    inbox_destinations: tuple[str, ...] = ()


def _from_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


class _FunctionSettings(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    table: str = Field(alias="GROUNDWIRE_TABLE")
    storage_roots: Annotated[tuple[StorageRootSettings, ...], BeforeValidator(_from_json)] = Field(
        alias="GROUNDWIRE_STORAGE_ROOTS"
    )
    reverse_shards: int = Field(default=16, alias="GROUNDWIRE_REVERSE_SHARDS")

    aws_endpoint: str | None = Field(default=None, alias="AWS_ENDPOINT_URL")
    """Where AWS is, as the SDKs read it: an emulator's address, unset on AWS itself."""

    aws_region: str | None = Field(default=None, alias="AWS_REGION")
    """The deployment's region, which the platform sets: a root that names none is there."""

    def roots(self) -> StorageRoots:
        """The storage roots; ConfigurationError where they contradict each other."""
        return StorageRoots(
            StorageRoot(**root.model_dump() | {"region": root.region or self.aws_region})
            for root in self.storage_roots
        )

    def environment(self) -> dict[str, str]:
        """The variables that `model_validate(os.environ)` turns back into this."""
        return {
            name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            for name, value in self.model_dump(mode="json", by_alias=True, exclude_none=True).items()
        }


class ReindexSettings(_FunctionSettings):
    """The environment of the functions that look at documents again (X-9)."""

    index_queue_url: str = Field(alias="GROUNDWIRE_INDEX_QUEUE_URL")
    """The indexer's own queue, for work that would not fit one invocation (X-6)."""
    event_bus: str = Field(default="default", alias="GROUNDWIRE_EVENT_BUS")
    """The name or ARN of the bus that hears of verdicts (X-7)."""


class IndexerSettings(ReindexSettings):
    """The indexer's environment: it does the same, and hears of more than it understands."""

    dead_letter_queue_url: str = Field(alias="GROUNDWIRE_DEAD_LETTER_QUEUE_URL")
    """Where a message that means nothing is kept for an operator to see (X-8)."""


class GroundingSettings(_FunctionSettings):
    """The grounding function's environment."""

    index_queue_url: str = Field(alias="GROUNDWIRE_INDEX_QUEUE_URL")
    """Where the grounding function asks for a repair of a stale index entry (B-9)."""
    debug_callers: Annotated[tuple[str, ...], BeforeValidator(_from_json)] = Field(
        default=(), alias="GROUNDWIRE_DEBUG_CALLERS"
    )
    """Who may ask for debug records of a request, named as in a root's readers (P-3)."""
    open_description: bool = Field(default=False, alias="GROUNDWIRE_OPEN_DESCRIPTION")
    """Whether healthz, openapi.json and the docs page answer without credentials (never in prod)."""
