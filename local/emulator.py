"""The AWS emulator on this machine: one process on a loopback port, gone with whoever started it.

It runs in an environment and a scratch directory of its own, because functions inherit its variables, see its
packages and leave their files behind. Over plain HTTP it believes every caller; with `enforce_iam` it speaks
TLS, checks signatures and evaluates policies.
"""

import fcntl
import hashlib
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from local.keeper import Kept
from local.workshop import BUILD, LOGS, StackError, program, registry_environment

ACCOUNT = "000000000000"
"""The account, and the access key of its root user, whom the emulator lets do everything."""
SECRET = "test"  # noqa: S105 (the only secret that the emulator accepts of its root user)
REGION = "eu-west-1"

_REQUIREMENTS = Path(__file__).with_name("requirements-emulator.txt")
_MEMORY = Path("/dev/shm")  # noqa: S108 (a directory with a random name is made in it)
_PLENTY_BYTES = 4 * 1024**3
_READY_SECONDS = 60.0


class EmulatorError(StackError):
    """The emulator could not be installed or started."""


class Emulator:
    """A running emulator, as a context manager; `url` and `environment()` say how to reach it."""

    def __init__(self, purpose: str, *, enforce_iam: bool = False, port: int | None = None) -> None:
        """`purpose` names the log; `port` is a free one unless given."""
        self.log = LOGS / f"{purpose}-emulator.log"
        self.enforces_iam = enforce_iam
        self.scratch = Path()
        """Removed with the emulator: whoever works for this stack may keep files here."""
        self.port = port or _free_port()
        self._process: Kept | None = None

    def __enter__(self) -> Self:
        try:
            self._start(install())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def host(self) -> str:
        """The name under which its certificate, where it has one, is valid."""
        return "localhost" if self.enforces_iam else "127.0.0.1"

    @property
    def url(self) -> str:
        return f"{'https' if self.enforces_iam else 'http'}://{self.host}:{self.port}"

    @property
    def certificate_authority(self) -> Path | None:
        """What signed its certificate; None over plain HTTP."""
        return self.scratch / "ca.pem" if self.enforces_iam else None

    def tls(self) -> ssl.SSLContext | None:
        """How to check its certificate; None over plain HTTP."""
        authority = self.certificate_authority
        return ssl.create_default_context(cafile=str(authority)) if authority else None

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments that send a boto3 client here as the account's root user."""
        return {
            "endpoint_url": self.url,
            "region_name": REGION,
            "aws_access_key_id": ACCOUNT,
            "aws_secret_access_key": SECRET,
            "verify": str(self.certificate_authority) if self.enforces_iam else None,
        }

    def environment(self) -> dict[str, str]:
        """This process's variables, changed so that a program's AWS calls come here and nowhere else."""
        authority = self.certificate_authority
        trust = (
            dict.fromkeys(("AWS_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"), str(authority))
            if authority
            else {}
        )
        return {
            **_without_aws(os.environ),
            **trust,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            # The person's own profiles must not take part.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def wait(self) -> None:
        """Returns when it has ended."""
        assert self._process is not None
        self._process.wait()

    def close(self) -> None:
        """Stops it and removes its scratch directory; harmless when it never ran."""
        if self._process is not None:
            self._process.stop()
        if self.scratch != Path():
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _start(self, python: Path) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="groundwire-", dir=_scratch_place()))
        if self.enforces_iam:
            _make_certificates(self.scratch)
        self._process = Kept(
            [str(python), "-m", "ministack"],
            log=self.log,
            environment=self._own_environment(),
            directory=self.scratch,
            scratch=self.scratch,
        )
        self._wait_until_ready()

    def _own_environment(self) -> dict[str, str]:
        """All that it, and so each function, finds in its environment: nothing of this machine's set-up.

        A certificate bundle or an endpoint that a function inherited would send its calls elsewhere.
        """
        files = self.scratch / "files"
        files.mkdir()
        tls = {
            "AUTH": "true",
            "USE_SSL": "1",
            "MINISTACK_SSL_CERT": str(self.scratch / "chain.pem"),
            "MINISTACK_SSL_KEY": str(self.scratch / "key.pem"),
        }
        return {
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "HOME": str(files),
            "TMPDIR": str(files),
            "STATE_DIR": str(files / "state"),
            "S3_DATA_DIR": str(files / "s3"),
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_REGION": REGION,
            "MINISTACK_ACCOUNT_ID": ACCOUNT,
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            **(tls if self.enforces_iam else {}),
        }

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        until = time.monotonic() + _READY_SECONDS
        while time.monotonic() < until:
            if self._process.wait(0.05) is not None:
                reason = f"port {self.port} is taken" if _is_taken(self.port) else "it ended at once"
                raise EmulatorError(f"The AWS emulator could not be started: {reason}.", self.log)
            if self._answers():
                return
        raise EmulatorError(
            f"The AWS emulator did not answer on {self.url} within {_READY_SECONDS:.0f} s.", self.log
        )

    def _answers(self) -> bool:
        context = self.tls()
        connection = (
            http.client.HTTPSConnection(self.host, self.port, timeout=1, context=context)
            if context
            else http.client.HTTPConnection(self.host, self.port, timeout=1)
        )
        try:
            connection.request("GET", "/_ministack/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def install() -> Path:
    """Makes the emulator's own virtual environment if it is not there yet; returns its Python."""
    requirements = _REQUIREMENTS.read_text()
    digest = hashlib.sha256("\0".join([requirements, sys.version, str(BUILD)]).encode()).hexdigest()[:12]
    home = BUILD / f"emulator-{digest}"
    python = home / "bin" / "python"
    LOGS.mkdir(parents=True, exist_ok=True)
    with (BUILD / "emulator.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            log = LOGS / "install-emulator.log"
            uv = program("uv")
            # Not "--python 3.13": outside this folder a version manager may offer none.
            _install([uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(home)], log)
            _install(
                [uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(_REQUIREMENTS)], log
            )
            (home / "complete").touch()
    return python


def _install(command: list[str], log: Path) -> None:
    with log.open("wb") as out:
        done = subprocess.run(
            command, env=registry_environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
        )
    if done.returncode:
        raise EmulatorError(
            "The AWS emulator could not be installed; is a package registry reachable from here?", log
        )


def _scratch_place() -> Path | None:
    """Memory where there is plenty of it, else wherever temporary files go.

    Every warm function unpacks thousands of files; some disks take ten seconds to forget them.
    """
    if sys.platform != "linux" or "TMPDIR" in os.environ or not _MEMORY.is_dir():
        return None
    memory = os.statvfs(_MEMORY)
    runs_code = not memory.f_flag & os.ST_NOEXEC
    return _MEMORY if runs_code and memory.f_bavail * memory.f_frsize >= _PLENTY_BYTES else None


def _make_certificates(folder: Path) -> None:
    """A certificate authority and a server certificate that it signed: obstore refuses one that is both."""
    extensions = folder / "leaf.ext"
    extensions.write_text(
        "subjectAltName=DNS:localhost,DNS:*.execute-api.localhost,IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n"
    )
    new_key = ["-newkey", "rsa:2048", "-nodes", "-keyout"]
    authority = ["req", "-x509", *new_key, "ca.key", "-out", "ca.pem", "-days", "30", "-subj", "/CN=local-ca"]
    request = ["req", *new_key, "key.pem", "-out", "leaf.csr", "-subj", "/CN=localhost"]
    signing = ["x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"]
    for arguments in (
        [*authority, "-addext", "keyUsage=critical,keyCertSign"],
        request,
        [*signing, "-days", "30", "-extfile", extensions.name, "-out", "leaf.pem"],
    ):
        done = subprocess.run(
            [program("openssl"), *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise EmulatorError(f"openssl could not make the emulator's certificates: {done.stderr.strip()}")
    (folder / "chain.pem").write_text((folder / "leaf.pem").read_text() + (folder / "ca.pem").read_text())


def _without_aws(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if not name.startswith("AWS_")}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
