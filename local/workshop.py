"""Where this machine's part of the work is kept, and which programs do it; all of it is git-ignored."""

import os
import shutil
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BUILD = REPOSITORY / ".build"
LOGS = BUILD / "logs"
PROGRAMS = BUILD / "bin"
"""uv, and node where the system has none that is new enough (local/bootstrap.py)."""


class StackError(Exception):
    """Something on this machine failed: one sentence for the person at the terminal, and the log's place."""

    def __init__(self, sentence: str, log: Path | None = None) -> None:
        super().__init__(sentence if log is None else f"{sentence} The log is {shown(log)}.")


class ProgramMissingError(StackError):
    """A program that the stack needs is not installed."""


def program(name: str) -> str:
    """The path of a program of ours or of the system's. Raises ProgramMissingError."""
    found = shutil.which(name, path=search_path())
    if found is None:
        raise ProgramMissingError(
            f"{name} is not installed here: `make demo` brings uv and node, the system openssl."
        )
    return found


def search_path() -> str:
    """The path with this project's programs first."""
    own = [str(Path(sys.executable).parent), str(PROGRAMS)]
    return os.pathsep.join([*own, os.environ.get("PATH", os.defpath)])


def registry_environment() -> dict[str, str]:
    """Variables for programs that ask package registries: ours, with certificates as the machine has them."""
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return {**kept, "PATH": search_path()}


def shown(path: Path) -> Path:
    """The path as a person in the repository would type it."""
    return path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path
