"""X-2 on the deployed stack: whenever the indexer is killed, the index ends up as a fresh scan makes it.

The emulator runs each warm function as a process of its own. It gets KILL at random moments of a bulk
upload, so it ends where it happens to be: while it starts, between two calls or within one, with or without
the call's effect. Nobody tells the queue; the messages come back when their visibility timeout has passed.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from groundwire.settings import IndexerSettings
from tests.e2e.deployed.stack import Stack, eventually
from tests.table import MemoryTable
from tests.worlds import Bucket, World, check_targets, document, fresh_scan

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_KILLS = 5
"""Of processes that are past their start; one more dies while it starts."""
_BACK_AFTER_SECONDS = 4
"""Longer than a batch takes, else two that hold the same messages take them from each other for ever."""
_DOCUMENTS, _TARGETS = 24, 12


class Killer:
    """Ends processes that run the indexer, and knows what the emulator says of them."""

    def __init__(self, stack: Stack) -> None:
        self._log = stack.emulator.log
        self._place = f"{stack.emulator.scratch}/files/ministack-lambda-{stack.deployment.indexer}-".encode()
        self._begin = self._log.stat().st_size

    def kill(self, chance: random.Random, *, starting: bool = False) -> None:
        """Ends one of those that are past their start, or any, as soon as there is one."""
        victims = eventually(lambda: [p for p in self._processes() if starting or _has_connections(p)], bool)
        with suppress(ProcessLookupError):  # it has just been ended for being too slow
            os.kill(int(chance.choice(victims).name), signal.SIGKILL)

    def deaths(self) -> int:
        """How many batches ended with the process that worked on them."""
        with self._log.open("rb") as log:
            log.seek(self._begin)
            return log.read().count(b"errorMessage=Worker process died")

    def _processes(self) -> Iterator[Path]:
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                if process.name.isdecimal() and self._place in (process / "cmdline").read_bytes():
                    yield process


def _has_connections(process: Path) -> bool:
    """Whether the process has spoken to the store or the table: it keeps its connections."""
    with suppress(OSError):
        return any(str(file.readlink()).startswith("socket:") for file in (process / "fd").iterdir())
    return False


class Uploader:
    """Uploads a folder whose includes come late, and changes it and what the inbox has for it meanwhile."""

    def __init__(self, stack: Stack, folder: str, chance: random.Random) -> None:
        self._stack, self._folder, self._chance = stack, folder, chance
        self._early = [f"a/n{number}.md" for number in range(_DOCUMENTS)]
        self._late = [f"b/n{number}.md" for number in range(_TARGETS)]
        self._paths = [*self._early, *self._late]
        self._targets = [*self._late, "b/gone.md"]
        self._inbox = [f"inbox/{folder}-{number}.md" for number in range(4)]
        self._written = 0
        self.keys = [*(f"{folder}/{path}" for path in (*self._paths, "b/gone.md")), *self._inbox]
        """Everything that is uploaded or included, here or never."""

    def upload(self) -> None:
        """Every document that includes others, once; most of them are not changed again."""
        for path in self._early:
            self._put(path)

    def change(self) -> None:
        """A target arrives; or something is overwritten, deleted, claimed, or comes by way of the inbox."""
        arrives = self._late and self._chance.random() < 0.6
        path = self._late.pop() if arrives else self._chance.choice(self._paths)
        match "put" if arrives else self._chance.choice(("put", "claim", "inbox", "delete")):
            case "put":
                self._put(path)
            case "claim":
                self._put(path, canonical=f"{self._folder}/a/n0.md")
            case "inbox":
                claimed = self._chance.choice((f"{self._folder}/{path}", None))
                self._stack.put({self._chance.choice(self._inbox): self._text(claimed)})
            case _:
                self._stack.s3.delete_object(
                    Bucket=self._stack.deployment.bucket, Key=f"{self._folder}/{path}"
                )

    def stored(self) -> dict[str, bytes]:
        """What the bucket holds of it now."""
        found: dict[str, bytes] = {}
        for key in self.keys:
            with suppress(self._stack.s3.exceptions.NoSuchKey):
                reply = self._stack.s3.get_object(Bucket=self._stack.deployment.bucket, Key=key)
                with closing(reply["Body"]) as body:
                    found[key] = body.read()
        return found

    def _put(self, path: str, canonical: str | None = None) -> None:
        self._stack.put({f"{self._folder}/{path}": self._text(canonical)})

    def _text(self, canonical: str | None) -> str:
        # No two alike: a document of another test's must not look like one of these that moved.
        self._written += 1
        includes = [f"../{path}" for path in self._chance.sample(self._targets, 2)]
        return f"{document(includes, canonical, 1).decode()}\n{self._folder}, {self._written}\n"


@pytest.fixture
def settings(stack: Stack) -> IndexerSettings:
    """What the deployed indexer runs with."""
    with closing(boto3.client("lambda", **stack.emulator.client_options())) as functions:
        found = functions.get_function_configuration(FunctionName=stack.deployment.indexer)
    return IndexerSettings.model_validate(found["Environment"]["Variables"])


@pytest.fixture
def table(stack: Stack) -> Iterator["DynamoDBClient"]:
    with closing(boto3.client("dynamodb", **stack.emulator.client_options())) as client:
        yield client


def test_killed_at_random_moments_of_a_bulk_upload_the_index_equals_a_fresh_scan(
    stack: Stack, folder: str, settings: IndexerSettings, table: "DynamoDBClient"
) -> None:
    chance = random.Random(7)
    uploader, killer = Uploader(stack, folder, chance), Killer(stack)

    # A message that dies with its function more than five times is given up; that is another test's.
    with stack.quick_retries(seconds=_BACK_AFTER_SECONDS, receives=1000):
        uploader.upload()
        killer.kill(chance, starting=True)
        for _ in range(_KILLS):
            for _ in range(chance.randrange(1, 5)):
                uploader.change()
            time.sleep(chance.uniform(0, 1))
            killer.kill(chance)
        stack.queue_is_empty()
    assert killer.deaths(), "every kill met an idle process"

    (root,) = settings.roots()
    shards, keys = settings.reverse_shards, uploader.keys
    kept = World(Bucket(), table, root, stack.deployment.table, shards=shards, names=keys)
    kept.bucket.store.files.update(uploader.stored())
    assert kept.picture() == fresh_scan(kept, World(Bucket(), MemoryTable(), root, names=keys))
    check_targets(kept)
