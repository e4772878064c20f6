"""The deployed HTTP API as a caller sees it: JSON over signed HTTP.

The emulator serves every API on its one port and tells them apart by the Host header, so the signature is
made for that host while the connection goes to the loopback address.
"""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.emulator import ACCOUNT, REGION, SECRET, Emulator
from local.workshop import StackError

ROOT_USER = Credentials(ACCOUNT, SECRET)

_TIMEOUT_SECONDS = 40.0
"""Longer than the API's own 30 s, so that its answer is seen and not ours."""


class ApiError(StackError):
    """The API did not answer at all."""


@dataclass(frozen=True)
class Answer:
    """What came back: status, content type and body."""

    status: int
    content_type: str
    body: bytes

    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class Api:
    """One deployed API, called with the credentials given."""

    def __init__(self, emulator: Emulator, api_id: str, credentials: Credentials | None = ROOT_USER) -> None:
        """`credentials` None: requests are not signed."""
        self.host = f"{api_id}.execute-api.localhost:{emulator.port}"
        self._emulator = emulator
        self._credentials = credentials

    def get(self, path: str, **query: str) -> Answer:
        """GET with the query percent-encoded as signatures want it. Raises ApiError."""
        return self._send("GET", f"{path}?{urlencode(query, quote_via=quote)}" if query else path, b"")

    def post(self, path: str, body: object) -> Answer:
        """POST of `body` as JSON, or as it is when it is bytes. Raises ApiError."""
        return self._send("POST", path, body if isinstance(body, bytes) else json.dumps(body).encode())

    def _send(self, method: str, target: str, body: bytes) -> Answer:
        connection = self._connection()
        try:
            connection.request(method, target, body=body or None, headers=self._headers(method, target, body))
            response = connection.getresponse()
            return Answer(response.status, response.headers.get_content_type(), response.read())
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(f"{method} {target} got no answer: {error!r}.", self._emulator.log) from error
        finally:
            connection.close()

    def _headers(self, method: str, target: str, body: bytes) -> dict[str, str]:
        request = AWSRequest(method, f"https://{self.host}{target}", {"Host": self.host}, body)
        if body:
            request.headers["Content-Type"] = "application/json"
        if self._credentials is not None:
            SigV4Auth(self._credentials, "execute-api", REGION).add_auth(request)
        return dict(request.headers.items())

    def _connection(self) -> http.client.HTTPConnection:
        address = (self._emulator.host, self._emulator.port)
        context = self._emulator.tls()
        if context is not None:
            return http.client.HTTPSConnection(*address, timeout=_TIMEOUT_SECONDS, context=context)
        return http.client.HTTPConnection(*address, timeout=_TIMEOUT_SECONDS)
