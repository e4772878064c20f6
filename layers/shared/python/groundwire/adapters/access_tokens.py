"""One access token for every thread that needs it, and one exchange at a time to get it.

Libraries for tokens take no lock: sixteen cold threads would make sixteen exchanges. And no client's timeout
covers them: the exchange has a thread of its own, and who waits for it waits as long as is left.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock, Thread

_RENEWED_BEFORE = timedelta(minutes=4)
_GIVEN_UP_AFTER_S = 10.0
"""An exchange that never ends is followed by another one after this."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A bearer token and its end, in UTC; the value is never shown."""

    value: str = field(repr=False)
    expires_at: datetime

    def lasts(self) -> bool:
        """Whether it is good for long enough to be handed out."""
        return self.expires_at - datetime.now(UTC) > _RENEWED_BEFORE


class NoToken(Exception):
    """No token could be had; the text is made of names and codes, and fit for a log."""


class AccessTokens:
    """Hands out one token until shortly before it ends; safe to share between threads."""

    def __init__(self, exchange: Callable[[], AccessToken]) -> None:
        """`exchange` gives a new token, or raises NoToken."""
        self._exchange = exchange
        self._lock = Lock()
        self._latest: Future[AccessToken] | None = None
        self._began = 0.0

    def take(self, seconds: float) -> AccessToken:
        """A token that lasts; NoToken where the exchange failed or took longer than `seconds`."""
        with self._lock:
            if self._latest is None or not self._usable(self._latest):
                self._latest, self._began = Future(), time.monotonic()
                # A daemon: an exchange that hangs must not keep the process from ending.
                Thread(target=self._run, args=(self._latest,), name="token", daemon=True).start()
            latest = self._latest
        try:
            return latest.result(timeout=seconds)
        except TimeoutError as error:
            raise NoToken("the exchange took too long") from error

    def _usable(self, future: Future[AccessToken]) -> bool:
        """Whether it is under way, which those who come meanwhile share, or has a token that lasts."""
        if not future.done():
            return time.monotonic() - self._began < _GIVEN_UP_AFTER_S
        return future.exception() is None and future.result().lasts()

    def _run(self, future: Future[AccessToken]) -> None:
        try:
            future.set_result(self._exchange())
        except BaseException as error:  # noqa: BLE001 - it is raised again where the token is awaited
            future.set_exception(error)
