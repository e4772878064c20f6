"""Puts the grounding function together, on first use: the only place here that knows the adapters."""

import os
from dataclasses import dataclass
from functools import cache

import boto3
from botocore.config import Config

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.adapters.s3 import S3DocumentFetcher
from groundwire.adapters.sqs import SqsIndexQueue
from groundwire.composition import CompositionLoader
from groundwire.delivery import DownloadSigner
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.grounding import CanonicalGroundingConfig, CanonicalGroundingService
from groundwire.limits import FETCH_WORKERS
from groundwire.policy import CompositionPolicy
from groundwire.ports import EdgeReader
from groundwire.roots import StorageRoots
from groundwire.settings import GroundingSettings


@dataclass(frozen=True, slots=True)
class Wired:
    """What the routes need."""

    service: CanonicalGroundingService
    index: EdgeReader
    roots: StorageRoots
    signer: DownloadSigner
    debug_callers: tuple[str, ...]


@cache
def wired() -> Wired:
    """The grounding use cases of this environment."""
    settings = GroundingSettings.model_validate(os.environ)
    roots = settings.roots()
    session = boto3.Session()
    config = Config(
        connect_timeout=1,
        read_timeout=2,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=FETCH_WORKERS,
    )
    index = DynamoEdgeIndex(
        session.client("dynamodb", config=config), settings.table, roots, settings.reverse_shards
    )
    store = S3DocumentFetcher(session, settings.aws_endpoint)
    fetcher = CanonicalDocumentFetcher({"s3": store}, roots)
    policy = CompositionPolicy()
    loader = CompositionLoader(fetcher, policy, index=index)
    service = CanonicalGroundingService(
        None,
        fetcher,
        CanonicalGroundingConfig(composition_policy=policy),
        loader=loader,
        repairs=SqsIndexQueue(session.client("sqs", config=config), settings.index_queue_url),
    )
    return Wired(service, index, roots, store, settings.debug_callers)
