"""The grounding function behind a small HTTP server: what a client talks to."""

from collections.abc import Iterator

import pytest

from local.servers.loopback import Answer, LoopbackServer, Request
from tests.captured import http_request
from tests.integration.driving import send


class Deployed(LoopbackServer):
    """HTTP on one side, API Gateway's events on the other: one request at a time, as Lambda has it."""

    def answer(self, request: Request) -> Answer:
        query, body = dict(request.query), request.body.decode() if request.body else None
        answer = send(http_request(request.method, request.path, body, query=query))
        return answer.status, answer.body.encode(), answer.headers


@pytest.fixture
def deployed() -> Iterator[Deployed]:
    """The function as this process's cloud has wired it."""
    with Deployed() as server:
        yield server
