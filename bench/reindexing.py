"""How fast a bucket is reindexed: `python -m bench.reindexing --documents 10000`.

The stack is deployed to the local emulator as it is to AWS. Its state machine runs twice over a folder of new
documents; the second run must write nothing, which is compared item by item. The emulator ignores ItemBatcher
and invokes the function for each document, so the function is measured by itself as well: given batches, side
by side, as the service would. Beside both stands a reference of the same run: one document after the other,
through the same use case and stores. Emulator, functions and reference share this machine's processors: the
ratios hold, not the rates.

Nothing else indexes meanwhile: uploads are not told of, and the indexer does not take what is healed.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config
from rich.console import Console

from groundwire.deadline import Deadline
from groundwire.pointers import Location
from local.deployment import Deployment, deploy
from local.emulator import Emulator
from local.steps import Step, step
from local.workshop import StackError
from reindex.wiring import wired

SAMPLE, REFERENCE = 1_000, 200
"""Documents given to the function in batches, and one after the other."""
PUTS_AT_ONCE = 8
SHARED = ("shared/terms.md", "shared/contacts.md")
"""What every document includes. It is indexed before them, so that no document waits to be healed."""

Counts = Mapping[str, int]


class Bench:
    """A deployed stack whose uploads nobody hears of, and the ways to index them."""

    def __init__(self, emulator: Emulator, deployment: Deployment) -> None:
        options = {**emulator.client_options(), "config": Config(max_pool_connections=32, read_timeout=120)}
        self._s3 = boto3.client("s3", **options)
        self._functions = boto3.client("lambda", **options)
        self._machines = boto3.client("stepfunctions", **options)
        self._table = boto3.client("dynamodb", **options)
        self._deployment = deployment
        ((self._root, self._machine),) = deployment.reindex.items()
        described = self._machines.describe_state_machine(stateMachineArn=self._machine)
        documents = json.loads(described["definition"])["States"]["Documents"]
        self.batch: int = documents["ItemBatcher"]["MaxItemsPerBatch"]
        # As many as share no processor: more would only run each other out of time.
        self.at_once = os.cpu_count() or 1
        self._function: str = documents["ItemProcessor"]["States"]["Index"]["Resource"]
        self._pause(boto3.client("events", **options))
        configuration = self._functions.get_function_configuration(FunctionName=self._function)
        os.environ.update({**emulator.environment(), **configuration["Environment"]["Variables"]})

    def upload(self, keys: Sequence[str], shown: Step | None = None) -> None:
        """Puts a small document at each key."""
        with ThreadPoolExecutor(PUTS_AT_ONCE) as pool:
            for done, _ in enumerate(pool.map(self._put, keys), 1):
                if shown:
                    shown.advance(done)

    def run(self, folder: str, shown: Step) -> tuple[float, float, Counts]:
        """One run of the state machine: seconds over all and for the listed documents, and its counts."""
        began = time.perf_counter()
        execution = self._machines.start_execution(
            stateMachineArn=self._machine, input=json.dumps({"root": self._root, "prefix": f"{folder}/"})
        )["executionArn"]
        while (run := self._machines.describe_execution(executionArn=execution))["status"] == "RUNNING":
            time.sleep(0.5)
            for each in self._machines.list_map_runs(executionArn=execution)["mapRuns"]:
                counts = self._machines.describe_map_run(mapRunArn=each["mapRunArn"])["itemCounts"]
                shown.advance(counts["succeeded"] + counts["failed"])
        seconds = time.perf_counter() - began
        if run["status"] != "SUCCEEDED":
            raise StackError(f"The run ended as {run['status']}: {run.get('cause', '')}.")
        (mapped,) = self._machines.list_map_runs(executionArn=execution)["mapRuns"]
        looking = mapped["stopDate"] - mapped["startDate"]
        return seconds, looking.total_seconds(), json.loads(run["output"])["counts"]

    def in_batches(self, keys: Sequence[str]) -> Counts:
        """The keys through the deployed function, in batches side by side."""
        with ThreadPoolExecutor(self.at_once) as pool:
            return _sum(pool.map(self._invoke, _batches(keys, self.batch)))

    def warm_up(self) -> None:
        """As many of the function's processes as are then used at once, each past its start."""
        with ThreadPoolExecutor(self.at_once) as pool:
            list(pool.map(self._invoke, [SHARED] * self.at_once))

    def in_this_process(self, keys: Sequence[str], size: int) -> Counts:
        """The keys through the function's use case here, `size` of them at a time."""
        function = wired()
        root = function.roots.by_name[self._root]
        batches = ([Location(root, key) for key in batch] for batch in _batches(keys, size))
        return _sum(dict(function.reindexing.look(each, Deadline.after(60)).counts) for each in batches)

    def writes(self) -> dict[tuple[str, str], str]:
        """Which write each item of the table is of."""
        pages = self._table.get_paginator("scan").paginate(
            TableName=self._deployment.table, ProjectionExpression="PK, SK, gen", ConsistentRead=True
        )
        items = (item for page in pages for item in page["Items"])
        return {(item["PK"]["S"], item["SK"]["S"]): item["gen"]["S"] for item in items}

    def _pause(self, events: Any) -> None:
        for rule in events.list_rules()["Rules"]:
            if "aws.s3" in rule.get("EventPattern", ""):
                events.disable_rule(Name=rule["Name"])
        for mapping in self._functions.list_event_source_mappings()["EventSourceMappings"]:
            self._functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)

    def _put(self, key: str) -> None:
        includes = "" if key in SHARED else "".join(f"  - ../{each}\n" for each in SHARED)
        text = f"---\nincludes:\n{includes}---\n" if includes else ""
        self._s3.put_object(
            Bucket=self._deployment.bucket,
            Key=key,
            Body=f"{text}{key} {'and so on ' * 50}".encode(),
            ContentType="text/markdown",
        )

    def _invoke(self, keys: Sequence[str]) -> Counts:
        items = [{"root": self._root, "Key": key} for key in keys]
        reply = self._functions.invoke(
            FunctionName=self._function, Payload=json.dumps({"Items": items}).encode()
        )
        answer = json.loads(reply["Payload"].read())
        if "FunctionError" in reply or answer["failed"]:
            raise StackError(f"The function did not look at every document: {answer}.")
        return {name: number for name, number in answer.items() if name != "failed"}


def main() -> int:
    """Prints a row for each way: documents per second, and the ratio to one after the other."""
    parser = argparse.ArgumentParser(prog="python -m bench.reindexing", description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=300, help="looked at by the state machine")
    number = parser.parse_args().documents
    console = Console(stderr=True)
    try:
        with Emulator("bench-reindexing") as emulator:
            with step(console, "deploying to the emulator"):
                bench = Bench(emulator, deploy(emulator, "bench-reindexing"))
            measure(bench, console, number)
    except StackError as error:
        print(f"bench.reindexing: {error}", file=sys.stderr)
        return 1
    return 0


def measure(bench: Bench, console: Console, number: int) -> None:
    """Both runs of each way, over documents of its own."""
    sample = min(number, SAMPLE)
    folders = {"whole": number, "batches": sample, "alone": sample, "reference": min(number, REFERENCE)}
    keys = {folder: _keys(folder, count) for folder, count in folders.items()}
    for folder, names in keys.items():
        with step(console, f"uploading {folder}", len(names)) as shown:
            bench.upload(names, shown)
    bench.upload(SHARED)
    bench.warm_up()
    print(f"{os.cpu_count()} processors; ratios are to one document after the other in the same run")
    ways: dict[str, tuple[str, Callable[[Sequence[str]], Counts]]] = {
        "reference": ("one after the other", lambda keys: bench.in_this_process(keys, 1)),
        "alone": (f"batches of {bench.batch}", lambda keys: bench.in_this_process(keys, bench.batch)),
        "batches": (f"the function, {bench.at_once} batches of {bench.batch} at once", bench.in_batches),
    }
    rates: dict[str, float] = {}
    for again, outcome in ((False, "indexed"), (True, "unchanged")):
        for folder, (title, look) in ways.items():
            began = time.perf_counter()
            counts = look(keys[folder])
            rate = _rate(len(keys[folder]), time.perf_counter() - began)
            assert counts.get(outcome) == len(keys[folder]), counts
            if folder == "reference":
                rates[outcome] = rate
            _print(outcome, title, len(keys[folder]), rate, rates[outcome])
        before = bench.writes() if again else {}
        with step(console, f"the state machine, {outcome}", number) as shown:
            seconds, looking, counts = bench.run("whole", shown)
        assert counts[outcome] == number, counts
        for title, taken in (("the state machine's map", looking), ("the state machine, whole run", seconds)):
            _print(outcome, title, number, _rate(number, taken), rates[outcome])
        if again:
            written = len(bench.writes().items() ^ before.items())
            print(f"items written by the state machine's second run: {written}")
            assert written == 0


def _print(outcome: str, title: str, number: int, rate: float, reference: float) -> None:
    print(
        f"{outcome:<10} {title:<44} {number:6,} {rate:7.1f} documents/s {rate / reference:5.1f}x", flush=True
    )


def _rate(number: int, seconds: float) -> float:
    return number / seconds


def _keys(folder: str, number: int) -> list[str]:
    return [f"{folder}/{each:06}.md" for each in range(number)]


def _batches(keys: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


def _sum(counts: Iterator[Counts]) -> Counts:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


if __name__ == "__main__":
    sys.exit(main())
