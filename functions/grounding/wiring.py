"""Puts the grounding function together, on first use: the only place here that knows the adapters.

What a deployment has no use for is not imported: Google's and Microsoft's libraries cost a cold start dearly.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import boto3
from botocore.config import Config

from groundwire.adapters.catalogue import DynamoCatalogue
from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.adapters.file_notes import DynamoFileNotes
from groundwire.adapters.gemini import PUBLIC, Gemini, GeminiFiles, GeminiFileSearchStores
from groundwire.adapters.quiet import quiet
from groundwire.adapters.s3 import S3DocumentFetcher
from groundwire.adapters.s3_urls import S3DeliveryShelf
from groundwire.adapters.secrets import secret_text
from groundwire.adapters.sqs import SqsIndexQueue
from groundwire.composition import CompositionLoader
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.delivery import Delivery
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.file_references import FileReferences
from groundwire.grounding import CanonicalGroundingService
from groundwire.limits import FETCH_WORKERS
from groundwire.policy import CompositionPolicy
from groundwire.ports import DocumentFetcher, EdgeReader
from groundwire.roots import SourceType, StorageRoots
from groundwire.settings import GoogleSettings, GroundingSettings, MicrosoftSettings


@dataclass(frozen=True, slots=True)
class Wired:
    """What the routes need."""

    service: CanonicalGroundingService
    index: EdgeReader
    roots: StorageRoots
    delivery: Delivery
    debug_callers: tuple[str, ...]
    authentication: Literal["iam", "jwt"]
    open_description: bool


@cache
def wired() -> Wired:
    """The grounding use cases of this environment."""
    quiet()
    settings = GroundingSettings.model_validate(os.environ)
    roots = settings.roots()
    session = boto3.Session()
    aws = _clients(session)
    dynamodb = aws("dynamodb")
    index = DynamoEdgeIndex(dynamodb, settings.table, roots, settings.reverse_shards)
    s3 = S3DocumentFetcher(session, settings.aws_endpoint)
    fetcher = CanonicalDocumentFetcher({"s3": s3, **_external(settings, aws)}, roots)
    policy = CompositionPolicy()
    gemini = _gemini(settings, aws)
    service = CanonicalGroundingService(
        GeminiFileSearchStores(gemini) if gemini else None,
        fetcher,
        CanonicalGroundingConfig(composition_policy=policy),
        loader=CompositionLoader(fetcher, policy, index=index),
        repairs=SqsIndexQueue(aws("sqs"), settings.index_queue_url),
        catalogue=DynamoCatalogue(dynamodb, settings.table) if gemini else None,
        store_names=settings.file_search_stores,
    )
    shelf = files = None
    if settings.delivery_bucket:
        shelf = S3DeliveryShelf(session, s3.client(settings.aws_region), settings.delivery_bucket)
    if gemini:
        files = FileReferences(GeminiFiles(gemini), DynamoFileNotes(dynamodb, settings.table))
    return Wired(
        service,
        index,
        roots,
        Delivery(s3, shelf, files),
        settings.debug_callers,
        settings.authentication,
        settings.open_description,
    )


Clients = Callable[[str], Any]


def _clients(session: boto3.Session) -> Clients:
    config = Config(
        connect_timeout=1,
        read_timeout=2,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=FETCH_WORKERS,
    )
    return lambda service: session.client(service, config=config)  # type: ignore[call-overload]


def _external(settings: GroundingSettings, aws: Clients) -> dict[SourceType, DocumentFetcher]:
    """Fetchers for the roots outside AWS, where there are any."""
    fetchers: dict[SourceType, DocumentFetcher] = {}
    if settings.google:
        fetchers["gcs"] = _gcs(settings.google, settings.aws_region or "")
    if settings.microsoft:
        fetchers["sharepoint"] = _sharepoint(settings.microsoft, aws)
    return fetchers


def _gcs(google: GoogleSettings, region: str) -> DocumentFetcher:
    from groundwire.adapters.gcs import GcsDocumentFetcher
    from groundwire.adapters.google_federation import RoleFederation

    federation = RoleFederation(
        google.audience, region, impersonation_url=google.impersonation_url, token_url=google.token_url
    )
    return GcsDocumentFetcher(federation)


def _sharepoint(microsoft: MicrosoftSettings, aws: Clients) -> DocumentFetcher:
    from groundwire.adapters.graph import GraphClient
    from groundwire.adapters.microsoft import GraphTokens, certificate, keyless, web_identity
    from groundwire.adapters.sharepoint import SharePointDocumentFetcher

    if microsoft.certificate_secret:
        credential = certificate(aws("secretsmanager"), microsoft.certificate_secret)
    else:
        credential = keyless(web_identity(aws("sts")))
    tokens = GraphTokens(microsoft.tenant_id, microsoft.client_id, credential, authority=microsoft.authority)
    return SharePointDocumentFetcher(
        GraphClient(
            tokens,
            endpoint=microsoft.endpoint,
            company=microsoft.company,
            allow_http=microsoft.endpoint.startswith("http://"),
        )
    )


def _gemini(settings: GroundingSettings, aws: Clients) -> Gemini | None:
    if not settings.gemini_key_secret:
        return None
    key = secret_text(aws("secretsmanager"), settings.gemini_key_secret)
    return Gemini(key, settings.gemini_endpoint or PUBLIC)
