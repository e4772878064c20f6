"""`groundwire reindex` and `redrive`: what is asked of a deployed stack, and what is said of its answers."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from groundwire_cli import progress, reindexing
from groundwire_cli.main import main

MACHINES = {"kb": "arn:machine:kb", "old": "arn:machine:old"}
QUEUES = {"DeadLetterQueueUrl": "https://q/dead", "IndexerQueueUrl": "https://q/index"}
OUTPUT = {
    "counts": {"indexed": 3, "unchanged": 7, "removed": 1, "invalid": 2, "failed": 0},
    "failures": [],
}


def items(total: int, succeeded: int, failed: int = 0) -> dict[str, Any]:
    return {
        "itemCounts": {"total": total, "succeeded": succeeded, "failed": failed, "timedOut": 0, "aborted": 0}
    }


class Cloud:
    """The parts of AWS that the two commands talk to; every client is this object."""

    region_name = "eu-west-1"

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.executions: dict[str, list[dict[str, Any]]] = {}
        self.maps: list[dict[str, Any]] = [items(10, 4), items(10, 10)]
        self.letters: list[str] = []
        self.outputs = {"ReindexStateMachines": json.dumps(MACHINES), **QUEUES}

    def client(self, service_name: str) -> Any:
        return self

    def describe_stacks(self, *, StackName: str) -> Any:  # noqa: N803 - the names are AWS's
        self.asked.append(("stack", StackName))
        if StackName == "gone":
            raise ClientError({"Error": {"Code": "ValidationError", "Message": "no stack gone"}}, "Describe")
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs.items()]
        return {"Stacks": [{"Outputs": outputs}]}

    def start_execution(self, *, stateMachineArn: str, input: str) -> Any:  # noqa: A002, N803
        self.asked.append((stateMachineArn, json.loads(input)))
        return {"executionArn": f"{stateMachineArn}:1"}

    def redrive_execution(self, *, executionArn: str) -> None:  # noqa: N803
        self.asked.append(("redrive", executionArn))

    def describe_execution(self, *, executionArn: str) -> Any:  # noqa: N803
        told = self.executions.setdefault(executionArn, [ended()])
        return {"input": '{"root": "kb", "prefix": ""}'} | (told.pop(0) if len(told) > 1 else told[0])

    def list_map_runs(self, *, executionArn: str) -> Any:  # noqa: N803
        return {"mapRuns": [{"mapRunArn": executionArn}]}

    def describe_map_run(self, *, mapRunArn: str) -> Any:  # noqa: N803
        return self.maps.pop(0) if len(self.maps) > 1 else self.maps[0]

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: list[str]) -> Any:  # noqa: N803
        return {"Attributes": {"ApproximateNumberOfMessages": str(len(self.letters))}}

    def receive_message(self, *, QueueUrl: str, MaxNumberOfMessages: int, **_: Any) -> Any:  # noqa: N803
        assert QueueUrl == QUEUES["DeadLetterQueueUrl"]
        handed, self.letters = self.letters[:MaxNumberOfMessages], self.letters[MaxNumberOfMessages:]
        return {"Messages": [{"Body": body, "ReceiptHandle": body} for body in handed]} if handed else {}

    def send_message(self, **message: str) -> None:
        self.asked.append(("send", message))

    def delete_message(self, **message: str) -> None:
        self.asked.append(("delete", message))


def ended(status: str = "SUCCEEDED", **output: Any) -> dict[str, Any]:
    return {"status": status, "output": json.dumps(OUTPUT | output)}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    cloud = Cloud()
    monkeypatch.setattr("boto3.Session", lambda: cloud)
    monkeypatch.setattr(progress, "LOOK_EVERY_S", 0.0)
    return cloud


def test_every_root_is_started_and_followed_to_its_end(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.executions["arn:machine:kb:1"] = [{"status": "RUNNING"}, ended()]
    assert main(["reindex", "--environment", "dev"]) == 0
    assert cloud.asked == [
        ("stack", "groundwire-dev"),
        ("arn:machine:kb", {"root": "kb", "prefix": ""}),
        ("arn:machine:old", {"root": "old", "prefix": ""}),
    ]
    said = capsys.readouterr().out
    for words in ("kb", "10 objects", "3 indexed", "7 unchanged", "1 removed", "2 invalid", "0 failed"):
        assert words in said


def test_one_root_below_a_prefix_as_json(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reindex", "--stack", "mine", "--root", "old", "--prefix", "sops/", "--json"]) == 0
    assert cloud.asked == [("stack", "mine"), ("arn:machine:old", {"root": "old", "prefix": "sops/"})]
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run == {
        "root": "old",
        "execution": "arn:machine:old:1",
        "status": "SUCCEEDED",
        "listed": 10,
        "indexed": 3,
        "unchanged": 7,
        "removed": 1,
        "invalid": 2,
        "failed": 0,
        "failures": [],
    }


def test_documents_that_failed_are_named(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    failed = ended(
        counts=OUTPUT["counts"] | {"failed": 1},  # type: ignore[operator]
        failures=[{"key": "a\u202e.md", "code": "forbidden"}],
    )
    cloud.executions["arn:machine:kb:1"] = [failed]
    assert main(["reindex", "--stack", "mine", "--root", "kb"]) == 1
    said = capsys.readouterr().out
    assert "forbidden  a<U+202E>.md" in said
    assert "run it again" in said


def test_a_run_that_failed_can_be_resumed(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.maps = [items(100, 40, 50)]
    cloud.executions["arn:machine:kb:1"] = [
        {"status": "FAILED", "error": "States.ExceedToleratedFailureThreshold", "cause": "too many"}
    ]
    assert main(["reindex", "--stack", "mine", "--root", "kb"]) == 1
    said = capsys.readouterr().out
    assert "50 failed" in said
    assert "States.ExceedToleratedFailureThreshold: too many" in said
    assert "--resume arn:machine:kb:1" in said
    cloud.executions["arn:machine:kb:1"] = [ended()]
    assert main(["reindex", "--stack", "mine", "--resume", "arn:machine:kb:1"]) == 0
    assert ("redrive", "arn:machine:kb:1") in cloud.asked


def test_a_bar_says_what_is_known_yet() -> None:
    running = reindexing.Run("kb", "arn", listed=1200, done=300, counts={"failed": 2})
    assert progress.words(running) == "1,200 listed  2 failed"


def test_a_dead_letter_is_removed_when_the_queue_has_taken_it(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.letters = ["a"]
    assert main(["redrive", "--stack", "mine", "--json"]) == 0
    assert cloud.asked[1:] == [
        ("send", {"QueueUrl": QUEUES["IndexerQueueUrl"], "MessageBody": "a"}),
        ("delete", {"QueueUrl": QUEUES["DeadLetterQueueUrl"], "ReceiptHandle": "a"}),
    ]
    assert json.loads(capsys.readouterr().out) == {"moved": 1}


def test_all_dead_letters_go_back(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.letters = letters = [f"{number}" for number in range(1_234)]
    assert main(["redrive", "--stack", "mine"]) == 0
    assert sorted(m["MessageBody"] for what, m in cloud.asked if what == "send") == sorted(letters)
    assert "1,234" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["reindex", "--stack", "gone"], "AWS refuses: no stack gone"),
        (["reindex", "--stack", "mine", "--root", "nowhere"], "no storage root 'nowhere': there are kb, old"),
        (["redrive", "--stack", "gone"], "AWS refuses: no stack gone"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"groundwire: {problem}\n"


def test_a_stack_of_something_else(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.outputs = {}
    assert main(["reindex", "--stack", "other"]) == 2
    assert "no output ReindexStateMachines" in capsys.readouterr().err


def test_without_credentials(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(**_: str) -> None:
        raise NoCredentialsError

    monkeypatch.setattr(cloud, "describe_stacks", nobody)
    assert main(["redrive", "--stack", "mine"]) == 2
    assert "AWS cannot be asked" in capsys.readouterr().err


def test_no_longer_watching_stops_nothing(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "watch", interrupted)
    assert main(["reindex", "--stack", "mine"]) == 1
    assert "goes on" in capsys.readouterr().err
