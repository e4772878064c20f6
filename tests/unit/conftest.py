"""Property tests draw the same examples on every machine, and as many as a minute allows."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.fakes import Gate

settings.register_profile("unit", max_examples=100, deadline=None, derandomize=True, database=None)
settings.load_profile("unit")


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where a store may hang; whatever hangs there goes on when the test is over."""
    gate = Gate()
    yield gate
    gate.open()
