"""Debug logging (P-3): `DEBUG=composition-loader,canonical-grounding` switches a namespace on.

Records are one line of JSON each: an event and its fields; ids, sizes and codes, never content.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

COMPOSITION = "composition-loader"
GROUNDING = "canonical-grounding"

_for_this_request: ContextVar[frozenset[str]] = ContextVar("debug_namespaces", default=frozenset())


def json_line(record: Any) -> str:
    """A log record as one line of JSON in ASCII.

    It quotes keys and names that strangers chose: none of them ends the line, or is obeyed by a terminal.
    """
    return json.dumps(record, separators=(",", ":"), default=str)


def namespaces(text: str | None) -> frozenset[str]:
    """The namespaces in a comma-separated list; `*` is all of them."""
    names = {name.strip() for name in (text or "").split(",")}
    return frozenset({COMPOSITION, GROUNDING} if "*" in names else names & {COMPOSITION, GROUNDING})


@contextmanager
def debugging(names: frozenset[str]) -> Iterator[None]:
    """Switches `names` on for the request that runs inside."""
    token = _for_this_request.set(names)
    try:
        yield
    finally:
        _for_this_request.reset(token)


class DebugLog:
    """The records of one namespace; costs a set look-up where it is off."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._always = namespace in namespaces(os.environ.get("DEBUG"))

    @property
    def on(self) -> bool:
        return self._always or self._namespace in _for_this_request.get()

    def __call__(self, event: str, **fields: object) -> None:
        """Logs `event` with its fields."""
        if self.on:
            line = {"namespace": self._namespace, "event": event, **fields}
            _logger().info(json_line(line))


def _logger() -> logging.Logger:
    """Ours, writing to standard error unless the application has given it a handler."""
    logger = logging.getLogger("groundwire.debug")
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    return logger
