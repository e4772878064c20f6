"""Cloud Storage's JSON API: an object's name is one quoted segment there, and asked for exactly as it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import httpx2

from groundwire.adapters.gcs_objects import StoredObject, room
from groundwire.deadline import Deadline
from groundwire.errors import (
    DocumentForbidden,
    DocumentNotFound,
    DocumentTooLarge,
    FetchError,
    Throttled,
    Unavailable,
)
from groundwire.limits import FETCH_WORKERS, STORE_TIMEOUT_S
from groundwire.pointers import Location

_UNNAMEABLE = frozenset({".", ".."})
"""No object can have these names, and clients fold them away."""


class JsonApi:
    """One request for one object; safe to share between threads."""

    def __init__(self) -> None:
        # No idle connections: an execution environment may sleep for minutes, and wake up to dead ones.
        limits = httpx2.Limits(max_connections=FETCH_WORKERS, max_keepalive_connections=0)
        self._client = httpx2.Client(limits=limits)

    def exists(self, location: Location, endpoint: str, token: str, deadline: Deadline) -> bool:
        """Whether there is an object of exactly this name."""
        try:
            with self._asked(location, endpoint, token, deadline, "fields=name"):
                return True
        except DocumentNotFound:
            return False

    def read(
        self, location: Location, endpoint: str, token: str, deadline: Deadline, max_bytes: int
    ) -> StoredObject:
        """The object as it is stored; DocumentTooLarge as soon as it cannot be of `max_bytes`."""
        until = deadline.at_most(STORE_TIMEOUT_S)
        with self._asked(location, endpoint, token, deadline, "alt=media") as reply:
            encoding = reply.headers.get("content-encoding")
            return StoredObject(
                _body(location.uri, reply, room(encoding, max_bytes), until),
                reply.headers.get("x-goog-generation"),
                encoding,
                reply.headers.get("content-type"),
            )

    @contextmanager
    def _asked(
        self, location: Location, endpoint: str, token: str, deadline: Deadline, query: str
    ) -> Iterator[httpx2.Response]:
        uri, key, left = location.uri, location.key, min(deadline.left(), STORE_TIMEOUT_S)
        if key in _UNNAMEABLE:
            raise DocumentNotFound(uri, "no object can have this name")
        if not left:
            raise Unavailable(uri, "no time was left to ask the store again")
        bucket, name = quote(location.root.bucket, safe=""), quote(key, safe="")
        if location.version:
            query += f"&generation={location.version}"
        try:
            with self._client.stream(
                "GET",
                f"{endpoint}/storage/v1/b/{bucket}/o/{name}?{query}",
                headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip"},
                timeout=httpx2.Timeout(left, connect=min(1.0, left)),
            ) as reply:
                if reply.status_code != httpx2.codes.OK:
                    raise _refused(uri, reply.status_code)
                yield reply
        except httpx2.HTTPError as error:
            raise Unavailable(uri, f"the store does not answer ({type(error).__name__})") from error


def _body(uri: str, reply: httpx2.Response, max_bytes: int, until: Deadline) -> bytes:
    said = reply.headers.get("content-length", "")
    if said.isdecimal() and int(said) > max_bytes:
        raise DocumentTooLarge(uri, int(said), max_bytes)
    content = bytearray()
    for chunk in reply.iter_raw():
        content += chunk
        if len(content) > max_bytes:
            raise DocumentTooLarge(uri, len(content), max_bytes)
        # The client's timeout is for each read of the socket: a dripping store passes it.
        if until.passed():
            raise Unavailable(uri, "the store did not answer in time")
    return bytes(content)


def _refused(uri: str, status: int) -> FetchError:
    if status == httpx2.codes.NOT_FOUND:
        return DocumentNotFound(uri, "there is no such object")
    if status == httpx2.codes.FORBIDDEN:
        return DocumentForbidden(uri, "the store denies access")
    if status == httpx2.codes.TOO_MANY_REQUESTS:
        return Throttled(uri, "the store is busy")
    return Unavailable(uri, f"the store answered {status}")
