"""Puts the indexer together, on first use: the only place here that knows the adapters."""

import os
from functools import cache
from typing import NamedTuple

import boto3
from botocore.config import Config

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.adapters.eventbridge import EventBridgeEventSink
from groundwire.adapters.quiet import quiet
from groundwire.adapters.s3 import S3DocumentFetcher
from groundwire.adapters.sqs import SqsDeadLetters, SqsIndexQueue
from groundwire.indexing import Indexer
from groundwire.learning import Learner
from groundwire.placement import Placement
from groundwire.roots import StorageRoots
from groundwire.settings import IndexerSettings


class Wired(NamedTuple):
    """What a record needs."""

    indexer: Indexer
    learner: Learner
    roots: StorageRoots
    dead_letters: SqsDeadLetters


@cache
def wired() -> Wired:
    """The indexer of this environment."""
    quiet()
    settings = IndexerSettings.model_validate(os.environ)
    roots = settings.roots()
    session = boto3.Session()
    config = Config(connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 3})
    index = DynamoEdgeIndex(
        session.client("dynamodb", config=config), settings.table, roots, settings.reverse_shards
    )
    store = S3DocumentFetcher(session, settings.aws_endpoint)
    sqs = session.client("sqs", config=config)
    events = EventBridgeEventSink(session.client("events", config=config), settings.event_bus)
    healing = SqsIndexQueue(sqs, settings.index_queue_url)
    indexer = Indexer(store, index, events, healing, Placement(store, store, roots))
    return Wired(indexer, Learner(index), roots, SqsDeadLetters(sqs, settings.dead_letter_queue_url))
