"""`groundwire redrive` on the deployed stack: what was given up in an outage is indexed after it (X-8)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import pytest

from groundwire_cli.reindexing import DeployedStack
from local.deployment import STACK
from local.emulator import Emulator
from tests.e2e.deployed.stack import Stack


class Clients:
    """A maker of clients as the command's session is one: those of this emulator, each made once."""

    def __init__(self, emulator: Emulator) -> None:
        self._options = emulator.client_options()
        self._made: dict[str, Any] = {}

    def client(self, service_name: str, /) -> Any:
        if service_name not in self._made:
            self._made[service_name] = boto3.client(service_name, **self._options)  # type: ignore[call-overload]
        return self._made[service_name]

    def close(self) -> None:
        for client in self._made.values():
            client.close()


@pytest.fixture
def clients(stack: Stack) -> Iterator[Clients]:
    clients = Clients(stack.emulator)
    yield clients
    clients.close()


@contextmanager
def no_table(stack: Stack, clients: Clients) -> Iterator[None]:
    """While this lasts, the indexer may not use the table."""
    function = clients.client("lambda").get_function_configuration(FunctionName=stack.deployment.indexer)
    role = {"RoleName": function["Role"].rsplit("/", 1)[-1], "PolicyName": "an-outage"}
    denied = {"Effect": "Deny", "Action": "dynamodb:*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [denied]}
    clients.client("iam").put_role_policy(**role, PolicyDocument=json.dumps(policy))
    try:
        yield
    finally:
        clients.client("iam").delete_role_policy(**role)


def test_what_an_outage_left_is_indexed_and_what_nobody_understands_is_back(
    stack: Stack, clients: Clients, folder: str
) -> None:
    poison, key = f"{folder}, not JSON", f"{folder}/a.md"
    command = DeployedStack(STACK, clients)
    with stack.quick_retries():
        with no_table(stack, clients):
            stack.put({key: "---\ntitle: A\nincludes: [gone.md]\n---\n"})
            stack.send(poison)
            event = stack.dead_letter(key)
            stack.dead_letter(poison)
            stack.queue_is_empty()
        assert stack.asked(key).status == 404

        assert command.redrive() >= 2
        once = stack.indexed(key)
        stack.dead_letter(poison)
        stack.queue_is_empty()

        stack.sqs.send_message(QueueUrl=stack.deployment.dead_letter_queue_url, MessageBody=event)
        assert command.redrive() >= 2
        stack.dead_letter(poison)
        stack.queue_is_empty()
        again = stack.asked(key).json()
        assert {**again, "indexedAt": once["indexedAt"]} == once
