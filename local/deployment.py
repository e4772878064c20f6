"""This repository's own CDK app, deployed to an emulator.

What takes long and depends on files only, the dependency layer and the cloud assembly, is kept in `.build/`
with a hash of those files. Everything that depends on the emulator is made anew, in its scratch directory.
"""

import fcntl
import hashlib
import json
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from local.emulator import ACCOUNT, REGION, Emulator
from local.keeper import Kept
from local.workshop import BUILD, LOGS, REPOSITORY, StackError, program, registry_environment

STACK = "groundwire-local"

_ASSEMBLY = BUILD / "assembly-local"
_STAMP = _ASSEMBLY / "made-from"
_MADE_FROM = (
    *("infra", "functions", "layers/shared"),
    *("cdk.json", "package-lock.json", "pyproject.toml", "uv.lock"),
)
_RUNS_ON = ("Linux", "x86_64")
_COMMAND_SECONDS = 600.0
_QUIET = {
    "CDK_DISABLE_CLI_TELEMETRY": "true",
    "CDK_DISABLE_VERSION_CHECK": "1",
    "NO_COLOR": "1",
}
_REASON = re.compile(
    r"^ *(?:❌ +(.+)|groundwire: (.+)|(\w*(?:Error|Exception|Failed): .+))$",
    re.MULTILINE,
)
"""The line of a log that says most: the command line's, our app's, or a traceback's last."""


class DeploymentError(StackError):
    """The CDK app could not be synthesized or deployed."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """The deployed stack, by the names of what its callers use."""

    api_id: str
    queue_url: str
    dead_letter_queue_url: str
    bucket: str
    table: str
    indexer: str
    reindex: Mapping[str, str]
    """The state machines' ARNs, by storage root."""


def deploy(emulator: Emulator, purpose: str) -> Deployment:
    """Deploys the CDK app's `local` environment; `purpose` names the logs. Raises DeploymentError."""
    if (platform.system(), platform.machine()) != _RUNS_ON:
        raise DeploymentError(
            "An emulator runs functions on the machine it is on, and the local environment builds them for"
            f" x86-64 Linux; this is {platform.machine()} {platform.system()}."
        )
    calls_emulator = {
        **emulator.environment(),
        **_QUIET,
        "CDK_HOME": str(emulator.scratch / "cdk"),
    }
    bootstrap = _Cdk(
        ["bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", ""],
        log=LOGS / f"{purpose}-bootstrap.log",
        environment=calls_emulator,
        directory=emulator.scratch,
    )
    outputs = emulator.scratch / "outputs.json"
    # Bootstrapping needs no assembly: on a first run the two go side by side.
    with bootstrap, _assembly(purpose) as assembly:
        bootstrap.finish()
        rollout = _Cdk(
            [
                *("deploy", STACK, "--app", str(assembly), "--outputs-file", str(outputs)),
                *("--method", "direct", "--require-approval", "never", "--progress", "events"),
            ],
            log=LOGS / f"{purpose}-deploy.log",
            environment=calls_emulator,
            directory=emulator.scratch,
        )
        with rollout:
            rollout.finish()
    return _deployment(json.loads(outputs.read_text())[STACK])


def _deployment(outputs: Mapping[str, str]) -> Deployment:
    return Deployment(
        api_id=outputs["ApiId"],
        queue_url=outputs["IndexerQueueUrl"],
        dead_letter_queue_url=outputs["DeadLetterQueueUrl"],
        bucket=outputs["DocumentsBucket"],
        table=outputs["TableName"],
        indexer=outputs["IndexerFunctionName"],
        reindex=json.loads(outputs["ReindexStateMachines"]),
    )


@contextmanager
def _assembly(purpose: str) -> Iterator[Path]:
    """The current cloud assembly, which stays as it is until the context is left.

    There is one place for it: readers share its lock, whoever has newer sources waits until they are gone.
    """
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "assembly.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not _is_current():
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_current():
                _synthesize(purpose)
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield _ASSEMBLY


def _is_current() -> bool:
    return _STAMP.exists() and _STAMP.read_text() == _fingerprint()


def _synthesize(purpose: str) -> None:
    # Taken before: files that change meanwhile make the next run do this again.
    fingerprint = _fingerprint()
    shutil.rmtree(_ASSEMBLY, ignore_errors=True)
    synth = _Cdk(
        ["synth", "-c", "environment=local", "--quiet", "--output", str(_ASSEMBLY)],
        log=LOGS / f"{purpose}-synth.log",
        environment={**registry_environment(), **_QUIET},
        directory=REPOSITORY,
    )
    with synth:
        synth.finish()
    _STAMP.write_text(fingerprint)


def _fingerprint() -> str:
    """A hash of every file that the assembly is made from, and of the Python that compiles its bytecode."""
    digest = hashlib.sha256(sys.version.encode())
    for name in _MADE_FROM:
        place = REPOSITORY / name
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(REPOSITORY)}\0{file.stat().st_size}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


class _Cdk:
    """One run of the CDK command line, which does not outlive the context it is used in."""

    def __init__(
        self, arguments: Sequence[str], *, log: Path, environment: Mapping[str, str], directory: Path
    ) -> None:
        self._verb = arguments[0]
        self._log = log
        cdk = str(REPOSITORY / "node_modules" / "aws-cdk" / "bin" / "cdk")
        command = [program("node"), cdk, *arguments, "--no-notices"]
        self._process = Kept(command, log=log, environment=environment, directory=directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stop()

    def finish(self) -> None:
        """Waits for its end. Raises DeploymentError when it failed or took too long."""
        status = self._process.wait(_COMMAND_SECONDS)
        if status is None:
            raise DeploymentError(f"`cdk {self._verb}` took longer than {_COMMAND_SECONDS:.0f} s.", self._log)
        if status != 0:
            raise DeploymentError(f"`cdk {self._verb}` failed{self._reason()}.", self._log)

    def _reason(self) -> str:
        said = _REASON.search(self._log.read_text(encoding="utf-8", errors="replace"))
        return f": {said[said.lastindex or 0].strip().rstrip('.')[:300]}" if said else ""
