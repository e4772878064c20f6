"""`groundwire redrive` over real queues: dead letters are given to the indexer again, each once (X-8)."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from groundwire_cli.reindexing import DeployedStack, StackRefused
from tests.captured import object_event
from tests.cloud import Cloud, session
from tests.integration.driving import work_off
from tests.integration.gateway import Fault, Gateway, refusal
from tests.integration.test_faults import SHARDS, said

FILES = {f"sops/{n}.md": f"---\ntitle: {n}\nincludes: [{n + 1}.md]\n---\n" for n in range(12)}
POISON = ["{", '{"what": "is this"}']


class Clients:
    """What the command asks: a stack with our queues as its outputs, and the queues themselves."""

    def __init__(self, cloud: Cloud) -> None:
        self.queues = session().client("sqs", endpoint_url=cloud.endpoint)
        outputs = {"DeadLetterQueueUrl": cloud.dead_letters, "IndexerQueueUrl": cloud.queue}
        listed = [{"OutputKey": name, "OutputValue": url} for name, url in outputs.items()]
        self._stacks = SimpleNamespace(describe_stacks=lambda **_: {"Stacks": [{"Outputs": listed}]})

    def client(self, service_name: str, /) -> Any:
        return self._stacks if service_name == "cloudformation" else self.queues


@pytest.fixture
def clients(cloud: Cloud) -> Any:
    """The cloud's queues belong together as in the stack: five receipts, then the dead-letter queue."""
    clients = Clients(cloud)
    reply = cloud.sqs.get_queue_attributes(QueueUrl=cloud.dead_letters, AttributeNames=["QueueArn"])
    policy = {"deadLetterTargetArn": reply["Attributes"]["QueueArn"], "maxReceiveCount": 5}
    cloud.sqs.set_queue_attributes(
        QueueUrl=cloud.queue, Attributes={"RedrivePolicy": json.dumps(policy), "VisibilityTimeout": "0"}
    )
    yield clients
    clients.queues.close()


def test_the_region_is_told_by_either_variable(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS's own tools read AWS_REGION, boto3 the other one alone."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.endpoint)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(StackRefused, match=r"AWS refuses: .* does not exist"):
        DeployedStack("groundwire-nowhere")
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(StackRefused, match="AWS cannot be asked: You must specify a region"):
        DeployedStack("groundwire-nowhere")


def letters(cloud: Cloud) -> list[tuple[str, bool]]:
    """Every dead letter's body, and whether a reason is with it; they stay where they are."""
    found: list[Any] = []
    while some := cloud.messages(cloud.dead_letters):
        found += some
    for each in found:
        cloud.sqs.change_message_visibility(
            QueueUrl=cloud.dead_letters, ReceiptHandle=each["ReceiptHandle"], VisibilityTimeout=0
        )
    return sorted((each["Body"], "reason" in each.get("MessageAttributes", {})) for each in found)


def test_dead_letters_replayed_twice_end_in_the_same_table(
    cloud: Cloud, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    for key, text in FILES.items():
        cloud.put(key, text)
    events = [json.dumps(object_event(cloud.bucket, key, sequencer="F0")) for key in FILES]
    poison = [(body, True) for body in POISON]
    for body in (*events, *POISON):
        cloud.sqs.send_message(QueueUrl=cloud.queue, MessageBody=body)

    gateway = Gateway(cloud.endpoint)
    gateway.begin(Fault("GetItem", refusal(500, "InternalServerError")), "")
    cloud.environment(AWS_ENDPOINT_URL_DYNAMODB=gateway.endpoint, GROUNDWIRE_REVERSE_SHARDS=str(SHARDS))
    work_off(cloud)
    assert letters(cloud) == sorted([*((body, False) for body in events), *poison])
    assert said(cloud, cloud.table) == ({}, set())
    gateway.close()

    cloud.environment(AWS_ENDPOINT_URL_DYNAMODB=cloud.endpoint)
    stack = DeployedStack("groundwire-test", clients)
    assert stack.redrive() == len(FILES) + len(POISON)
    work_off(cloud)
    nodes, _ = once = said(cloud, cloud.table)
    assert {node["uri"]["S"] for node in nodes.values()} == {cloud.uri(key) for key in FILES}
    assert letters(cloud) == poison

    # SQS delivers at least once: the same letters may be there again.
    for body in events:
        cloud.sqs.send_message(QueueUrl=cloud.dead_letters, MessageBody=body)
    assert stack.redrive() == len(FILES) + len(POISON)
    work_off(cloud)
    assert said(cloud, cloud.table) == once
    assert letters(cloud) == poison


def test_what_comes_back_at_once_is_not_sent_round_in_circles(
    cloud: Cloud, clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexer is awake: what it does not understand is a dead letter again before the command looks."""
    cloud.sqs.send_message(QueueUrl=cloud.dead_letters, MessageBody=POISON[0])
    send, sent = clients.queues.send_message, []

    def send_to_an_indexer_awake(**message: Any) -> Any:
        sent.append(message)
        assert len(sent) == 1
        answer = send(**message)
        work_off(cloud)
        return answer

    monkeypatch.setattr(clients.queues, "send_message", send_to_an_indexer_awake)
    assert DeployedStack("groundwire-test", clients).redrive() == 1
    assert letters(cloud) == [(POISON[0], True)]


def test_a_letter_that_the_queue_does_not_take_stays(cloud: Cloud, clients: Clients) -> None:
    cloud.sqs.send_message(QueueUrl=cloud.dead_letters, MessageBody=POISON[0])
    cloud.sqs.delete_queue(QueueUrl=cloud.queue)
    with pytest.raises(StackRefused):
        DeployedStack("groundwire-test", clients).redrive()
    counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    reply = cloud.sqs.get_queue_attributes(QueueUrl=cloud.dead_letters, AttributeNames=counts)  # type: ignore[arg-type]
    assert sum(map(int, reply["Attributes"].values())) == 1


def test_no_dead_letters(cloud: Cloud, clients: Clients) -> None:
    assert DeployedStack("groundwire-test", clients).redrive() == 0
