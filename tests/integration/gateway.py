"""A gateway before moto's server: some calls are answered as AWS answers in trouble, others are passed on.

Real clients, real bytes: errors are S3's XML or the JSON protocol's `__type`; who hangs leaves a socket open.
"""

import contextlib
import http.client
import http.server
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from tests.contracts.misbehaving import Reply

Answer = Reply | Literal["hang", "reset", "cut", "endless", "pass on, then hang"] | Callable[[Any], Reply]
"""`cut`: ten bytes of many. `endless`: 5 GB, whatever was asked for. A callable makes the reply from the
request's JSON."""

FIVE_GB = 5 * 1024**3


@dataclass(frozen=True)
class Fault:
    """What becomes of calls of one name: S3's are HTTP methods, the others' as their service names them."""

    call: str
    answer: Answer
    times: int | None = None
    """How many calls meet it; None: all."""


def refusal(status: int, code: str, **more: Any) -> Reply:
    """An error of the JSON protocol, as DynamoDB, SQS and EventBridge word theirs."""
    body = json.dumps({"__type": f"com.amazonaws#{code}", "message": "no"} | more).encode()
    return Reply(status, body=body, headers={"Content-Type": "application/x-amz-json-1.0"})


class Gateway:
    """Passes calls on to `upstream`, but for those that meet a fault."""

    def __init__(self, upstream: str) -> None:
        self._fault: Fault | None = None
        self._markers: tuple[str, ...] = ()
        self.met = 0
        """How many calls met it."""
        self.held = threading.Event()
        """Set when a call hangs."""
        self.sent = 0
        """Bytes of bodies that faults were answered with."""
        self._upstream = upstream.removeprefix("http://")
        self._released = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *arguments: object) -> None:
                pass

            def do_GET(self) -> None:
                outer._answer(self)

            do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the standard library's names

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Lets go of every call that hangs, and ends."""
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def begin(self, fault: Fault, *markers: str) -> None:
        """From now on, calls that mention one of `markers` meet the fault."""
        self._fault, self._markers = fault, markers

    def end(self) -> None:
        """Passes on everything, as at first."""
        self._fault = None

    def _answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        request.close_connection = True
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        answer = self._trouble(request, body)
        if isinstance(answer, Reply):
            self._reply(request, answer, len(answer.content))
            self.sent += len(answer.content)
        elif answer == "cut":
            self._reply(request, Reply(200, body=b"x" * 10, headers={"ETag": '"1"'}), 1_000)
        elif answer == "endless":
            self._pour(request)
        elif answer in ("hang", "pass on, then hang"):
            if answer != "hang":
                self._passed_on(request, body)
            self.held.set()
            self._released.wait()
        elif answer != "reset":
            reply = self._passed_on(request, body)
            self._reply(request, reply, len(reply.body))

    def _trouble(self, request: http.server.BaseHTTPRequestHandler, body: bytes) -> Any:
        """What the call is answered with; None where it meets no fault."""
        call = request.headers.get("X-Amz-Target", request.command).rsplit(".", 1)[-1]
        fault, said = self._fault, unquote(request.path) + body.decode()
        if fault is None or call != fault.call or not any(marker in said for marker in self._markers):
            return None
        if fault.times is not None and self.met >= fault.times:
            return None
        self.met += 1
        return fault.answer(json.loads(body)) if callable(fault.answer) else fault.answer

    def _passed_on(self, request: http.server.BaseHTTPRequestHandler, body: bytes) -> Reply:
        connection = http.client.HTTPConnection(self._upstream)
        connection.request(request.command, request.path, body, dict(request.headers))
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        dropped = {"connection", "server", "date", "transfer-encoding"}
        headers = {name.title(): value for name, value in reply.getheaders() if name.lower() not in dropped}
        return Reply(reply.status, body=content, headers=headers)

    def _reply(self, request: http.server.BaseHTTPRequestHandler, reply: Reply, length: int) -> None:
        usual = {
            "Content-Length": str(length),
            "Last-Modified": "Mon, 02 Mar 2026 08:15:00 GMT",
        }  # obstore's wish
        request.send_response(reply.status)
        for name, value in (usual | reply.headers | {"Connection": "close"}).items():
            request.send_header(name, value)
        request.end_headers()
        if request.command != "HEAD":
            with contextlib.suppress(OSError):  # the reader has seen enough, and hung up
                request.wfile.write(reply.content)

    def _pour(self, request: http.server.BaseHTTPRequestHandler) -> None:
        beginning = b"---\ntitle: Five gigabytes\n---\n"
        self._reply(request, Reply(200, body=beginning, headers={"ETag": '"5"'}), FIVE_GB)
        try:
            while self.sent < FIVE_GB:
                self.sent += request.wfile.write(b"x" * 65_536)
        except OSError:
            pass  # the reader has hung up, as it should
