"""What each function reads from its environment; the CDK app writes the same models.

`XSettings(...).environment()` gives the variables, `XSettings.model_validate(os.environ)` reads them.
Fields that CDK fills with tokens are plain strings: a pattern would judge the placeholder.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from groundwire.roots import SourceType, StorageRoot, StorageRoots


class StorageRootSettings(BaseModel):
    """One storage root as deployed (spec section 1); `bucket` is the drive id for SharePoint."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    source_type: SourceType = "s3"
    bucket: str = Field(validation_alias=AliasChoices("bucket", "drive_id"))
    prefix: str = ""
    region: str | None = None
    endpoint: str | None = None
    force_path_style: bool = False
    readers: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    inbox_prefix: str = "inbox/"
    inbox_destinations: tuple[str, ...] = ()
    delegated: bool = False
    """Z-4: read on behalf of each caller, with their own token; SharePoint only."""


class GoogleSettings(BaseModel):
    """How the function's role becomes a reader of Cloud Storage, without any key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    audience: str = Field(min_length=1)
    """The workload identity provider: `//iam.googleapis.com/projects/<number>/locations/global/...`."""
    impersonation_url: str | None = None
    """The `...:generateAccessToken` of a service account to become; None: the role itself has access."""
    token_url: str = "https://sts.googleapis.com/v1/token"  # noqa: S105 - an address
    """Another one is for tests."""


class MicrosoftSettings(BaseModel):
    """The application that reads SharePoint (Z-4): with a certificate, or vouched for by AWS."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant_id: str = Field(min_length=1)
    client_id: str = Field(min_length=1)
    certificate_secret: str | None = None
    """Name or ARN of the secret that holds `{"private_key": PEM, "public_certificate": PEM}`."""
    keyless: bool = False
    """Whether the function's role is the credential, by AWS's outbound federation."""
    company: str = "Groundwire"
    """Whose traffic it is: Microsoft throttles last whoever says so."""
    endpoint: str = "https://graph.microsoft.com/v1.0"
    """Another one for national clouds; plain http is for an emulator on this machine."""
    authority: str = "https://login.microsoftonline.com"

    @model_validator(mode="after")
    def _one_credential(self) -> "MicrosoftSettings":
        if self.keyless == bool(self.certificate_secret):
            raise ValueError("give either certificate_secret or keyless")
        return self


def _from_json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


class _RootSettings(BaseModel):
    """What every function knows: where documents may be."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    storage_roots: Annotated[tuple[StorageRootSettings, ...], BeforeValidator(_from_json)] = Field(
        alias="GROUNDWIRE_STORAGE_ROOTS"
    )
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


class UploadSettings(_RootSettings):
    """The environment of the function that signs uploads (Z-5): it knows no table and no queue."""


class _FunctionSettings(_RootSettings):
    """What every function knows that reads or writes the index."""

    table: str = Field(alias="GROUNDWIRE_TABLE")
    reverse_shards: int = Field(default=16, alias="GROUNDWIRE_REVERSE_SHARDS")


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


class ImporterSettings(_FunctionSettings):
    """The importer's environment (X-10, G-2); resource names are `fileSearchStores/<store>`."""

    import_store: str | None = Field(default=None, alias="GROUNDWIRE_IMPORT_STORE")
    """The store that documents are imported into; None: nothing is imported."""
    listed_stores: Annotated[tuple[str, ...], BeforeValidator(_from_json)] = Field(
        default=(), alias="GROUNDWIRE_LISTED_STORES"
    )
    """Stores that others fill, which are listed into the catalogue."""
    gemini_key_secret: str = Field(alias="GROUNDWIRE_GEMINI_KEY_SECRET")
    """The name or ARN of the secret that holds the API key; the key itself is in no environment."""
    gemini_endpoint: str | None = Field(default=None, alias="GROUNDWIRE_GEMINI_ENDPOINT")
    """Where Gemini is; None: at Google."""
    import_queue_url: str = Field(alias="GROUNDWIRE_IMPORT_QUEUE_URL")
    """The importer's own queue, for what would not fit one invocation."""
    dead_letter_queue_url: str = Field(alias="GROUNDWIRE_DEAD_LETTER_QUEUE_URL")
    """Where a message that means nothing is kept for an operator to see (X-8)."""


class GroundingSettings(_FunctionSettings):
    """The grounding function's environment."""

    delivery_bucket: str | None = Field(default=None, alias="GROUNDWIRE_DELIVERY_BUCKET")
    """Where bodies are laid out that no store of theirs gives out by URL (G-7)."""
    file_search_stores: Annotated[tuple[str, ...], BeforeValidator(_from_json)] = Field(
        default=(), alias="GROUNDWIRE_FILE_SEARCH_STORES"
    )
    """The File Search stores whose documents may be looked up (G-2)."""
    gemini_key_secret: str | None = Field(default=None, alias="GROUNDWIRE_GEMINI_KEY_SECRET")
    """The name or ARN of the secret that holds the API key; None: nothing asks Gemini."""
    gemini_endpoint: str | None = Field(default=None, alias="GROUNDWIRE_GEMINI_ENDPOINT")
    """Where Gemini is; None: at Google."""
    index_queue_url: str = Field(alias="GROUNDWIRE_INDEX_QUEUE_URL")
    """Where the grounding function asks for a repair of a stale index entry (B-9)."""
    debug_callers: Annotated[tuple[str, ...], BeforeValidator(_from_json)] = Field(
        default=(), alias="GROUNDWIRE_DEBUG_CALLERS"
    )
    """Who may ask for debug records of a request, named as in a root's readers (P-3)."""
    authentication: Literal["iam", "jwt"] = Field(default="iam", alias="GROUNDWIRE_AUTHENTICATION")
    """How API Gateway lets callers in: by signed requests, or by tokens of one issuer."""
    open_description: bool = Field(default=False, alias="GROUNDWIRE_OPEN_DESCRIPTION")
    """Whether healthz, openapi.json and the docs page answer without credentials (never in prod)."""
    microsoft: Annotated[MicrosoftSettings | None, BeforeValidator(_from_json)] = Field(
        default=None, alias="GROUNDWIRE_MICROSOFT"
    )
    """How SharePoint is read; None where no root is there."""
    google: Annotated[GoogleSettings | None, BeforeValidator(_from_json)] = Field(
        default=None, alias="GROUNDWIRE_GOOGLE"
    )
    """How Cloud Storage is read; None where no root is there."""
