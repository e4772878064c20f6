"""An HTTP server on loopback that does as its `script` says, and otherwise answers what its subclass answers.

It never touches another host, remembers what was asked and never what was sent.
"""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

Answer = tuple[int, bytes, Mapping[str, str]]
"""Status, body, headers; Content-Length is added."""
Behaviour = Answer | Literal["hang", "drip", "reset"]
"""`hang`: no answer for 30 s; `drip`: 1,000 bytes, one every 20 ms; `reset`: the connection breaks."""

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class On:
    """A behaviour that waits for the next request whose `METHOD path` contains `part`."""

    part: str
    behaviour: Behaviour


@dataclass(frozen=True, slots=True)
class Seen:
    """What is remembered of a request."""

    method: str
    path: str
    """As it came, percent-encoded."""
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Request(Seen):
    """A request to answer."""

    headers: Message
    """Names in any case; None where there is none."""
    body: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """The path, decoded once."""
        return unquote(self.path)

    def json(self) -> Any:
        """The body as JSON; an empty one is an empty object."""
        return json.loads(self.body or b"{}")


class LoopbackServer:
    """Listens from `start` (or `with`) to `stop`; a subclass implements `answer`."""

    def __init__(self) -> None:
        self.script: list[Behaviour | On] = []
        """Its head, where it fits, answers the next request, once."""
        self.requests: list[Seen] = []
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def answer(self, request: Request) -> Answer:
        """What the service answers. Called from many threads, one request at a time."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """Where it listens: scheme, host and port, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Lets go of every request that hangs, closes every connection, and ends."""
        self._released.set()
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _behaviour(self, request: Request) -> Behaviour:
        with self._lock:
            self.requests.append(Seen(request.method, request.path, request.query))
            if self.script:
                head = self.script[0]
                behaviour = head.behaviour if isinstance(head, On) else head
                if not isinstance(head, On) or head.part in f"{request.method} {request.path}":
                    del self.script[0]
                    return behaviour
            return self.answer(request)

    def _reply(self, handler: "_Handler", behaviour: Behaviour) -> None:
        if behaviour == "hang":
            handler.close_connection = True
            self._released.wait(_PATIENCE_S)
        elif behaviour == "drip":
            handler.close_connection = True
            handler.head(200, 1_000, {"Content-Type": "application/json"})
            for _ in range(1_000):
                if self._released.wait(0.02):
                    break
                handler.wfile.write(b" ")
        elif behaviour == "reset":
            handler.close_connection = True
            # Closing without lingering sends RST, which is what the client of a store that dies sees.
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
        else:
            status, body, headers = behaviour
            handler.head(status, len(body), headers)
            if handler.command != "HEAD":
                handler.wfile.write(body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer waits 40 ms for an acknowledgement
    loopback: LoopbackServer

    def log_message(self, *arguments: object) -> None:
        pass

    def head(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def serve(self) -> None:
        target = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        request = Request(self.command, target.path, query, self.headers, body)
        with contextlib.suppress(OSError):  # the client has hung up, as it may
            self.loopback._reply(self, self.loopback._behaviour(request))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = serve  # noqa: N815 - the standard library's


def _handler(server: LoopbackServer) -> type[_Handler]:
    return type("Handler", (_Handler,), {"loopback": server})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Ends the connections that clients keep, so that their threads end too."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
