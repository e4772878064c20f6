"""What differs between the places Groundwire is deployed to, and nothing else.

An environment is a value: constructs read it, none of them asks for its name. To use a bucket that already
exists, name it in a storage root; it is then a host whose settings are merged with ours, never replaced.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

from groundwire import roots
from groundwire.errors import ConfigurationError
from groundwire.roots import StorageRoots

_WHOLE_ARN = r"arn:[a-z-]+:secretsmanager:[a-z0-9-]+:\d{12}:secret:\S+-\w{6}"


class EnvironmentRefused(ValueError):
    """An environment that is not known, or one that contradicts itself; the text says what to do."""


@dataclass(frozen=True, kw_only=True)
class StorageRoot:
    """One place in S3 that documents may be read from (spec, section 1)."""

    name: str
    bucket: str | None = None
    """An existing bucket's name; None: this stack creates the bucket."""
    prefix: str = ""
    """The folder that is the root, without slashes at its ends; empty: the whole bucket."""
    region: str | None = None
    """The bucket's region; None: the deployment's."""
    readers: tuple[str, ...] = ()
    """`*` (every caller the API lets in), IAM role or user ARNs, `group:<id>`, `scope:<name>` (Z-1)."""
    writers: tuple[str, ...] = ()
    """Who may upload through the API, named as in `readers` (Z-5); empty: nobody."""
    inbox_prefix: str = "inbox/"
    """Below the prefix: uploads that wait to be placed (C-4)."""
    inbox_destinations: tuple[str, ...] = ()
    """Folders below the prefix that the inbox may place into; empty: anywhere outside the inbox."""

    @property
    def folder(self) -> str:
        """What every key of this root starts with: empty, or the prefix and one slash."""
        return f"{self.prefix}/" if self.prefix else ""


@dataclass(frozen=True, kw_only=True)
class GcsRoot:
    """One place in Google Cloud Storage, read when a question needs it; nobody tells us of uploads there."""

    name: str
    bucket: str
    prefix: str = ""
    """The folder that is the root, without slashes at its ends; empty: the whole bucket."""
    readers: tuple[str, ...] = ()
    """As a `StorageRoot`'s."""


@dataclass(frozen=True, kw_only=True)
class SharePointRoot:
    """One place in a SharePoint drive, read when a question needs it; nobody tells us of changes there."""

    name: str
    drive_id: str
    prefix: str = ""
    """The folder that is the root, from the drive's own, without slashes at its ends; empty: the drive."""
    readers: tuple[str, ...] = ()
    """As a `StorageRoot`'s."""
    delegated: bool = False
    """Whether each caller reads with their own rights, by the token they send (Z-4)."""


@dataclass(frozen=True, kw_only=True)
class GoogleFederation:
    """How the grounding function's role reads Cloud Storage without a key (docs/google-cloud-storage.md)."""

    audience: str
    """`//iam.googleapis.com/projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<name>`"""
    impersonation_url: str | None = None
    """A service account's `...:generateAccessToken`, where the role itself is given no access."""


@dataclass(frozen=True, kw_only=True)
class EntraApplication:
    """As what the grounding function reads SharePoint (Z-4)."""

    tenant_id: str
    client_id: str
    certificate_secret: str | None = None
    """The whole ARN of the secret with key and certificate; None: AWS vouches for the function's role."""


@dataclass(frozen=True, kw_only=True)
class JwtIssuer:
    """Who signs the callers' tokens; API Gateway checks them."""

    issuer: str
    audience: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much may happen at once."""

    indexer_concurrency: int
    """Batches indexed side by side, at least 2 (a limit of the SQS event source)."""
    reindex_concurrency: int = 10
    """Batches of listed documents looked at side by side."""
    requests_per_second: int
    request_burst: int


@dataclass(frozen=True, kw_only=True)
class FileSearch:
    """The Gemini File Search stores that searches run in (docs/importing.md)."""

    api_key_secret: str
    """The name or whole ARN of the secret, in the deployment's region, that holds the API key as text."""
    stores: tuple[str, ...] = ()
    """Stores that others fill, `fileSearchStores/<id>` each: listed into the catalogue (G-2)."""
    import_into: str | None = None
    """The store that documents are imported into (X-10), which nobody else should fill; None: no import."""
    refresh_schedule: str = "rate(30 minutes)"
    """When `stores` are listed again: a `rate(...)` or `cron(...)` in UTC."""
    sweep_schedule: str = "cron(0 4 * * ? *)"
    """When uploads that a broken import left behind are looked for."""
    import_concurrency: int = 2
    """Documents imported side by side, at least 2 (a limit of the SQS event source)."""

    def __post_init__(self) -> None:
        named = [*self.stores, *([self.import_into] if self.import_into else [])]
        if not named:
            raise EnvironmentRefused("file_search: name stores, or the one to import into")
        for store in named:
            if not re.fullmatch(r"fileSearchStores/[A-Za-z0-9_-]+", store):
                raise EnvironmentRefused(f"file_search: a store is fileSearchStores/<id>, not {store!r}")
        if len(set(named)) < len(named):
            raise EnvironmentRefused("file_search: the store to import into is filled from here, not listed")
        arn = self.api_key_secret.startswith("arn:")
        if arn and not re.fullmatch(_WHOLE_ARN, self.api_key_secret):
            raise EnvironmentRefused(
                "file_search: api_key_secret must be a secret's name, or its ARN to the last six characters"
            )


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One deployment: where it goes, what it reads, who may ask and how long things are kept."""

    name: str
    account: str | None = None
    """None: the account of the credentials that deploy."""
    region: str | None = None
    """None: the region of the profile that deploys."""
    storage_roots: tuple[StorageRoot, ...]
    external_roots: tuple[GcsRoot | SharePointRoot, ...] = ()
    """Places outside AWS, which only the grounding function reads."""
    google: GoogleFederation | None = None
    """Needed where a root is in Cloud Storage."""
    microsoft: EntraApplication | None = None
    """Needed where a root is in SharePoint."""
    limits: Limits
    jwt: JwtIssuer | None = None
    """None: callers sign their requests (IAM)."""
    open_description: bool = False
    """Whether healthz, openapi.json and the docs page answer without credentials."""
    debug_callers: tuple[str, ...] = ()
    """Who may ask for debug records of a request, named as in a root's `readers` (P-3)."""
    alarms_address: str | None = None
    """An e-mail address that hears about alarms and invalid documents; it has to confirm once."""
    reconcile_schedule: str | None = "cron(0 2 * * ? *)"
    """When every root is scanned and drift mended (X-9): a `rate(...)` or `cron(...)` in UTC; None: never."""
    file_search: FileSearch | None = None
    """The File Search stores that are listed or filled; None: none, and nothing asks Gemini."""
    log_level: str = "INFO"
    log_retention: RetentionDays = RetentionDays.THREE_MONTHS
    removal_policy: RemovalPolicy = RemovalPolicy.RETAIN
    """What becomes of documents, index and logs when the stack is destroyed."""
    snap_start: bool = True
    architecture: Literal["arm64", "x86_64"] = "arm64"

    def __post_init__(self) -> None:
        if not self.storage_roots:
            raise EnvironmentRefused(f"{self.name}: a deployment needs at least one storage root")
        for root in self.storage_roots:
            if self.region and root.region and root.region != self.region:
                raise EnvironmentRefused(
                    f"{self.name}: the bucket of {root.name!r} is in {root.region}, the stack in"
                    f" {self.region}, where its events would never arrive; deploy a stack beside the bucket"
                )
        self._check_external_roots()

    def _check_external_roots(self) -> None:
        for root in self.external_roots:
            if isinstance(root, GcsRoot):
                if not self.google:
                    self._refuse(root, "is in Cloud Storage; say in `google` how that is read")
            elif not self.microsoft:
                self._refuse(root, "is in SharePoint; say in `microsoft` as what that is read")
            elif root.delegated and not self.jwt:
                self._refuse(root, "is read with its callers' own tokens, which they have only with `jwt`")
        secret = self.microsoft.certificate_secret if self.microsoft else None
        if secret and not re.fullmatch(_WHOLE_ARN, secret):
            raise EnvironmentRefused(
                f"{self.name}: certificate_secret must be the ARN of a secret, to its last six characters"
            )
        try:
            StorageRoots(_as_functions_know(root) for root in (*self.storage_roots, *self.external_roots))
        except ConfigurationError as error:
            raise EnvironmentRefused(f"{self.name}: {error}") from error

    def _refuse(self, root: GcsRoot | SharePointRoot, problem: str) -> NoReturn:
        raise EnvironmentRefused(f"{self.name}: the root {root.name!r} {problem}")


def _as_functions_know(root: StorageRoot | GcsRoot | SharePointRoot) -> roots.StorageRoot:
    """The root as its functions will judge it; a bucket that is still to be made has a name of its own."""
    common: dict[str, Any] = {"name": root.name, "prefix": root.prefix, "readers": root.readers}
    if isinstance(root, StorageRoot):
        return roots.StorageRoot(
            source_type="s3", bucket=root.bucket or f"({root.name})", writers=root.writers, **common
        )
    if isinstance(root, GcsRoot):
        return roots.StorageRoot(source_type="gcs", bucket=root.bucket, **common)
    return roots.StorageRoot(
        source_type="sharepoint", bucket=root.drive_id, delegated=root.delegated, **common
    )


_ENVIRONMENTS = (
    Environment(
        name="dev",
        # account="111111111111", region="eu-west-1",   to pin the place; else the profile decides
        storage_roots=(StorageRoot(name="kb", readers=("*",)),),
        limits=Limits(indexer_concurrency=2, requests_per_second=20, request_burst=40),
        open_description=True,
        log_retention=RetentionDays.ONE_WEEK,
        removal_policy=RemovalPolicy.DESTROY,
        snap_start=False,
    ),
    Environment(
        name="staging",
        # account="222222222222", region="eu-west-1",   to pin the place; else the profile decides
        storage_roots=(StorageRoot(name="kb", readers=("*",)),),
        limits=Limits(indexer_concurrency=5, requests_per_second=50, request_burst=100),
        log_retention=RetentionDays.ONE_MONTH,
    ),
    Environment(
        name="prod",
        # account="333333333333", region="eu-west-1",   to pin the place; else the profile decides
        # A bucket that exists already: StorageRoot(name="kb", bucket="acme-handbook", prefix="kb", ...)
        # Documents in Cloud Storage:   external_roots=(GcsRoot(name="labs", bucket="acme-labs", ...),),
        #                               google=GoogleFederation(audience="//iam.googleapis.com/...")
        # Documents in SharePoint:      external_roots=(SharePointRoot(name="hr", drive_id="b!...", ...),),
        #                               microsoft=EntraApplication(tenant_id="...", client_id="...")
        # Callers with tokens:          jwt=JwtIssuer(issuer="https://...", audience=("...",))
        # Who is told of alarms:        alarms_address="..."
        # Who may upload by the API:    StorageRoot(name="kb", writers=("group:authors",), ...)
        # Documents in Gemini:          file_search=FileSearch(
        #                                   api_key_secret="groundwire/gemini",
        #                                   import_into="fileSearchStores/handbook-x1y2z3",
        #                               )
        storage_roots=(StorageRoot(name="kb", readers=("*",)),),
        limits=Limits(indexer_concurrency=20, requests_per_second=100, request_burst=200),
        log_retention=RetentionDays.ONE_YEAR,
    ),
    Environment(
        name="local",
        account="000000000000",
        region="eu-west-1",
        storage_roots=(StorageRoot(name="kb", readers=("*",), writers=("*",)),),
        limits=Limits(indexer_concurrency=2, requests_per_second=1000, request_burst=1000),
        open_description=True,
        reconcile_schedule=None,
        log_retention=RetentionDays.ONE_DAY,
        snap_start=False,
        # An emulator runs functions on the machine it is on, whatever their architecture says.
        architecture="x86_64",
    ),
)

NAMES = tuple(known.name for known in _ENVIRONMENTS)


def environment(name: str | None) -> Environment:
    """The environment of that name; EnvironmentRefused lists the known names."""
    for known in _ENVIRONMENTS:
        if known.name == name:
            return known
    problem = (
        "no environment is chosen (-c environment=NAME)" if name is None else f"unknown environment {name!r}"
    )
    raise EnvironmentRefused(f"{problem}: the known ones are {', '.join(NAMES)}")
