"""The two functions as AWS drives them: an event in, what the handler gives back out."""

import json
from typing import Any, NamedTuple

from grounding.handler import handler as grounding_handler
from groundwire.adapters.sqs import HEAL
from indexer.handler import handler as indexer_handler
from tests.captured import Event, http_request, object_event, sqs_batch
from tests.cloud import Cloud, lambda_context


class Answer(NamedTuple):
    """What the HTTP API answers."""

    status: int
    body: str
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def content_type(self) -> str:
        return self.headers["Content-Type"]


def send(event: Event) -> Answer:
    """Hands a whole HTTP API event to the grounding function."""
    answer = grounding_handler(event, lambda_context())
    return Answer(answer["statusCode"], answer["body"], dict(answer.get("headers") or {}))


def get(path: str, authorizer: Any = ..., **query: str) -> Answer:
    return send(http_request("GET", path, query=query, authorizer=authorizer))


def post(path: str, body: Any, authorizer: Any = ..., headers: dict[str, str] | None = None) -> Answer:
    """Posts `body` as JSON."""
    return send(http_request("POST", path, json.dumps(body), authorizer=authorizer, headers=headers))


def deliver(*bodies: Any) -> list[str]:
    """Delivers messages to the indexer in one batch; returns the ids (m0, m1, …) that must come again."""
    answer = indexer_handler(sqs_batch(*bodies), lambda_context())
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def index(cloud: Cloud, *keys: str, name: str = "object_created", sequencer: str | None = None) -> None:
    """Tells the indexer about objects of the cloud's bucket, and does the healing that follows."""
    assert deliver(*(object_event(cloud.bucket, key, name, sequencer) for key in keys)) == []
    heal(cloud)


def heal(cloud: Cloud) -> None:
    """Hands the indexer what it put on its own queue, until nothing is left; repairs stay there."""
    while waiting := [m for m in cloud.messages(cloud.queue) if HEAL in m["Body"]]:
        assert deliver(*(message["Body"] for message in waiting)) == []
        for message in waiting:
            cloud.sqs.delete_message(QueueUrl=cloud.queue, ReceiptHandle=message["ReceiptHandle"])


def work_off(cloud: Cloud) -> None:
    """Lets the queue hand out what is on it until nothing is left; what fails stays and comes again."""
    while waiting := cloud.messages(cloud.queue):
        failed = deliver(*(message["Body"] for message in waiting))
        for number, message in enumerate(waiting):
            if f"m{number}" not in failed:
                cloud.sqs.delete_message(QueueUrl=cloud.queue, ReceiptHandle=message["ReceiptHandle"])


def upload(cloud: Cloud, files: dict[str, str | bytes]) -> None:
    """Stores documents and indexes them."""
    for key, content in files.items():
        cloud.put(key, content)
    index(cloud, *files)
