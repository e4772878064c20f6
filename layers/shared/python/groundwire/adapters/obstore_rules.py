"""What holds for every store that is read through obstore: its keys, its patience, what its errors mean.

obstore strips leading and trailing slashes, which names another document, and tells most failures apart by
text only: such keys, and such failures, go once to a client that is exact. And it follows redirects.
"""

import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError

from groundwire.errors import DocumentNotFound, Unavailable
from groundwire.pointers import Location

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig


def obstore_may_read(key: str) -> bool:
    """Whether obstore asks the store for exactly this key."""
    plain = all(part not in ("", ".", "..") for part in key.split("/"))
    return plain and not any(char < " " or char == "\x7f" for char in key)


def obstore_may_ask(location: Location) -> bool:
    """Whether obstore may read this document: exactly this key, from a store that sends nobody elsewhere.

    It follows redirects and cannot be told not to, so it asks the cloud's own endpoint only (Z-2).
    """
    return location.root.endpoint is None and obstore_may_read(location.key)


def client_options(endpoint: str | None, seconds: float) -> "ClientConfig":
    """`seconds` are for one attempt, body included."""
    return {
        "timeout": timedelta(seconds=seconds),
        "connect_timeout": timedelta(seconds=min(1.0, seconds)),
        "allow_http": (endpoint or "").startswith("http://"),
    }


def retry_config(seconds: float) -> "RetryConfig":
    """One more attempt, which begins within `seconds`."""
    return {
        "max_retries": 1,
        "retry_timeout": timedelta(seconds=seconds),
        "backoff": {
            "init_backoff": timedelta(milliseconds=50),
            "max_backoff": timedelta(milliseconds=500),
            "base": 2,
        },
    }


class Undecided(Exception):
    """obstore failed in a way that only its text would tell apart."""


@contextlib.contextmanager
def obstore_errors(uri: str, seconds: float) -> Iterator[None]:
    """`seconds` are the store's for one attempt. Raises DocumentNotFound, Unavailable or Undecided."""
    began = time.monotonic()
    try:
        yield
    except FileNotFoundError as error:
        raise DocumentNotFound(uri, "there is no such object") from error
    except BaseError as error:
        # The exact client's answer has a class; but who hangs or drips is not asked a second time, since
        # that client's timeout is for each read of the socket and a dripping store passes it.
        if time.monotonic() - began >= seconds:
            raise Unavailable(uri, "the store did not answer in time") from error
        raise Undecided from error
