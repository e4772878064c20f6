"""Puts the importer together, on first use: the only place here that knows the adapters."""

import os
import time
from functools import cache
from typing import NamedTuple

import boto3
from botocore.config import Config

from groundwire.adapters.catalogue import DynamoCatalogue
from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.adapters.gemini import PUBLIC, Gemini, GeminiFileSearchStores
from groundwire.adapters.imports import DynamoImportRecords
from groundwire.adapters.quiet import quiet
from groundwire.adapters.s3 import S3DocumentFetcher
from groundwire.adapters.secrets import secret_text
from groundwire.adapters.sqs import SqsDeadLetters, SqsImportQueue
from groundwire.catalogue import Listing
from groundwire.deadline import Deadline
from groundwire.importing import Importer
from groundwire.listing import list_store
from groundwire.ports import CatalogueWriter, FileSearchStores, ImportQueue
from groundwire.roots import StorageRoots
from groundwire.settings import ImporterSettings


class Wired(NamedTuple):
    """What a record needs."""

    importer: Importer | None
    """None where nothing is imported and stores are only listed."""
    roots: StorageRoots
    stores: FileSearchStores
    catalogue: CatalogueWriter
    listed_stores: tuple[str, ...]
    queue: ImportQueue
    dead_letters: SqsDeadLetters

    def list_store(self, store: str, deadline: Deadline) -> Listing:
        """Lists the store as far as there is time."""
        return list_store(self.stores, self.catalogue, store, deadline=deadline, now=time.time())


@cache
def wired() -> Wired:
    """The importer of this environment."""
    quiet()
    settings = ImporterSettings.model_validate(os.environ)
    roots = settings.roots()
    session = boto3.Session()
    config = Config(connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 3})
    dynamodb, sqs = session.client("dynamodb", config=config), session.client("sqs", config=config)
    key = secret_text(session.client("secretsmanager", config=config), settings.gemini_key_secret)
    stores = GeminiFileSearchStores(Gemini(key, settings.gemini_endpoint or PUBLIC))
    catalogue = DynamoCatalogue(dynamodb, settings.table)
    importer = (
        Importer(
            S3DocumentFetcher(session, settings.aws_endpoint),
            DynamoEdgeIndex(dynamodb, settings.table, roots, settings.reverse_shards),
            stores,
            catalogue,
            DynamoImportRecords(dynamodb, settings.table),
            settings.import_store,
        )
        if settings.import_store
        else None
    )
    return Wired(
        importer,
        roots,
        stores,
        catalogue,
        settings.listed_stores,
        SqsImportQueue(sqs, settings.import_queue_url),
        SqsDeadLetters(sqs, settings.dead_letter_queue_url),
    )
