"""Runs one program for exactly as long as whoever started it lives, and cleans up after it.

Between the two stands a keeper: a process whose standard input is a pipe that the starter holds open. However
the starter ends, by itself, by a signal or killed, the pipe closes: the program's process group gets TERM and
some seconds, then what is left of it gets KILL, and the program's scratch directory is removed. The keeper
leads a session of its own, so neither of the two hears a terminal's Ctrl-C.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

GRACE_SECONDS = 6.0
"""How long the program may take over its own goodbye; a function that hangs delays the emulator's."""

_STOP_SECONDS = 30.0
_WATCH_SECONDS = 0.1


class Kept:
    """A program that was started and does not outlive this process."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        directory: Path,
        scratch: Path | None = None,
    ) -> None:
        """Starts `command` in `directory`; what it says goes to `log`, and `scratch` is removed after it."""
        log.parent.mkdir(parents=True, exist_ok=True)
        # A new file: a run that still writes to an older one keeps its own.
        log.unlink(missing_ok=True)
        with log.open("wb") as out:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", __file__, str(scratch or ""), *command],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )

    def wait(self, seconds: float | None = None) -> int | None:
        """The program's exit status; None when it still runs after that time."""
        try:
            return self._keeper.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        """Ends the program if it still runs, and all it left; harmless when done before."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        if self.wait(_STOP_SECONDS) is None:
            self._keeper.kill()
            self._keeper.wait()


def main(scratch: str, command: list[str]) -> int:
    """The keeper's own part: the program's exit status, after everything it left is gone."""
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
    # Asked to end, the keeper does what it does when its starter is gone.
    signal.signal(signal.SIGTERM, lambda *_: os.close(sys.stdin.fileno()))
    try:
        while not _has_ended(program) and not _starter_is_gone():
            pass
    finally:
        _stop(program)
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
    return program.returncode


def _starter_is_gone() -> bool:
    try:
        readable, _, _ = select.select([sys.stdin], [], [], _WATCH_SECONDS)
    except (OSError, ValueError):  # standard input was closed by the signal handler
        return True
    return bool(readable)


def _has_ended(program: subprocess.Popen[bytes]) -> bool:
    """Whether it ended, without taking its status: its number stays its own until its group is killed."""
    return os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _stop(program: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + GRACE_SECONDS
    if not _has_ended(program):
        # The whole group: an emulator waits for its warm functions, which nobody else would tell to end.
        os.killpg(program.pid, signal.SIGTERM)
    while not _has_ended(program) and time.monotonic() < until:
        time.sleep(0.05)
    with suppress(ProcessLookupError, PermissionError):  # nothing but the ended program itself is left
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
