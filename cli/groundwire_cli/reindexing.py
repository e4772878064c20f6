"""Reindex and redrive: asks a deployed stack to look at its documents again, and shows how far it is.

The stack's outputs say where its parts are. A run that goes on without us is no fault: Ctrl-C stops watching,
not the run.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_UNFINISHED = "RUNNING"
_LOOKED_FOR_S = 1
"""With any wait at all, SQS asks all of its servers."""
_LETTERS_AT_ONCE = 10
"""As many as SQS hands out at a time, and as a client has connections."""
COUNTS = ("indexed", "unchanged", "removed", "invalid", "failed")


class StackRefused(Exception):
    """A stack, root or execution that cannot be used; the text says what there is instead."""


@dataclass(frozen=True, slots=True)
class Run:
    """How far the run over one storage root is."""

    root: str
    execution: str
    status: str = _UNFINISHED
    listed: int = 0
    done: int = 0
    """Documents of batches that are over, those that failed included."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What became of them: of a running one `failed` only, the rest is known at its end."""
    failures: tuple[Mapping[str, str], ...] = ()
    cause: str = ""

    @property
    def is_over(self) -> bool:
        return self.status != _UNFINISHED

    @property
    def is_fine(self) -> bool:
        """Whether every document was looked at."""
        return self.status == "SUCCEEDED" and not self.counts.get("failed")

    def as_json(self) -> dict[str, Any]:
        """One entry of `--json`."""
        return {
            "root": self.root,
            "execution": self.execution,
            "status": self.status,
            "listed": self.listed,
            **{name: self.counts.get(name, 0) for name in COUNTS},
            "failures": list(self.failures),
        }


class Clients(Protocol):
    """A maker of clients; a boto3 Session is one."""

    def client(self, service_name: str, /) -> Any: ...


class DeployedStack:
    """A stack by its name, with what its outputs lead to."""

    def __init__(self, name: str, session: Clients | None = None) -> None:
        """StackRefused where there is no such stack, or it cannot be asked."""
        with _refusals():
            self._session: Any = session or _session()
        self._name = name
        self._outputs = self._described()

    def start(self, root: str | None, prefix: str) -> list[Run]:
        """Starts a run over `root`, or over every root, and over the keys below `prefix` in it."""
        machines: dict[str, str] = json.loads(self._output("ReindexStateMachines"))
        if root is not None and root not in machines:
            raise StackRefused(f"no storage root {root!r}: there are {', '.join(sorted(machines))}")
        return [
            Run(name, self._start(machine, name, prefix))
            for name, machine in machines.items()
            if root in (None, name)
        ]

    def resume(self, execution: str) -> Run:
        """Goes on with a failed run: only what failed is done again."""
        with _refusals():
            states = self._client("stepfunctions")
            root = json.loads(states.describe_execution(executionArn=execution)["input"])["root"]
            states.redrive_execution(executionArn=execution)
        return Run(root, execution)

    def look(self, run: Run) -> Run:
        """The run as it is now."""
        with _refusals():
            return self._looked_at(run)

    def redrive(self) -> int:
        """Puts the dead letters that lie there now on the indexer's queue again; how many.

        A letter is removed once the queue has taken it: whatever breaks off, it is in one of the two. Not by
        SQS's own move task: nobody says that it lets lie what nobody understands and is back at once.
        """
        with _refusals():
            queues = self._client("sqs")
            source, destination = self._output("DeadLetterQueueUrl"), self._output("IndexerQueueUrl")
            letters = _waiting(queues, source)
            with ThreadPoolExecutor(_LETTERS_AT_ONCE) as pool:
                return sum(
                    len(list(pool.map(partial(_put_back, queues, source, destination), some)))
                    for some in letters
                )

    def _start(self, machine: str, root: str, prefix: str) -> str:
        with _refusals():
            given = json.dumps({"root": root, "prefix": prefix})
            started = self._client("stepfunctions").start_execution(stateMachineArn=machine, input=given)
            return str(started["executionArn"])

    def _looked_at(self, run: Run) -> Run:
        states = self._client("stepfunctions")
        execution = states.describe_execution(executionArn=run.execution)
        items = [
            states.describe_map_run(mapRunArn=each["mapRunArn"])["itemCounts"]
            for each in states.list_map_runs(executionArn=run.execution)["mapRuns"]
        ]
        lost = sum(each["failed"] + each["timedOut"] + each["aborted"] for each in items)
        counts, failures = {"failed": lost}, ()
        if execution["status"] == "SUCCEEDED":
            output = json.loads(execution["output"])
            counts, failures = output["counts"], tuple(output["failures"])
        return Run(
            run.root,
            run.execution,
            execution["status"],
            listed=sum(each["total"] for each in items),
            done=sum(each["succeeded"] for each in items) + lost,
            counts=counts,
            failures=failures,
            cause=": ".join(execution[part] for part in ("error", "cause") if execution.get(part)),
        )

    def _described(self) -> dict[str, str]:
        with _refusals():
            (stack,) = self._client("cloudformation").describe_stacks(StackName=self._name)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())}

    def _output(self, name: str) -> str:
        if name not in self._outputs:
            raise StackRefused(
                f"the stack {self._name} has no output {name}: is it Groundwire's, and current?"
            )
        return self._outputs[name]

    def _client(self, service: str) -> Any:
        return self._session.client(service)


def _waiting(queues: Any, url: str) -> Iterator[list[Any]]:
    """As many letters as lie there now, some at a time: whoever takes them removes them."""
    count = "ApproximateNumberOfMessages"
    reply = queues.get_queue_attributes(QueueUrl=url, AttributeNames=[count])
    left = int(reply["Attributes"][count])
    while left > 0:
        reply = queues.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=min(left, _LETTERS_AT_ONCE),
            WaitTimeSeconds=_LOOKED_FOR_S,
        )
        if not (some := reply.get("Messages")):
            return
        left -= len(some)
        yield some


def _put_back(queues: Any, source: str, destination: str, letter: Any) -> None:
    """The body alone: why it was given up is told anew if it has to be."""
    queues.send_message(QueueUrl=destination, MessageBody=letter["Body"])
    queues.delete_message(QueueUrl=source, ReceiptHandle=letter["ReceiptHandle"])


def _session() -> boto3.Session:
    """The usual chain, and AWS_REGION besides, which AWS's other tools read and boto3 does not."""
    session = boto3.Session()
    region = os.environ.get("AWS_REGION")
    return session if session.region_name or not region else boto3.Session(region_name=region)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """AWS's errors as StackRefused: one sentence instead of a traceback."""
    try:
        yield
    except ClientError as error:
        raise StackRefused(f"AWS refuses: {error.response['Error'].get('Message')}") from error
    except BotoCoreError as error:
        raise StackRefused(f"AWS cannot be asked: {error}") from error
