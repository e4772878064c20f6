"""An API on loopback that answers what a test tells it to, and answers that Groundwire's API gives."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.servers.loopback import Answer, LoopbackServer, Request

BODY = "# Cold complaint\n"


class Api(LoopbackServer):
    """Answers by the head of `answers`, whose last one stays; `script` is the base's and comes first."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Answer] = []
        self.asked: list[Request] = []

    def answer(self, request: Request) -> Answer:
        self.asked.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def api() -> Iterator[Api]:
    """An API of its own for one test."""
    with Api() as server:
        yield server


def reply(value: Any, status: int = 200, content_type: str = "application/json", **headers: str) -> Answer:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return status, body, {"Content-Type": content_type} | {k.replace("_", "-"): v for k, v in headers.items()}


def problem(status: int, code: str, **more: Any) -> Answer:
    """Problem details as the service words them."""
    body = {"type": "about:blank", "title": "Refused", "status": status, "code": code, "detail": "no"} | more
    return reply(body, status, "application/problem+json")


def document(uri: str = "s3://kb/a.md", body: str | bytes = BODY, **delivery: Any) -> dict[str, Any]:
    """A document as an answer has it; its body is inline as text unless `delivery` says otherwise."""
    content = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    shape = {
        "uri": uri,
        "pointer": {"source_type": "s3", "s3_bucket": "kb", "s3_key": uri.removeprefix("s3://kb/")},
        "displayName": "A document",
        "mimeType": "text/markdown",
        "sizeBytes": len(content),
        "version": "v1",
        "sha256": hashlib.sha256(content).hexdigest(),
        "findings": [],
    }
    return shape | (delivery or {"text": body})


def result(*documents: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer of `POST /v1/ground`, complete unless `more` says otherwise."""
    bare = [{k: v for k, v in each.items() if k not in ("text", "geminiDocument")} for each in documents]
    return {
        "pointers": [each["pointer"] for each in documents],
        "preparedDocuments": bare,
        "compositionBundles": [bundle(each) for each in bare],
        "allDocumentsForAttachment": list(documents),
        "sources": [
            {"index": n, "status": "resolved", "uri": each["uri"], "code": None, "detail": None}
            for n, each in enumerate(documents)
        ],
        "complete": True,
        "bundleId": "5feceb66",
        "timings": {"totalMs": 1.5},
        "indexStale": [],
        "lookupErrors": [],
    } | more


def bundle(root: dict[str, Any], *skipped: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A bundle of one document."""
    return {
        "root": root,
        "rootPointer": root["pointer"],
        "included": [],
        "includedPointers": [],
        "edges": [{"from": root["uri"], "to": "s3://kb/b.md", "relativePath": "b.md", "depth": 1}],
        "skipped": list(skipped),
        "policy": {"maxDepth": 2},
        "complete": not skipped,
        "aborted": False,
        "bundleId": "5feceb66",
    } | more


def skip(reason: str, code: str | None = None, path: str = "./gone.md") -> dict[str, Any]:
    shape = {"parentUri": "s3://kb/a.md", "relativePath": path, "reason": reason}
    return shape | {"code": code, "detail": None, "line": 4}
