"""The Python client for the HTTPS API: one call from what a search found to what a model reads (G-8).

    with GroundwireClient("https://….execute-api.eu-north-1.amazonaws.com", auth=IamAuth()) as groundwire:
        grounded = groundwire.ground(response.candidates[0].grounding_metadata)
        parts = grounded.to_gemini_parts()

Rules of this file:
- Only 429 and 503 are tried again, when they say, and within the call's time.
- What authorises a caller is sent to the API and to nobody else.
- HTTP, signing and google-genai are imported when they are first needed.
"""

import hashlib
import ipaddress
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from urllib.parse import quote, urlencode, urlsplit

import orjson

from groundwire.client_answers import (
    Dependent,
    DependentsPage,
    DocumentStatus,
    Graph,
    UploadTicket,
    Validation,
    composed_of,
    read,
    read_json,
    result_of,
)
from groundwire.client_request import compose_request, ground_request, overrides, written
from groundwire.deadline import Deadline
from groundwire.errors import (
    ConfigurationError,
    ContentChanged,
    ContentUnavailable,
    GroundwireApiError,
    GroundwireUnavailable,
)
from groundwire.fetching import PrepareDocumentOptions
from groundwire.grounded import GroundedDocument, GroundedResult
from groundwire.limits import CLIENT_TIMEOUT_S, DOCUMENT_BYTES
from groundwire.pointers import CanonicalDocumentPointer
from groundwire.policy import CompositionPolicy

if TYPE_CHECKING:
    from groundwire.adapters.https import Https, Reply  # noqa: TID251 - the client is its own wiring
    from groundwire.adapters.sigv4 import SigV4Signer  # noqa: TID251 - the client is its own wiring

_AGAIN: Final = frozenset({429, 503})
_PAUSE_S: Final = 0.25
_DETAIL_CHARS: Final = 500


@dataclass(frozen=True)
class IamAuth:
    """Requests are signed with AWS credentials: a session's, else those of the usual chain."""

    region: str | None = None
    """The API's; it may be left out where the host name tells it."""
    session: Any = None
    """A boto3 or botocore session."""


class GroundwireClient:
    """One API; safe to share between threads, and a context manager that ends its connections."""

    def __init__(
        self,
        base_url: str,
        *,
        auth: IamAuth | None = None,
        token: str | Callable[[], str] | None = None,
        timeout_s: float = CLIENT_TIMEOUT_S,
        retries: int = 2,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`auth` signs, `token` (or what it returns, asked for each time) is a bearer token; neither: for
        an API on this machine. `timeout_s` is for a call with all its attempts.

        ConfigurationError where these contradict each other, or would send a token unencrypted.
        """
        parts = urlsplit(base_url)
        self._allows_http = _is_loopback(parts.hostname or "")
        if not parts.hostname or parts.query or parts.fragment or parts.username is not None:
            raise ConfigurationError("base_url is the API's address, as https://host or https://host/stage")
        if not self._is_safe(base_url):
            raise ConfigurationError("base_url must be https: what authorises a caller would be sent openly")
        if auth and token is not None:
            raise ConfigurationError("give either auth or token")
        if timeout_s <= 0 or retries < 0:
            raise ConfigurationError("timeout_s must be positive, and retries not negative")
        self._base_url = base_url.rstrip("/")
        self._host = parts.hostname
        self._auth, self._token = auth, token
        self._timeout_s, self._retries = timeout_s, retries
        self._clock, self._sleep = clock, sleep
        self._lock = Lock()
        self._https: Https | None = None
        self._is_closed = False
        self._signer: SigV4Signer | None = None

    def ground(
        self,
        found: Any,
        *,
        user_id: int | str | None = None,
        auditing_id: int | str | None = None,
        max_documents: int | None = None,
        allowed_source_types: Sequence[str] | None = None,
        composition_policy: CompositionPolicy | Mapping[str, Any] | Literal["off"] | None = None,
        prepare: PrepareDocumentOptions | Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> GroundedResult:
        """Whole documents for what a search found, with all that they include.

        `found`: a Gemini answer or its grounding metadata, as google-genai's object or as JSON; a list of
        sources, URIs and pointers, or one; None where the model returned no grounding, which gives a result
        without documents. `composition_policy` "off" leaves includes alone; `dry_run` leaves out the bodies.

        GroundwireApiError where the API refuses, GroundwireUnavailable where there is no answer in time,
        InvalidRequest where `found` is nothing that a search returns. What is missing is in the result.
        """
        given = overrides(
            max_documents=max_documents,
            allowed_source_types=allowed_source_types,
            composition_policy=composition_policy,
            prepare=prepare,
        )
        body = ground_request(found) | _asked(given, user_id, auditing_id, dry_run)
        return self._bound(result_of(self._json("POST", "/v1/ground", body)))

    def compose(
        self,
        document: str | CanonicalDocumentPointer | Mapping[str, Any],
        *,
        user_id: int | str | None = None,
        auditing_id: int | str | None = None,
        composition_policy: CompositionPolicy | Mapping[str, Any] | Literal["off"] | None = None,
        prepare: PrepareDocumentOptions | Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> GroundedResult:
        """One document, by URI or pointer, with all that it includes: a result of one bundle.

        Raises as `ground`, and GroundwireApiError (`document_not_found`) where it is not there.
        """
        given = overrides(composition_policy=composition_policy, prepare=prepare)
        body = compose_request(document) | _asked(given, user_id, auditing_id, dry_run)
        return self._bound(composed_of(self._json("POST", "/v1/compose", body)))

    def document(self, uri: str) -> DocumentStatus:
        """What the index knows of a document: verdict, findings, version."""
        return read(DocumentStatus, self._json("GET", "/v1/documents", query={"uri": uri}))

    def graph(
        self, uri: str, depth: int = 2, direction: Literal["includes", "dependents"] = "includes"
    ) -> Graph:
        """The include graph around a document."""
        query = {"uri": uri, "depth": str(depth), "direction": direction}
        return read(Graph, self._json("GET", "/v1/graph", query=query))

    def dependents(self, uri: str, transitive: bool = False) -> Iterator[Dependent]:
        """All documents that include one, nearest first; the next page is asked for when it is needed."""
        query = {"uri": uri, "transitive": "true" if transitive else "false"}
        while True:
            page = read(DependentsPage, self._json("GET", "/v1/dependents", query=query))
            yield from page.dependents
            if page.cursor is None:
                return
            query["cursor"] = page.cursor

    def validate(self, path: str, content: str, *, root: str | None = None) -> Validation:
        """What the indexer would say of a document at `path` of a storage root, before it is uploaded.

        `root` is its name; it may be left out where the caller reads one only.
        """
        asked = _told(path=path, content=content, root=root)
        return read(Validation, self._json("POST", "/v1/validate", asked))

    def upload(
        self,
        path: str,
        content: bytes | str,
        *,
        root: str | None = None,
        content_type: str | None = None,
    ) -> str:
        """Stores a document at its canonical key; the URI it has there. It is indexed soon after.

        `root` as for `validate`, of those that the caller may write to. The store takes these very bytes or
        none. GroundwireApiError where the API or the store refuses it.
        """
        body = content.encode() if isinstance(content, str) else content
        sha256 = hashlib.sha256(body).hexdigest()
        asked = _told(path=path, root=root, contentType=content_type, sizeBytes=len(body), sha256=sha256)
        ticket = read(UploadTicket, self._json("POST", "/v1/uploads", asked))
        if not self._is_safe(ticket.url):
            raise GroundwireApiError(200, "unreadable_answer", "The answer cannot be read", "url")
        reply = self._sent(ticket.method, ticket.url, ticket.headers, body, self._deadline())
        if not 200 <= reply.status < 300:
            raise GroundwireApiError(reply.status, "upload_refused", "The store does not take the document")
        return ticket.uri

    def close(self) -> None:
        """Ends the connections that are kept; to ask or to download later is a ConfigurationError."""
        with self._lock:
            self._is_closed = True
            if self._https:
                self._https.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _bound(self, result: GroundedResult) -> GroundedResult:
        """The result, whose documents download their bodies through this client."""
        return result.downloading(self._downloaded)

    def _downloaded(self, document: GroundedDocument) -> bytes:
        """The bytes behind a document's URL: those that were grounded, or an error."""
        from groundwire.adapters.https import TooLong  # noqa: TID251 - the client is its own wiring

        assert document.download_url
        url = document.download_url.url
        if not self._is_safe(url):
            raise ContentUnavailable(document.uri, "its download URL is not https")
        limit = min(document.size_bytes, DOCUMENT_BYTES)
        try:
            reply = self._sent("GET", url, {}, b"", self._deadline(), limit)
        except TooLong:
            raise ContentChanged(document.uri, "it is longer than what was grounded") from None
        if reply.status != 200:
            raise ContentUnavailable(document.uri, f"its download URL answers {reply.status}")
        if hashlib.sha256(reply.body).hexdigest() != document.sha256:
            raise ContentChanged(document.uri, "it was changed after it was grounded")
        return reply.body

    def _json(self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None) -> Any:
        """What the API answers; GroundwireApiError, GroundwireUnavailable."""
        # As signatures want it, and as httpx2 leaves it.
        target = f"{path}?{urlencode(query, quote_via=quote, safe='')}" if query else path
        content = b"" if body is None else orjson.dumps(body, default=written)
        deadline = self._deadline()
        for attempt in range(self._retries + 1):
            reply = self._authorized(method, self._base_url + target, content, deadline)
            if reply.status not in _AGAIN or attempt == self._retries:
                break
            pause = reply.retry_after
            if pause is None:
                pause = _PAUSE_S * 2**attempt * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
            if pause >= deadline.left():
                break
            self._sleep(pause)
        if reply.status != 200:
            raise _refusal(reply)
        return read_json(reply.body)

    def _authorized(self, method: str, url: str, body: bytes, deadline: Deadline) -> "Reply":
        from groundwire.adapters.https import TooLong  # noqa: TID251 - the client is its own wiring

        headers = {"Accept": "application/json"}
        if body:
            headers["Content-Type"] = "application/json"
        if self._auth:
            headers = self._signing(self._auth).headers(method, url, headers, body)
        elif self._token is not None:
            token = self._token() if callable(self._token) else self._token
            headers["Authorization"] = f"Bearer {token}"
        try:
            return self._sent(method, url, headers, body, deadline)
        except TooLong:
            raise GroundwireUnavailable("the answer is longer than one of Groundwire's can be") from None

    def _sent(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        deadline: Deadline,
        max_bytes: int | None = None,
    ) -> "Reply":
        limit = {} if max_bytes is None else {"max_bytes": max_bytes}
        return self._connected().send(method, url, headers, body, deadline=deadline, **limit)

    def _connected(self) -> "Https":
        with self._lock:
            if self._is_closed:
                raise ConfigurationError("this client is closed: read what is behind URLs before that")
            if self._https is None:
                from groundwire.adapters.https import Https  # noqa: TID251 - the client is its own wiring

                self._https = Https()
            return self._https

    def _signing(self, auth: IamAuth) -> "SigV4Signer":
        with self._lock:
            if self._signer is None:
                from groundwire.adapters.sigv4 import SigV4Signer  # noqa: TID251 - its own wiring

                self._signer = SigV4Signer(self._host, auth.region, auth.session)
            return self._signer

    def _deadline(self) -> Deadline:
        """The end of a call that begins now; what the first one loads is not on its time."""
        self._connected()
        return Deadline.after(self._timeout_s, self._clock)

    def _is_safe(self, url: str) -> bool:
        """Whether a URL is encrypted, or stays on this machine where the API does too."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        if parts.scheme == "https":
            return bool(parts.hostname)
        return parts.scheme == "http" and self._allows_http and _is_loopback(parts.hostname or "")


def _asked(
    given: Mapping[str, Any], user_id: int | str | None, auditing_id: int | str | None, dry_run: bool
) -> dict[str, Any]:
    """What a request says beside its documents; what is not said is left out."""
    ctx = _told(userId=user_id, auditingId=auditing_id)
    return _told(ctx=ctx or None, overrides=given or None, dryRun=dry_run or None)


def _told(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _refusal(reply: "Reply") -> GroundwireApiError:
    """The API's problem, or what a gateway before it says; of a page for people, nothing is quoted."""
    problem, excuse = _problem(reply)
    listed = problem.get("errors")
    errors = tuple(
        {str(name): str(value) for name, value in each.items()}
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict)
    )
    return GroundwireApiError(
        reply.status,
        str(problem.get("code") or f"http_{reply.status}"),
        str(problem.get("title") or "The API does not answer this"),
        # API Gateway's own refusals have a message and nothing else.
        str(problem.get("detail") or problem.get("message") or excuse)[:_DETAIL_CHARS],
        errors,
    )


def _problem(reply: "Reply") -> tuple[Mapping[str, Any], str]:
    """The problem details, or none and why."""
    if 300 <= reply.status < 400:
        return {}, "it redirects, and redirects are not followed"
    if reply.content_type not in ("application/problem+json", "application/json"):
        return {}, f"its answer is {reply.content_type or 'of no type'}, not problem details"
    try:
        problem = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        return {}, "its answer is cut off or no JSON"
    return (problem, "") if isinstance(problem, dict) else ({}, "its answer is no object")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
