"""The emulator goes with whoever started it, however that one ended, and says why it did not start."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from local.emulator import Emulator, EmulatorError
from local.keeper import Kept
from local.workshop import REPOSITORY, ProgramMissingError

_STARTER = """
import time
from local.emulator import Emulator
with Emulator("test-orphan") as emulator:
    print(emulator.port, emulator.scratch, flush=True)
    time.sleep(60)
"""

_STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = "import socket, time; s= socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1],flush=True)"
with open(sys.argv[1], "w") as port:
    subprocess.Popen([sys.executable, "-c", worker + "; time.sleep(60)"], stdout=port)
time.sleep(60)
"""


def test_it_answers_while_it_is_used_and_leaves_nothing() -> None:
    with Emulator("test-plain") as emulator:
        process = _process(emulator.scratch)
        assert _listens(emulator.port)
        assert _is_alive(process)
    assert not _listens(emulator.port)
    assert not _is_alive(process)
    assert not emulator.scratch.exists()


def test_an_error_takes_it_down() -> None:
    emulator = Emulator("test-error")
    with pytest.raises(ZeroDivisionError), emulator:
        raise ZeroDivisionError
    assert not _listens(emulator.port)
    assert not emulator.scratch.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_does_not_outlive_whoever_started_it(number: signal.Signals) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", _STARTER],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with starter:
        assert starter.stdout is not None
        port, scratch = starter.stdout.readline().split()
        process = _process(Path(scratch))
        assert _is_alive(process)
        starter.send_signal(number)
    _until(lambda: not _is_alive(process) and not Path(scratch).exists())
    assert not _listens(int(port))


def test_the_keeper_ends_a_program_that_does_not_want_to_and_what_it_started(tmp_path: Path) -> None:
    scratch, said = tmp_path / "scratch", tmp_path / "port"
    scratch.mkdir()
    running = Kept(
        [sys.executable, "-c", _STUBBORN, str(said)],
        log=tmp_path / "log",
        environment=os.environ,
        directory=tmp_path,
        scratch=scratch,
    )
    try:
        _until(lambda: said.exists() and said.read_text().endswith("\n"))
        port = int(said.read_text())
        assert _listens(port)
    finally:
        running.stop()
    assert not _listens(port)
    assert not scratch.exists()


def test_a_taken_port_is_said_to_be_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        emulator = Emulator("test-taken", port=port)
        with pytest.raises(EmulatorError) as refusal:
            emulator.__enter__()
    assert str(refusal.value) == (
        f"The AWS emulator could not be started: port {port} is taken."
        " The log is .build/logs/test-taken-emulator.log."
    )
    assert not emulator.scratch.exists()


def test_a_missing_openssl_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Emulator("test-plain"):  # installed, whatever the path will be
        monkeypatch.setenv("PATH", str(tmp_path))
    emulator = Emulator("test-openssl", enforce_iam=True)
    with pytest.raises(ProgramMissingError, match=r"^openssl is not installed here"):
        emulator.__enter__()
    assert not emulator.scratch.exists()


def _process(scratch: Path) -> int:
    """The emulator's own process."""
    (file,) = (scratch / "files").glob("ministack-*.pid")
    return int(file.read_text())


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)
