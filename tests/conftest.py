"""What holds for every test: no credentials, no network but this machine, no clock to race against."""

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# Whatever this machine is set up for, boto3 finds one made-up identity and nothing to ask for another.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]
os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_SESSION_TOKEN="testing",
    AWS_REGION="eu-west-1",
    AWS_DEFAULT_REGION="eu-west-1",
    AWS_EC2_METADATA_DISABLED="true",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
)

# A busy machine must not fail an example for being slow.
settings.register_profile("groundwire", deadline=None)
settings.load_profile("groundwire")


_TOGETHER = ("tests/e2e/deployed/", "tests/infra/")
"""Folders whose tests share something costly: each goes to one worker as a whole."""


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Every test by itself, but for those that belong together.

    Not `--dist loadgroup`, which does nothing: pytest 9.2 does not let xdist 3.8 write groups into node ids.
    """

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in _TOGETHER if nodeid.startswith(folder)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    return Scheduling(config, log)


class NetworkRefusedError(OSError):
    """A test tried to leave this machine."""


@pytest.fixture(autouse=True, scope="session")
def _loopback_only() -> Iterator[None]:
    """Sockets that connect to other machines are refused, in this process."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = str(address[0])
            if not (host.startswith("127.") or host in ("::1", "localhost")):
                raise NetworkRefusedError(f"a test may not connect to {host}")
        connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield
