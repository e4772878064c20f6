"""The client that `gemini.py` calls the service with, and imports late: this costs up to 1.5 s.

What the SDK leaves open is closed here: the environment decides nothing, a request ends when its time is up
(the SDK's timeout is for each read of the socket), and an upload that was refused is not sent again.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from google import genai
from google.genai import types
from google.genai.errors import APIError

from groundwire.errors import DocumentNotFound, GroundwireError, ImportRefused, Throttled, Unavailable

_UPLOAD_STATUS = "x-goog-upload-status"
_CONNECT_S = 1.0


def connect(key: str, base_url: str) -> tuple[genai.Client, Callable[[], None]]:
    """A client, safe to share between threads, and what ends its connections; nothing is sent yet."""
    for name in ("httpx2", "httpcore2"):  # they log URLs, and an upload's URL is all it takes to write to it
        logging.getLogger(name).setLevel(logging.WARNING)
    http = _Client()
    options = types.HttpOptions(base_url=base_url, api_version="v1beta", httpx_client=http)
    return genai.Client(vertexai=False, api_key=key, http_options=options), http.close


def within(seconds: float) -> types.HttpOptionsDict:
    """The options of one call that may take so long."""
    return {"timeout": max(1, int(seconds * 1000))}  # 0 would be no timeout at all


@contextmanager
def errors(uri: str) -> Iterator[None]:
    """Ours for the SDK's: DocumentNotFound, Throttled, ImportRefused (any other 4xx), else Unavailable."""
    try:
        yield
    except APIError as error:
        raise _by_code(uri, error) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Unavailable(uri, f"the service does not answer ({type(error).__name__})") from error
    except (KeyError, ValueError) as error:  # of uploads, and of answers that are not JSON
        raise Unavailable(uri, f"the service's answer is not understood ({type(error).__name__})") from error


def _by_code(uri: str, error: APIError) -> GroundwireError:
    if error.code == 429:
        return Throttled(uri, "the service is busy (429)")
    if reason := _refusal_of_key(error.details):
        return Unavailable(uri, f"the key or its project is refused ({reason})")
    if error.code in (403, 404):  # 403 is said of what is missing, expired or another project's
        return DocumentNotFound(uri, f"the service has no such thing for this key ({error.code})")
    if 400 <= error.code < 500 and error.code != 408:
        status = error.status or str(error.code)
        return ImportRefused(uri, status, f"the service refuses it ({error.code} {status})")
    return Unavailable(uri, f"the service answered {error.code}")


def _refusal_of_key(details: Any) -> str | None:
    """Why Google refused the key or its project, whatever was asked for; None where it did not.

    Reasons of this domain are those that all of Google's services share.
    """
    error = details.get("error") if isinstance(details, dict) else None
    listed = error.get("details") if isinstance(error, dict) else None
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("domain") == "googleapis.com":
            return str(each.get("reason"))
    return None


class _Client(httpx2.Client):
    """Ends a request when its timeout has passed since it began, however the body trickles."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        timeout = request.extensions["timeout"]
        ends = time.monotonic() + timeout["read"]
        timeout["connect"] = min(timeout["connect"], _CONNECT_S)
        response = super().send(request, **options | {"stream": True})
        try:
            content = b"".join(_until(ends, response, request))
        finally:
            response.close()
        headers = response.headers
        if "x-goog-upload-offset" in request.headers:
            # Without this header the SDK would send the piece three times and sleep 7 s, whatever the answer.
            headers.setdefault(_UPLOAD_STATUS, "cancelled")
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


def _until(ends: float, response: httpx2.Response, request: httpx2.Request) -> Iterator[bytes]:
    for chunk in response.iter_raw():
        if time.monotonic() >= ends:
            raise httpx2.ReadTimeout("the body did not arrive in time", request=request)
        yield chunk
