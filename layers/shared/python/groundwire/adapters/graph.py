"""Microsoft Graph over HTTP: one client that carries the token, one bare one for pre-authenticated URLs.

- A token never reaches another host: the redirect is read, not followed, and its URL is asked without one.
- Such a URL is a credential: it stands in no error and no log.
- Every wait is bounded by the request's deadline. A timeout is for one read of the socket, so a body is
  read against the clock, and against its limit, chunk by chunk.
- Who is told to wait is remembered for the process: the other documents of a request do not knock too.
"""

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from groundwire import __version__
from groundwire.adapters.microsoft import GraphTokens, silence, trust_store
from groundwire.deadline import Deadline
from groundwire.errors import (
    DocumentForbidden,
    DocumentNotFound,
    DocumentTooLarge,
    FetchError,
    KeyNotAddressable,
    Throttled,
    Unavailable,
    UnsupportedMime,
)
from groundwire.limits import (
    FETCH_WORKERS,
    MAX_TIMEOUT_MS,
    RETRY_AFTER_S,
    SHAREPOINT_ANSWER_BYTES,
    SHAREPOINT_ATTEMPTS,
    STORE_TIMEOUT_S,
)

if TYPE_CHECKING:
    import httpx2

GRAPH = "https://graph.microsoft.com/v1.0"
_CONNECT_S = 2.0
_PAUSE_S = 0.25
_NO_COOKIES = DefaultCookiePolicy(allowed_domains=())
_BY_STATUS: Mapping[int, tuple[type[FetchError], str]] = {
    401: (Unavailable, "the store refuses the token"),
    403: (DocumentForbidden, "the store denies access"),
    404: (DocumentNotFound, "there is no such item"),
    410: (DocumentNotFound, "the item is gone"),
    400: (KeyNotAddressable, "the store cannot address this"),
    414: (KeyNotAddressable, "the store cannot address this"),
    406: (UnsupportedMime, "the store does not convert this"),
    415: (UnsupportedMime, "the store does not convert this"),
    429: (Throttled, "the store is busy"),
}


@dataclass(frozen=True, slots=True)
class Errand:
    """One document's requests: its URI for errors, until when, and on whose behalf."""

    uri: str
    deadline: Deadline
    assertion: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def retry_after(self) -> float | None:
        """Seconds, where a reply that turns us away says how long."""
        given = self.headers.get("retry-after", "") if self.status == 429 or self.status >= 500 else ""
        if not given:
            return None
        try:
            seconds = float(given)
        except ValueError:
            try:
                seconds = parsedate_to_datetime(given).timestamp() - time.time()
            except ValueError:
                return None
        return min(max(seconds, 0.0), RETRY_AFTER_S) if seconds == seconds else None  # NaN is a float

    def error(self, uri: str) -> FetchError:
        """By status; the store's own code is for the reader of the message only."""
        kind, what = _BY_STATUS.get(self.status, (Unavailable, "the store failed"))
        if self.status == 503 and self.retry_after is not None:
            kind, what = _BY_STATUS[429]
        return kind(uri, f"{what} ({' '.join([str(self.status), *self._code()])})")

    def _code(self) -> list[str]:
        try:
            code = json.loads(self.body)["error"]["code"]
        except (ValueError, TypeError, KeyError):
            return []
        return [code] if isinstance(code, str) and code.isascii() and code.isalnum() else []


class GraphClient:
    """Safe to share between threads; httpx2 is imported with the first request."""

    def __init__(
        self,
        tokens: GraphTokens,
        *,
        endpoint: str = GRAPH,
        company: str = "Groundwire",
        allow_http: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`allow_http` is for an emulator on this machine: a download may then be unencrypted."""
        self._tokens = tokens
        self._endpoint = endpoint.rstrip("/")
        self._agent = f"NONISV|{company}|Groundwire/{__version__}"
        self._schemes = {"https", "http"} if allow_http else {"https"}
        if urlsplit(endpoint).scheme not in self._schemes:
            raise ValueError(f"Graph's endpoint must be https: {endpoint}")
        self.clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._clients: tuple[httpx2.Client, httpx2.Client] | None = None
        self._not_before = 0.0

    def json(self, errand: Errand, path: str) -> Any:
        """What Graph answers at `path`, which is quoted; a FetchError where it does not."""
        try:
            return json.loads(self._authorized(errand, path, STORE_TIMEOUT_S).body)
        except DocumentTooLarge:
            raise Unavailable(errand.uri, "the store's answer is too long") from None
        except ValueError:
            raise Unavailable(errand.uri, "the store answered something that is no JSON") from None

    def content(self, errand: Errand, path: str, max_bytes: int, *, slow: bool = False) -> bytes:
        """The content that Graph redirects to from `path`; `slow` where it is made on demand.

        DocumentTooLarge as soon as it is known to have more than `max_bytes`.
        """
        seconds = MAX_TIMEOUT_MS / 1000 if slow else STORE_TIMEOUT_S
        reply = self._authorized(errand, path, seconds)
        url = self._checked(errand.uri, reply)
        files = self._both()[1]
        found = self._persistent(errand, lambda: self._ask(files, url, {}, errand, seconds, max_bytes))
        if found.status != 200:
            raise Unavailable(errand.uri, f"the download host answered {found.status}")
        return found.body

    def _authorized(self, errand: Errand, path: str, seconds: float) -> _Reply:
        """The answer to a GET with a token, which is renewed once where it is refused."""
        graph, url = self._both()[0], self._endpoint + path

        def asked() -> tuple[_Reply, str]:
            token = self._tokens.token(errand.assertion, uri=errand.uri, deadline=errand.deadline)
            headers = {"Authorization": f"Bearer {token}"}
            limit = SHAREPOINT_ANSWER_BYTES
            return self._ask(graph, url, headers, errand, seconds, limit), token

        def renewed() -> _Reply:
            reply, token = asked()
            if reply.status != 401:
                return reply
            self._tokens.refuse(errand.assertion, token, uri=errand.uri, deadline=errand.deadline)
            return asked()[0]

        return self._persistent(errand, renewed)

    def _checked(self, uri: str, reply: _Reply) -> str:
        """Where the redirect leads: the one URL outside the configuration that is followed."""
        url = reply.headers.get("location", "")
        try:
            parts = urlsplit(url)
            plain = parts.scheme in self._schemes and parts.hostname and parts.username is None
        except ValueError:
            plain = None
        if reply.status != 302 or not plain:
            raise Unavailable(uri, "the store does not redirect to where its contents are")
        return url

    def _persistent(self, errand: Errand, ask: Callable[[], _Reply]) -> _Reply:
        """The answer, asked for again where that may help and there is time; its FetchError otherwise."""
        for attempt in range(1, SHAREPOINT_ATTEMPTS + 1):
            self._wait_for_turn(errand)
            try:
                reply = ask()
            except _Broken as error:
                failure: FetchError = error.failure
                passes = True
            else:
                if reply.status < 400:
                    return reply
                failure = reply.error(errand.uri)
                passes = reply.status == 429 or reply.status >= 500
                if reply.retry_after is not None:
                    with self._lock:
                        self._not_before = max(self._not_before, self.clock() + reply.retry_after)
                    continue  # _wait_for_turn decides whether there is time
            pause = _PAUSE_S * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
            if not passes or attempt == SHAREPOINT_ATTEMPTS or pause >= errand.deadline.left():
                raise failure
            self._sleep(pause)
        raise failure

    def _wait_for_turn(self, errand: Errand) -> None:
        while (wait := self._not_before - self.clock()) > 0:
            if wait >= errand.deadline.left():
                raise Throttled(errand.uri, f"the store asks to be left alone for {wait:.0f} s more")
            self._sleep(wait)

    def _ask(
        self,
        client: "httpx2.Client",
        url: str,
        headers: Mapping[str, str],
        errand: Errand,
        seconds: float,
        max_bytes: int,
    ) -> _Reply:
        """One GET; `seconds` is for each wait on the socket, the deadline for all of them."""
        import httpx2

        left = errand.deadline.left()
        if left <= 0:
            raise Unavailable(errand.uri, "no time was left to ask the store")
        limit = min(seconds, left)
        timeout = httpx2.Timeout(limit, connect=min(limit, _CONNECT_S))
        try:
            with client.stream("GET", url, headers=headers, timeout=timeout) as response:
                body = self._read(response, errand, max_bytes)
                return _Reply(response.status_code, response.headers, body)
        except httpx2.TimeoutException as error:
            # Who hangs is not asked a second time.
            what = f"the store did not answer in time ({type(error).__name__})"
            raise Unavailable(errand.uri, what) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # From None: the text of some of these quotes the URL.
            what = f"the store does not answer ({type(error).__name__})"
            raise _Broken(Unavailable(errand.uri, what)) from None

    def _read(self, response: "httpx2.Response", errand: Errand, max_bytes: int) -> bytes:
        is_document = response.status_code == 200
        limit = max_bytes if is_document else SHAREPOINT_ANSWER_BYTES
        told = response.headers.get("content-length", "")
        size = int(told) if told.isdecimal() else 0
        body = bytearray()
        if size <= limit:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > limit:
                    break
                if errand.deadline.passed():
                    raise Unavailable(errand.uri, "the store did not finish its answer in time")
            else:
                return bytes(body)
        if is_document:
            raise DocumentTooLarge(errand.uri, max(size, len(body)), limit)
        return b""  # an error, whose status is enough

    def _both(self) -> "tuple[httpx2.Client, httpx2.Client]":
        """Graph's client and the bare one."""
        with self._lock:
            if self._clients is None:
                import httpx2

                silence()
                limits = httpx2.Limits(max_connections=FETCH_WORKERS)
                # Sizes are checked as sent, and what is stored compressed is delivered as it is stored.
                plain = {"Accept-Encoding": "identity"}
                agent = {**plain, "User-Agent": self._agent}
                # One caller's cookies are no business of the next one's.
                graph, files = (
                    httpx2.Client(
                        headers=headers,
                        limits=limits,
                        cookies=CookieJar(_NO_COOKIES),
                        verify=trust_store(),
                    )
                    for headers in (agent, plain)
                )
                self._clients = graph, files
            return self._clients

    def close(self) -> None:
        """Ends the connections that are kept."""
        with self._lock:
            clients, self._clients = self._clients, None
        for client in clients or ():
            client.close()


class _Broken(Exception):
    """A connection failed in a way that may pass; carries what it is reported as."""

    def __init__(self, failure: Unavailable) -> None:
        super().__init__(failure.detail)
        self.failure = failure
