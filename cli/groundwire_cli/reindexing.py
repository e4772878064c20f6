"""Reindex and redrive: asks a deployed stack to look at its documents again, and shows how far it is.

The stack's outputs say where its parts are. A run that goes on without us is no fault: Ctrl-C stops watching,
not the run.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_UNFINISHED = "RUNNING"
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
            self._session: Any = session or boto3.Session()
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

    def redrive(self) -> str:
        """Moves the dead letters back to where they came from; the handle of the task that does."""
        with _refusals():
            queues = self._client("sqs")
            arns = [
                queues.get_queue_attributes(QueueUrl=self._output(output), AttributeNames=["QueueArn"])
                for output in ("DeadLetterQueueUrl", "IndexerQueueUrl")
            ]
            source, destination = (reply["Attributes"]["QueueArn"] for reply in arns)
            # Said, not left to SQS: what EventBridge or the indexer put there itself has no way back.
            task = queues.start_message_move_task(SourceArn=source, DestinationArn=destination)
            return str(task["TaskHandle"])

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


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """AWS's errors as StackRefused: one sentence instead of a traceback."""
    try:
        yield
    except ClientError as error:
        raise StackRefused(f"AWS refuses: {error.response['Error'].get('Message')}") from error
    except BotoCoreError as error:
        raise StackRefused(f"AWS cannot be asked: {error}") from error
