"""A store that speaks S3's protocol on loopback and answers what it is told to, however rude."""

import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import pytest


@dataclass(frozen=True)
class Reply:
    """An answer; to HEAD, the same without the body, as S3 does it."""

    status: int
    code: str = ""
    """S3's error code, in an XML body."""
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        if not self.code:
            return self.body
        return f'<?xml version="1.0"?><Error><Code>{self.code}</Code><Message>no</Message></Error>'.encode()


def head_of(body: bytes) -> Reply:
    """The answer to a request for the first bytes of an object that has no more than those."""
    span = f"bytes 0-{len(body) - 1}/{len(body)}"
    return Reply(206, body=body, headers={"ETag": '"1"', "Content-Range": span})


Behaviour = Reply | Literal["hang", "drip", "reset", "cut"]


@dataclass(frozen=True)
class Seen:
    """A request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # else sixteen cold threads at once are left waiting for their connections


class Misbehaving:
    """Answers each request by the head of `script`, else by what `paths` says, else by `behaviour`."""

    def __init__(self) -> None:
        self.behaviour: Behaviour = Reply(404, "NoSuchKey")
        self.script: list[Behaviour] = []
        self.paths: dict[str, Behaviour] = {}
        self.seen: list[Seen] = []
        self.sent = 0
        """Bytes of bodies that were written."""
        self._released = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # headers and body go out as one

            def log_message(self, *arguments: object) -> None:
                pass

            def do_GET(self) -> None:
                outer._answer(self)

            do_HEAD = do_GET  # noqa: N815 - the standard library's name

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Lets go of every request that hangs, and ends."""
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.seen.append(Seen(request.command, request.path, dict(request.headers)))
        request.close_connection = True
        usual = self.paths.get(request.path.split("?")[0], self.behaviour)
        behaviour = self.script.pop(0) if self.script else usual
        if behaviour == "hang":
            self._released.wait()
        elif behaviour == "drip":
            self._drip(request)
        elif behaviour == "cut":
            _begin(request)
            request.wfile.write(b"x" * 10)
        elif isinstance(behaviour, Reply):
            _head(request, behaviour, len(behaviour.content))
            if request.command != "HEAD":
                with contextlib.suppress(OSError):  # the client has read enough, and hung up
                    request.wfile.write(behaviour.content)
                    self.sent += len(behaviour.content)

    def _drip(self, request: http.server.BaseHTTPRequestHandler) -> None:
        _begin(request)
        try:
            while not self._released.wait(0.02):
                request.wfile.write(b"x")
                request.wfile.flush()
        except OSError:
            pass  # the client has hung up, as it should


def _begin(request: http.server.BaseHTTPRequestHandler) -> None:
    """The head of an answer of 1,000 bytes, whole or as the range that was asked for."""
    headers = {"ETag": '"1"'}
    if "Range" in request.headers:
        headers["Content-Range"] = "bytes 0-999/1000"
    _head(request, Reply(206 if "Range" in request.headers else 200, headers=headers), 1_000)


def _head(request: http.server.BaseHTTPRequestHandler, reply: Reply, length: int) -> None:
    request.send_response(reply.status)
    fixed = {"Content-Length": str(length), "Connection": "close", "x-amz-request-id": "4442587FB7D0A2F9"}
    if 200 <= reply.status < 300:
        fixed["Last-Modified"] = "Mon, 02 Mar 2026 08:15:00 GMT"
    for name, value in (fixed | reply.headers).items():
        if value:  # an empty one is left out: a body without its length, say
            request.send_header(name, value)
    request.end_headers()


@pytest.fixture
def misbehaving() -> Iterator[Misbehaving]:
    """A store of its own for one test."""
    server = Misbehaving()
    yield server
    server.close()
