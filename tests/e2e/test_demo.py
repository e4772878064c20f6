"""The demo as a newcomer runs it: it shows what it promises, and ends cleanly when it cannot."""

import errno
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from local import handbook
from local.api import Answer, Api, ApiError
from local.deployment import DeploymentError, deploy
from local.emulator import Emulator
from local.workshop import REPOSITORY

_DEMO = [sys.executable, "-m", "local.demo"]


def test_it_shows_the_way_from_an_upload_to_an_answer() -> None:
    done = subprocess.run(_DEMO, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout  # no terminal, no colour
    for shown in (
        r"✓ wait until they are indexed .* 24 indexed, 1 of them invalid",
        r"#2  Cold complaint +✓ resolved +sops/cold-complaint.md",
        r"#4  .* ✗ web_source",
        r"#5  .* ✗ root_not_configured",
        r"✓ sops/water-leak.md  2.4 KB  root",
        r"├── ✗ ../reference/Valve-Locations.md  fetch_failed: not_found",
        r"│   └── ✓ contacts/on-call.md  1.7 KB  depth 2",
        r"↺ ./power-outage.md  cycle: ancestor  \(sops/power-outage.md -> .* -> sops/power-outage.md\)",
        r"The answer is not complete\. In the function: resolve .* together \d",
        r"line 9: target_missing",
        r"✓ take everything down",
    ):
        assert re.search(shown, done.stdout), shown
    _assert_nothing_listens(done.stdout)


def test_a_taken_port_ends_it_with_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = subprocess.run(
            [*_DEMO, "--port", str(port)], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == (
        f"groundwire: The AWS emulator could not be started: port {port} is taken."
        " The log is .build/logs/demo-emulator.log.\n"
    )


@pytest.fixture
def heard() -> Iterator[None]:
    """A shell that runs these tests in the background has all ignore SIGINT; what they start hears it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ended_in_the_middle_it_takes_everything_down(number: signal.Signals, status: int) -> None:
    with subprocess.Popen(
        _DEMO, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        shown = ""
        for line in demo.stdout:
            shown += line
            if line.startswith("… deploy"):
                break
        time.sleep(1)  # well into it
        demo.send_signal(number)
        _, said = demo.communicate(timeout=60)
    assert demo.returncode == status
    assert "Traceback" not in said
    _assert_nothing_listens(shown)


def test_a_deployment_that_fails_says_so_and_where_its_log_is() -> None:
    with Emulator("test-unreachable") as emulator:
        pass
    emulator.scratch.mkdir()
    try:
        with pytest.raises(DeploymentError) as refusal:
            deploy(emulator, "test-unreachable")
    finally:
        emulator.close()
    sentence = str(refusal.value)
    assert sentence.startswith("`cdk bootstrap` failed: Environment aws://000000000000/eu-west-1 failed")
    assert sentence.endswith(" The log is .build/logs/test-unreachable-bootstrap.log.")
    assert "\n" not in sentence


def test_an_index_that_stays_empty_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(Api):
        def get(self, path: str, **query: str) -> Answer:
            return Answer(404, "application/problem+json", b"{}")

    monkeypatch.setattr(handbook, "INDEXING_SECONDS", 0.0)
    emulator = Emulator("test-empty")
    chosen = handbook.documents()
    with pytest.raises(handbook.IndexingError) as refusal:
        handbook.wait_until_indexed(emulator, Forgetful(emulator, "abc"), "bucket", chosen, lambda done: None)
    assert str(refusal.value) == (
        "After 0 s 0 of 24 documents were indexed, contacts/contractors.md was not."
        " The log is .build/logs/test-empty-emulator.log."
    )


def test_an_api_that_is_gone_is_said_not_to_answer() -> None:
    with Emulator("test-gone") as emulator:
        pass
    with pytest.raises(ApiError, match=r"^GET /healthz got no answer: ConnectionRefusedError"):
        Api(emulator, "abc").get("/healthz")


def _assert_nothing_listens(shown: str) -> None:
    """The address that the demo said its emulator had answers no more."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)", shown)
    assert found, shown
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(found[1]))) == errno.ECONNREFUSED
