"""Puts reindexing together, on first use: the only place here that knows the adapters."""

import os
from functools import cache
from typing import NamedTuple

import boto3
from botocore.config import Config

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.adapters.eventbridge import EventBridgeEventSink
from groundwire.adapters.quiet import quiet
from groundwire.adapters.s3 import S3DocumentFetcher
from groundwire.adapters.sqs import SqsIndexQueue
from groundwire.indexing import Indexer
from groundwire.placement import Placement
from groundwire.reindexing import Reindexing
from groundwire.roots import StorageRoots
from groundwire.settings import ReindexSettings
from reindex.results import MapRunResults


class Wired(NamedTuple):
    """What a batch or a page needs."""

    reindexing: Reindexing
    roots: StorageRoots
    results: MapRunResults


@cache
def wired() -> Wired:
    """The reindexing of this environment."""
    quiet()
    settings = ReindexSettings.model_validate(os.environ)
    roots = settings.roots()
    session = boto3.Session()
    config = Config(connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 3})
    index = DynamoEdgeIndex(
        session.client("dynamodb", config=config), settings.table, roots, settings.reverse_shards
    )
    store = S3DocumentFetcher(session, settings.aws_endpoint)
    events = EventBridgeEventSink(session.client("events", config=config), settings.event_bus)
    healing = SqsIndexQueue(session.client("sqs", config=config), settings.index_queue_url)
    indexer = Indexer(store, index, events, healing, Placement(store, store, roots))
    results = MapRunResults(session.client("s3", config=config))
    return Wired(Reindexing(indexer, index, store), roots, results)
