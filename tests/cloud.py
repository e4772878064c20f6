"""AWS on this machine: moto's server over real HTTP, a bucket, a table and two queues of one's own.

A module uses either `cloud`, made for each test, or `shared_cloud`, made once a module; never both, since
the functions of a process are wired to one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal
from uuid import uuid4

import boto3
import pytest
from botocore.loaders import create_loader
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import ThreadedMotoServer

from grounding.wiring import wired as grounding_wired
from groundwire.adapters.quiet import TALKERS
from groundwire.settings import GroundingSettings, IndexerSettings, StorageRootSettings
from indexer.wiring import wired as indexer_wired
from reindex.wiring import wired as reindex_wired
from uploads.wiring import wired as uploads_wired

REGION: Literal["eu-north-1"] = "eu-north-1"
ACCOUNT = "111122223333"


@cache
def session() -> boto3.Session:
    """The tests' own credentials; parsing the service models once is what makes clients cheap."""
    return boto3.Session("testing", "testing", region_name=REGION)


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """Where moto listens, for this process's tests."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        # Every wiring makes sessions of its own, and each would parse botocore's service models again.
        patch.setattr("botocore.session.create_loader", cache(create_loader))
        # It lists its own folder at every request.
        named = DomainDispatcherApplication.get_backend_for_host
        patch.setattr(DomainDispatcherApplication, "get_backend_for_host", cache(named))
        yield f"http://{host}:{port}"
    server.stop()


class Cloud:
    """A bucket, a table and two queues of their own, clients to look at them, and functions wired to them."""

    def __init__(self, endpoint: str, patch: pytest.MonkeyPatch) -> None:
        name = uuid4().hex[:12]
        self.endpoint = endpoint
        self.bucket, self.table = f"kb-{name}", f"table-{name}"
        self._patch = patch
        self.s3 = session().client("s3", endpoint_url=endpoint)
        self.dynamodb = session().client("dynamodb", endpoint_url=endpoint)
        self.sqs = session().client("sqs", endpoint_url=endpoint)
        self.new_bucket(self.bucket)
        self.new_table(self.table)
        self.queue = self.sqs.create_queue(QueueName=f"index-{name}")["QueueUrl"]
        self.dead_letters = self.sqs.create_queue(QueueName=f"dead-{name}")["QueueUrl"]

    def root(self, **settings: Any) -> StorageRootSettings:
        """The storage root `kb` over the whole bucket, open to every caller, unless `settings` says else."""
        given = {"name": "kb", "bucket": self.bucket, "region": REGION, "readers": ("*",)} | settings
        return StorageRootSettings(**given)

    def wire(self, *roots: StorageRootSettings, **settings: Any) -> None:
        """Wires both functions of this process to this cloud; `settings` are the grounding function's."""
        common: dict[str, Any] = {
            "table": self.table,
            "storage_roots": roots or (self.root(),),
            "aws_endpoint": self.endpoint,
        }
        environment = {
            **IndexerSettings(
                **common, dead_letter_queue_url=self.dead_letters, index_queue_url=self.queue
            ).environment(),
            **GroundingSettings(**common, index_queue_url=self.queue, **settings).environment(),
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self.environment(**environment)

    def environment(self, **variables: str) -> None:
        """Sets variables of the functions and wires them anew."""
        for name, value in variables.items():
            self._patch.setenv(name, value)
        forget_wiring()

    def new_bucket(self, name: str) -> str:
        self.s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return name

    def new_table(self, name: str) -> str:
        self.dynamodb.create_table(
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": "PK", "AttributeType": "S"},
                {"AttributeName": "SK", "AttributeType": "S"},
            ],
            KeySchema=[
                {"AttributeName": "PK", "KeyType": "HASH"},
                {"AttributeName": "SK", "KeyType": "RANGE"},
            ],
        )
        return name

    def put(self, key: str, content: str | bytes, content_type: str = "binary/octet-stream") -> None:
        body = content.encode() if isinstance(content, str) else content
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType=content_type)

    def delete(self, key: str) -> None:
        self.s3.delete_object(Bucket=self.bucket, Key=key)

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def messages(self, queue: str) -> list[Any]:
        """What waits in a queue."""
        reply = self.sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=0
        )
        return list(reply.get("Messages", []))

    def close(self) -> None:
        for client in (self.s3, self.dynamodb, self.sqs):
            client.close()


def forget_wiring() -> None:
    """What the functions were wired to; the next request wires them anew."""
    for wired in (indexer_wired, grounding_wired, reindex_wired, uploads_wired):
        wired.cache_clear()
    for library in TALKERS:  # wiring silences them
        logging.getLogger(library).setLevel(logging.NOTSET)


@contextmanager
def _made(endpoint: str) -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patch:
        made = Cloud(endpoint, patch)
        made.wire()
        yield made
        made.close()
    forget_wiring()


@pytest.fixture
def cloud(moto_endpoint: str) -> Iterator[Cloud]:
    """A cloud to which both functions of this process are wired."""
    with _made(moto_endpoint) as made:
        yield made


@pytest.fixture(scope="module")
def shared_cloud(moto_endpoint: str) -> Iterator[Cloud]:
    """The same, once for all tests of a module, which only read it."""
    with _made(moto_endpoint) as made:
        yield made


def lambda_context(milliseconds: int = 29_000) -> Any:
    """What the platform hands to a handler."""
    return SimpleNamespace(
        function_name="f",
        memory_limit_in_mb=512,
        invoked_function_arn=f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:f",
        aws_request_id=str(uuid4()),
        get_remaining_time_in_millis=lambda: milliseconds,
    )
