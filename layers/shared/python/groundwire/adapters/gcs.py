"""Google Cloud Storage: obstore for bodies, the JSON API where obstore may not be trusted.

Which that is, says obstore_rules.py. Nothing of Google's libraries is imported here.
"""

import contextlib
import math
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

import obstore
from obstore.store import GCSStore

from groundwire.adapters.access_tokens import AccessToken, AccessTokens, NoToken
from groundwire.adapters.gcs_objects import StoredObject, room
from groundwire.adapters.obstore_rules import (
    Undecided,
    client_options,
    obstore_errors,
    obstore_may_ask,
    retry_config,
)
from groundwire.deadline import Deadline
from groundwire.debugging import GROUNDING, DebugLog
from groundwire.documents import FetchedDocument
from groundwire.errors import DocumentNotFound, DocumentTooLarge, Unavailable
from groundwire.limits import STORE_TIMEOUT_S
from groundwire.pointers import Location

if TYPE_CHECKING:
    from obstore.store import GCSCredential

    from groundwire.adapters.gcs_json import JsonApi

_GOOGLE = "https://storage.googleapis.com"
_GENERATION_DIGITS = 19


class GcsDocumentFetcher:
    """Reads documents, of the generation a location is pinned to; safe to share between threads."""

    def __init__(self, credentials: Callable[[], AccessToken], endpoint: str = _GOOGLE) -> None:
        """`credentials` gives a new token or raises NoToken; it is first called when a document is read.

        `endpoint` is where Google is, where a root names no other.
        """
        self._tokens = AccessTokens(credentials)
        self._endpoint = endpoint
        self._lock = Lock()
        self._store = cache(self._new_store)
        self._json = cache(_new_json_api)
        self._debug = DebugLog(GROUNDING)

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        token = self._token(location, deadline)
        if obstore_may_ask(location):
            with contextlib.suppress(Undecided):
                return self._fast(location, deadline, max_bytes).document(location, max_bytes)
        stored = self._exact().read(location, self._at(location), token, deadline, max_bytes)
        return stored.document(location, max_bytes)

    def exists(self, location: Location, *, deadline: Deadline) -> bool:
        token = self._token(location, deadline)
        return self._exact().exists(location, self._at(location), token, deadline)

    def _fast(self, location: Location, deadline: Deadline, max_bytes: int) -> StoredObject:
        seconds = _time_limit(deadline)
        with self._lock:
            store = self._store(location.root.bucket, self._at(location), seconds)
        with obstore_errors(location.uri, seconds):
            version = location.version
            result = obstore.get(store, location.key, options={"version": version} if version else None)
            encoding, size = result.attributes.get("Content-Encoding"), result.meta["size"]
            if size > room(encoding, max_bytes):
                raise DocumentTooLarge(location.uri, size, max_bytes)
            content = result.bytes().to_bytes()
        return StoredObject(content, result.meta["version"], encoding, result.attributes.get("Content-Type"))

    def _token(self, location: Location, deadline: Deadline) -> str:
        """A token, under the deadline: no store's own time limit covers where it comes from."""
        if location.version and not _is_generation(location.version):
            raise DocumentNotFound(location.uri, "no object has a generation like this")
        if deadline.passed():
            raise Unavailable(location.uri, "no time was left to ask the store")
        try:
            return self._tokens.take(min(deadline.left(), STORE_TIMEOUT_S)).value
        except NoToken as error:
            self._debug("no token", uri=location.uri, cause=str(error))
            raise Unavailable(location.uri, "no access token for Google could be had") from error

    def _credential(self) -> "GCSCredential":
        token = self._tokens.take(STORE_TIMEOUT_S)  # it was taken a moment ago, under the deadline
        return {"token": token.value, "expires_at": token.expires_at}

    def _at(self, location: Location) -> str:
        return location.root.endpoint or self._endpoint

    # Stores and the client are made once; `cache` is not safe from threads.

    def _exact(self) -> "JsonApi":
        with self._lock:
            return self._json()

    def _new_store(self, bucket: str, endpoint: str, seconds: float) -> GCSStore:
        options = client_options(endpoint, seconds)
        return GCSStore(
            bucket,
            config={"base_url": endpoint},
            credential_provider=self._credential,
            # What is stored as gzip then comes as it is stored, with its length.
            client_options={**options, "default_headers": {"accept-encoding": "gzip"}},
            retry_config=retry_config(seconds),
        )


def _new_json_api() -> "JsonApi":
    from groundwire.adapters.gcs_json import JsonApi  # an HTTP client that few requests need

    return JsonApi()


def _time_limit(deadline: Deadline) -> float:
    """What is left, rounded up to a power of two, at most a store's own limit: few stores serve all."""
    return min(STORE_TIMEOUT_S, 2.0 ** max(-3, math.ceil(math.log2(deadline.left() or 0.1))))


def _is_generation(version: str) -> bool:
    """Whether it could be one: a pointer says whatever its author wrote."""
    return version.isascii() and version.isdecimal() and len(version) <= _GENERATION_DIGITS
