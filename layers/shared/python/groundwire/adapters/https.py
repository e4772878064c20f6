"""HTTPS for the Python client: bounded in time and size, and never redirected.

- What authorises a caller goes to the API alone: downloads and uploads carry what their URL says, no more.
- Such a URL is a credential: it stands in no error and no log.
- A timeout is for one wait on the socket, so an answer is read against the clock, chunk by chunk.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2

from groundwire import __version__
from groundwire.deadline import Deadline
from groundwire.errors import GroundwireUnavailable
from groundwire.limits import RESPONSE_BYTES

_CONNECT_S: Final = 5.0
_CONNECTIONS: Final = 32
_NO_COOKIES: Final = DefaultCookiePolicy(allowed_domains=())


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, whatever its status; header names in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").split(";", 1)[0].strip().lower()

    @property
    def retry_after(self) -> float | None:
        """Seconds until the next attempt is welcome; None where the answer does not say."""
        given = self.headers.get("retry-after", "").strip()
        if given.isascii() and given.isdecimal():
            return float(given)
        try:
            return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
        except ValueError:
            return None


class TooLong(Exception):
    """The answer has more bytes than are read."""


class Https:
    """One pool of connections; safe to share between threads."""

    def __init__(self) -> None:
        for name in ("httpx2", "httpcore2"):  # they log URLs, and a download's URL is all it takes to read
            logging.getLogger(name).setLevel(logging.WARNING)
        self._client = httpx2.Client(
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=_CONNECTIONS),
            cookies=CookieJar(_NO_COOKIES),
            # Sizes and hashes are of bytes as they are sent.
            headers={"Accept-Encoding": "identity", "User-Agent": f"groundwire/{__version__}"},
        )

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        deadline: Deadline,
        max_bytes: int = RESPONSE_BYTES,
    ) -> Reply:
        """The answer; GroundwireUnavailable without one in time, TooLong with one over `max_bytes`."""
        left = deadline.left()
        if left <= 0:
            raise GroundwireUnavailable("no time was left to ask")
        timeout = httpx2.Timeout(left, connect=min(left, _CONNECT_S))
        with (
            _failures(url),
            self._client.stream(
                method, url, headers=dict(headers), content=body or None, timeout=timeout
            ) as response,
        ):
            return Reply(
                response.status_code,
                {name.lower(): value for name, value in response.headers.items()},
                _read(response, deadline, max_bytes),
            )

    def close(self) -> None:
        """Ends the connections that are kept."""
        self._client.close()


def _read(response: httpx2.Response, deadline: Deadline, max_bytes: int) -> bytes:
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > max_bytes:
            raise TooLong
        if deadline.passed():
            raise GroundwireUnavailable("the answer did not arrive in time")
    return bytes(body)


@contextmanager
def _failures(url: str) -> Iterator[None]:
    """GroundwireUnavailable for httpx2's, with the host; from None, since the text of some quotes the URL."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition("?")[0]
    try:
        yield
    except httpx2.TimeoutException as error:
        raise GroundwireUnavailable(
            f"there was no answer from {host} in time ({type(error).__name__})"
        ) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise GroundwireUnavailable(f"there was no answer from {host} ({type(error).__name__})") from None
