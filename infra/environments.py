"""What differs between the places Groundwire is deployed to, and nothing else.

An environment is a value: constructs read it, none of them asks for its name. To use a bucket that already
exists, name it in a storage root; it is then a host whose settings are merged with ours, never replaced.
"""

from dataclasses import dataclass
from typing import Literal

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays


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
    inbox_prefix: str = "inbox/"
    """Below the prefix: uploads that wait to be placed (C-4)."""
    inbox_destinations: tuple[str, ...] = ()
    """Folders below the prefix that the inbox may place into; empty: anywhere outside the inbox."""

    @property
    def folder(self) -> str:
        """What every key of this root starts with: empty, or the prefix and one slash."""
        return f"{self.prefix}/" if self.prefix else ""


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
class Environment:
    """One deployment: where it goes, what it reads, who may ask and how long things are kept."""

    name: str
    account: str | None = None
    """None: the account of the credentials that deploy."""
    region: str | None = None
    """None: the region of the profile that deploys."""
    storage_roots: tuple[StorageRoot, ...]
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
        # Callers with tokens:          jwt=JwtIssuer(issuer="https://...", audience=("...",))
        # Who is told of alarms:        alarms_address="..."
        storage_roots=(StorageRoot(name="kb", readers=("*",)),),
        limits=Limits(indexer_concurrency=20, requests_per_second=100, request_burst=200),
        log_retention=RetentionDays.ONE_YEAR,
    ),
    Environment(
        name="local",
        account="000000000000",
        region="eu-west-1",
        storage_roots=(StorageRoot(name="kb", readers=("*",)),),
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
