"""Google's token service and Lambda's credentials endpoint on loopback, with a count of what was asked."""

import http.server
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qsl

import pytest

AWS_TOKEN, GOOGLE_TOKEN, SERVICE_ACCOUNT_TOKEN = "aws-session-token", "google-token", "service-account-token"
IMPERSONATE = "/v1/projects/-/serviceAccounts/reader@kb.iam.gserviceaccount.com:generateAccessToken"


class TokenServer:
    """`GET /credentials` as Lambda under SnapStart, `POST /token` as STS, `POST` of IMPERSONATE as IAM."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """Method and path of each request."""
        self.forms: list[dict[str, str]] = []
        """What came to `/token`."""
        self.answers: dict[str, tuple[int, Any] | Literal["hang"]] = {
            "/credentials": (200, _aws_credentials()),
            "/token": (200, {"access_token": GOOGLE_TOKEN, "expires_in": 3600, "token_type": "Bearer"}),
            IMPERSONATE: (200, {"accessToken": SERVICE_ACCOUNT_TOKEN, "expireTime": _in_an_hour()}),
        }
        """By path: a status and JSON, text as it is, or nothing ever."""
        self._released = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *arguments: object) -> None:
                pass

            def do_GET(self) -> None:
                outer._answer(self)

            do_POST = do_GET  # noqa: N815 - the standard library's name

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def close(self) -> None:
        """Lets go of every request that hangs, and ends."""
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        request.close_connection = True
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.asked.append(f"{request.command} {request.path}")
        if request.path == "/token":
            self.forms.append(dict(parse_qsl(body.decode())))
        answer = self.answers.get(request.path, (404, {}))
        if answer == "hang":
            self._released.wait()
            return
        status, content = answer
        text = content if isinstance(content, str) else json.dumps(content)
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(text)))
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(text.encode())


def _in_an_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _aws_credentials() -> dict[str, str]:
    return {
        "AccessKeyId": "ASIAEXAMPLE",
        "SecretAccessKey": "aws-secret-key",
        "Token": AWS_TOKEN,
        "Expiration": _in_an_hour(),
    }


@pytest.fixture
def token_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenServer]:
    """A server of its own for one test, and an environment as under SnapStart: no key in any variable."""
    server = TokenServer()
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE", "DEFAULT_PROFILE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", raising=False)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url("/credentials"))
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "pod-token")
    yield server
    server.close()
