"""The functions wired as in the cloud, on moto's server: real HTTP, real clients, one account a test."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Literal
from uuid import uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer

from grounding.wiring import wired as grounding_wired
from groundwire.settings import GroundingSettings, IndexerSettings, StorageRootSettings
from indexer.wiring import wired as indexer_wired
from reindex.wiring import wired as reindex_wired

REGION: Literal["eu-north-1"] = "eu-north-1"


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """Where moto listens, for this process's tests."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


class Cloud:
    """A bucket, a table and two queues of their own, and clients to look at them."""

    def __init__(self, endpoint: str) -> None:
        name = uuid4().hex[:12]
        self.bucket, self.table = f"kb-{name}", f"table-{name}"
        session = boto3.Session("testing", "testing", region_name=REGION)
        self.s3 = session.client("s3", endpoint_url=endpoint)
        self.dynamodb = session.client("dynamodb", endpoint_url=endpoint)
        self.sqs = session.client("sqs", endpoint_url=endpoint)
        self.s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        self.dynamodb.create_table(
            TableName=self.table,
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
        self.queue = self.sqs.create_queue(QueueName=f"index-{name}")["QueueUrl"]
        self.dead_letters = self.sqs.create_queue(QueueName=f"dead-{name}")["QueueUrl"]

    def put(self, key: str, content: str | bytes, content_type: str = "binary/octet-stream") -> None:
        body = content.encode() if isinstance(content, str) else content
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=body, ContentType=content_type)

    def uri(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"

    def messages(self, queue: str) -> list[Any]:
        """What waits in a queue."""
        reply = self.sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=0
        )
        return list(reply.get("Messages", []))


@pytest.fixture
def cloud(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """A cloud to which the functions of this process are wired."""
    made = Cloud(moto_endpoint)
    root = StorageRootSettings(name="kb", bucket=made.bucket, region=REGION, readers=("*",))
    common: dict[str, Any] = {"table": made.table, "storage_roots": (root,), "aws_endpoint": moto_endpoint}
    environment = {
        **IndexerSettings(
            **common, dead_letter_queue_url=made.dead_letters, index_queue_url=made.queue
        ).environment(),
        **GroundingSettings(**common, index_queue_url=made.queue).environment(),
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for wired in (indexer_wired, grounding_wired, reindex_wired):
        wired.cache_clear()
    yield made
    for wired in (indexer_wired, grounding_wired, reindex_wired):
        wired.cache_clear()


@pytest.fixture
def lambda_context() -> Any:
    """What the platform hands to a handler."""
    return SimpleNamespace(
        function_name="f",
        memory_limit_in_mb=512,
        invoked_function_arn="arn:aws:lambda:eu-north-1:111122223333:function:f",
        aws_request_id=str(uuid4()),
        get_remaining_time_in_millis=lambda: 29_000,
    )
