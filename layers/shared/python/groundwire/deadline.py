"""The moment to stop, made once per request and handed down to every wait (B-8)."""

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on a monotonic clock; in tests the clock is turned by hand."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @staticmethod
    def after(seconds: float, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        """The moment `seconds` from now."""
        return Deadline(clock() + seconds, clock)

    def left(self) -> float:
        """Seconds until then, never negative."""
        return max(0.0, self.at - self.clock())

    def passed(self) -> bool:
        return self.clock() >= self.at

    def at_most(self, seconds: float) -> "Deadline":
        """This moment, or the one `seconds` from now where that is earlier."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)
