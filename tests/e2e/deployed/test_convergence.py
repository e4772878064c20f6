"""X-2 over the emulator's DynamoDB: killed at any call, the index ends up as a fresh scan would make it."""

import random
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from groundwire.roots import StorageRoot
from tests.e2e.deployed.stack import Stack
from tests.table import Crash
from tests.worlds import NAMES, PATHS, Bucket, World, check_targets, document, fresh_scan


class MortalClient:
    """A DynamoDB client whose process ends at one of its calls, before or after the call did its work."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.dies_at: int | None = None
        self.dies_after_writing = False

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        def mortal(**arguments: Any) -> Any:
            if self.dies_at is None:
                return call(**arguments)
            self.dies_at -= 1
            if self.dies_at >= 0:
                return call(**arguments)
            self.dies_at = None
            if self.dies_after_writing:
                call(**arguments)
            raise Crash

        return mortal


@pytest.fixture
def client(stack: Stack) -> Iterator[MortalClient]:
    dynamodb = boto3.client("dynamodb", **stack.emulator.client_options())
    yield MortalClient(dynamodb)
    dynamodb.close()


@pytest.mark.parametrize("seed", range(6))
def test_killed_at_random_calls_the_index_equals_a_fresh_scan(
    stack: Stack, client: MortalClient, seed: int
) -> None:
    chance = random.Random(seed)
    name = uuid.uuid4().hex[:8]
    table = stack.deployment.table
    world = World(Bucket(), client, StorageRoot(f"kb-{name}", "s3", "kb"), table)
    waiting: list[tuple[str, str]] = []
    for _ in range(8):
        key = chance.choice(NAMES)
        kind = chance.choice(("put", "put", "put", "delete", "move"))
        includes = chance.sample(PATHS, 2)
        put = document(includes, chance.choice((None, "a.md", "sops/c.md")), chance.randrange(3))
        world.bucket.apply((kind, key, put if kind == "put" else chance.choice(NAMES)))
        waiting, world.bucket.events = waiting + world.bucket.events, []
        if waiting:
            event = chance.choice(waiting)
            client.dies_at, client.dies_after_writing = chance.randrange(12), chance.random() < 0.5
            if world.deliver(event) and chance.random() < 0.5:
                waiting.remove(event)
            client.dies_at = None
    waiting += world.bucket.events
    world.bucket.events = []
    chance.shuffle(waiting)
    for event in waiting:
        assert world.deliver(event)
        while world.bucket.events:
            assert world.deliver(world.bucket.events.pop())
    world.heal_all()
    fresh = World(Bucket(), client, StorageRoot(f"fresh-{name}", "s3", "kb"), table)
    assert world.picture() == fresh_scan(world, fresh)
    check_targets(world)
