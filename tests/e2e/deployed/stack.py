"""The deployed stack as tests use it: put objects and messages in, ask until it has taken them in."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3

from local.api import Answer, Api
from local.deployment import Deployment, deploy
from local.emulator import Emulator

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

type Json = Any

_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One deployment, which checks signatures and policies."""

    emulator: Emulator
    deployment: Deployment
    api: Api
    s3: "S3Client"
    sqs: "SQSClient"

    def uri(self, key: str) -> str:
        return f"s3://{self.deployment.bucket}/{key}"

    def put(self, documents: Mapping[str, str]) -> None:
        """Uploads texts by key, as Markdown."""
        for key, text in documents.items():
            self.s3.put_object(
                Bucket=self.deployment.bucket, Key=key, Body=text.encode(), ContentType="text/markdown"
            )

    def put_and_wait(self, documents: Mapping[str, str]) -> None:
        """Uploads texts by key; returns once each of them is indexed."""
        self.put(documents)
        for key in documents:
            self.indexed(key)

    def asked(self, key: str) -> Answer:
        """What the API says of one document now."""
        return self.api.get("/v1/documents", uri=self.uri(key))

    def indexed(self, key: str) -> Json:
        """What the API says of one document, once it is indexed."""
        return eventually(lambda: self.asked(key), lambda answer: answer.status == 200).json()

    def gone(self, key: str) -> Answer:
        """The API's answer once it does not know the document."""
        return eventually(lambda: self.asked(key), lambda answer: answer.status == 404)

    def ground(self, *keys: str) -> Json:
        """The answer for documents of ours, given as Gemini would have found them."""
        answer = self.api.post(
            "/v1/ground", {"groundingMetadata": {"groundingChunks": [self._chunk(key) for key in keys]}}
        )
        assert answer.status == 200, answer.body
        return answer.json()

    def object_event(self, key: str, sequencer: str) -> str:
        """An "Object Created" event as EventBridge puts it on the queue."""
        return json.dumps(
            {
                "version": "0",
                "id": "2d4eba74-fd51-3966-4bfa-b013c9da8ff1",
                "detail-type": "Object Created",
                "source": "aws.s3",
                "account": "000000000000",
                "time": "2026-01-02T03:04:05Z",
                "region": "eu-west-1",
                "resources": [f"arn:aws:s3:::{self.deployment.bucket}"],
                "detail": {
                    "version": "0",
                    "bucket": {"name": self.deployment.bucket},
                    "object": {"key": key, "size": 1, "etag": "0" * 32, "sequencer": sequencer},
                    "request-id": "N4N7GDK58NMKJ12R",
                    "requester": "000000000000",
                    "source-ip-address": "127.0.0.1",
                    "reason": "PutObject",
                },
            }
        )

    def send(self, *bodies: str) -> None:
        """Puts messages on the indexer's queue, in one batch."""
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        reply = self.sqs.send_message_batch(QueueUrl=self.deployment.queue_url, Entries=entries)  # type: ignore[arg-type]
        assert not reply.get("Failed")

    def dead_letter(self, holding: str) -> str:
        """The body of the dead letter that holds this text, once there is one; the others stay."""

        def letters() -> list[str]:
            reply = self.sqs.receive_message(
                QueueUrl=self.deployment.dead_letter_queue_url, MaxNumberOfMessages=10, VisibilityTimeout=0
            )
            return [message["Body"] for message in reply.get("Messages", []) if holding in message["Body"]]

        return eventually(letters, bool)[0]

    def queue_is_empty(self) -> None:
        """Returns once nothing waits on the indexer's queue or is being worked on."""

        def count() -> int:
            attributes = self.sqs.get_queue_attributes(
                QueueUrl=self.deployment.queue_url, AttributeNames=["All"]
            )["Attributes"]
            return int(attributes["ApproximateNumberOfMessages"]) + int(
                attributes["ApproximateNumberOfMessagesNotVisible"]
            )

        eventually(count, lambda messages: messages == 0)

    @contextmanager
    def quick_retries(self, *, seconds: int = 1, receives: int | None = None) -> Iterator[None]:
        """Messages that failed come back after `seconds` instead of minutes.

        With `receives` they do so that many times before they are given up.
        """
        url = self.deployment.queue_url
        usual = self.sqs.get_queue_attributes(
            QueueUrl=url, AttributeNames=["VisibilityTimeout", "RedrivePolicy"]
        )["Attributes"]
        changed = {"VisibilityTimeout": str(seconds)}
        if receives is not None:
            policy = json.loads(usual["RedrivePolicy"])
            changed["RedrivePolicy"] = json.dumps({**policy, "maxReceiveCount": receives})
        self.sqs.set_queue_attributes(QueueUrl=url, Attributes=changed)  # type: ignore[arg-type]
        try:
            yield
        finally:
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes=usual)

    def _chunk(self, key: str) -> Json:
        pointer = {"source_type": "s3", "s3_bucket": self.deployment.bucket, "s3_key": key}
        return {
            "retrievedContext": {
                "title": key,
                "text": "A passage.",
                "fileSearchStore": "fileSearchStores/handbook-1a2b",
                "customMetadata": [{"key": name, "stringValue": value} for name, value in pointer.items()],
            }
        }


@contextmanager
def deployed() -> Iterator[Stack]:
    """A stack of its own, taken down afterwards."""
    with Emulator("test-e2e", enforce_iam=True) as emulator:
        deployment = deploy(emulator, "test-e2e")
        s3 = boto3.client("s3", **emulator.client_options())
        sqs = boto3.client("sqs", **emulator.client_options())
        try:
            yield Stack(
                emulator=emulator,
                deployment=deployment,
                api=Api(emulator, deployment.api_id),
                s3=s3,
                sqs=sqs,
            )
        finally:
            s3.close()
            sqs.close()


def eventually[Seen](look: Callable[[], Seen], enough: Callable[[Seen], bool]) -> Seen:
    """The first look that is enough; fails with the last one when patience ends."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while not enough(seen := look()):
        assert time.monotonic() < until, f"still {seen!r}"
        time.sleep(0.1)
    return seen
