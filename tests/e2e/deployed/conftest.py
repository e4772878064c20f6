"""One deployment for the whole run: tests that use it go to one worker and share nothing but it."""

import uuid
from collections.abc import Iterator

import pytest

from tests.e2e.deployed.stack import Stack, deployed


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    with deployed() as stack:
        yield stack


@pytest.fixture
def folder() -> str:
    """A folder that no other test has written to."""
    return f"t-{uuid.uuid4().hex[:12]}"
