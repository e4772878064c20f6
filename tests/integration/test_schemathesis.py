"""The description is true: what it allows is answered as it says, and what it forbids is refused.

schemathesis makes the requests, the real handler answers them over moto. The server around it plays API
Gateway: it vouches for whoever sends the right Authorization. What the description alone led to, it leads to
documents of this deployment.
"""

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import from_schema
from schemathesis.engine.events import FatalError, NonFatalError, ScenarioFinished

from grounding.handler import application
from grounding.handler import handler as grounding_handler
from local.servers.loopback import Answer, LoopbackServer, Request
from tests.captured import http_request
from tests.cloud import Cloud, lambda_context
from tests.integration.driving import upload
from uploads.handler import handler as upload_handler

SIGNATURE: Final = "AWS4-HMAC-SHA256 Credential=app"
FILES: dict[str, str | bytes] = {
    "a.md": "---\ntitle: A\nincludes: [b.md, plan.pdf, gone.md, ../up.md, a.md]\n---\nText.\n",
    "b.md": "---\nincludes: [a.md, c.md]\nIncludes: x\n---\nWords: lämpö, 熱.\n",
    "c.md": "---\ntitle: [\n---\n",
    "plan.pdf": b"%PDF-1.7\n\xff\xfe",
}
KEYS: Final = [*FILES, "gone.md"]
PATHS: Final = (
    "/v1/ground",
    "/v1/compose",
    "/v1/validate",
    "/v1/uploads",
    "/v1/documents",
    "/v1/graph",
    "/v1/dependents",
    "/healthz",
    "/openapi.json",
)
URI: Final = re.compile(r"(s3|gs|sharepoint)://[^/]+/.")
CONFIG: Final[dict[str, Any]] = {
    "seed": 4711,
    "workers": 1,  # as Lambda has it
    "headers": {"Authorization": SIGNATURE},
    "generation": {"deterministic": True, "max-examples": 20, "no-shrink": True, "database": "none"},
    "phases": {
        "coverage": {"unexpected-methods": []},  # API Gateway knows the routes, and answers 404 for others
        "stateful": {"enabled": False},
    },
    "continue-on-failure": True,
}
CHECKS: Final = {"missing_required_header": {"enabled": False}}
"""All but this: of a request that nobody signed it wants 401, and API Gateway says 403."""
OPEN: Final = ("/v1/ground", "/v1/compose")
"""These take more than is described: numbers for text, and whatever else Gemini returns."""
LENIENT: Final = {"negative_data_rejection": {"enabled": False}}


def at_home(value: Any, bucket: str) -> Any:
    """Names of documents that there could be become names of some that there are; what is wrong stays wrong.

    Nor does anybody give a request a few milliseconds: that 503 would be right. To JSON Schema 3.0 is an
    integer; clients do not write it, and the service does not take it (B-1).
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and URI.match(value):
        return f"s3://{bucket}/{KEYS[len(value) % len(KEYS)]}"
    if isinstance(value, list):
        return [at_home(each, bucket) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: at_home(inner, bucket) for name, inner in value.items()}
    if "s3_bucket" in found and isinstance(found.get("s3_key"), str) and found["s3_key"]:
        found |= {"s3_bucket": bucket, "s3_key": KEYS[len(found["s3_key"]) % len(KEYS)]}
    if isinstance(found.get("path"), str):
        found["path"] = KEYS[len(found["path"]) % len(KEYS)]
    if isinstance(found.get("root"), str):
        found["root"] = "kb"
    milliseconds = found.get("timeoutMs")
    if isinstance(milliseconds, int) and not isinstance(milliseconds, bool) and milliseconds > 0:
        found["timeoutMs"] = milliseconds + 20_000
    return found


class Gateway(LoopbackServer):
    """HTTP on one side, API Gateway's events on the other: one request at a time, as Lambda has it."""

    def __init__(self, bucket: str) -> None:
        super().__init__()
        self.bucket = bucket

    def answer(self, request: Request) -> Answer:
        headers = {name.lower(): value for name, value in request.headers.items()}
        known = headers.get("authorization") == SIGNATURE
        event = http_request(
            request.method,
            request.path,
            query=at_home(dict(request.query), self.bucket),
            headers=headers,
            authorizer=... if known else None,
        )
        if request.body:
            event |= {"body": base64.b64encode(self.body(request)).decode(), "isBase64Encoded": True}
        handler = upload_handler if request.path == "/v1/uploads" else grounding_handler
        answer = handler(event, lambda_context())
        return answer["statusCode"], answer["body"].encode(), dict(answer["headers"])

    def body(self, request: Request) -> bytes:
        try:
            return json.dumps(at_home(request.json(), self.bucket)).encode()
        except ValueError:
            return request.body


@pytest.fixture(scope="module")
def gateway(shared_cloud: Cloud) -> Iterator[Gateway]:
    shared_cloud.wire(shared_cloud.root(writers=("*",)), open_description=True)
    upload(shared_cloud, FILES)
    application.cache_clear()  # it has described itself perhaps, and differently
    with Gateway(shared_cloud.bucket) as server:
        yield server
    application.cache_clear()


class Found(NamedTuple):
    """What schemathesis found wrong, and how many answers of each status it saw."""

    failures: list[str]
    statuses: Counter[int]


def looked_at(gateway: Gateway, path: str) -> Found:
    """The answers at `path` to all that schemathesis thinks of."""
    checks = CHECKS | ({} if path not in OPEN else LENIENT)
    config = SchemathesisConfig.from_dict(CONFIG | {"checks": checks})
    schema = schemathesis.openapi.from_url(f"{gateway.url}/openapi.json", config=config).include(path=path)
    found = Found([], Counter())
    for event in from_schema(schema).execute():
        if isinstance(event, ScenarioFinished):
            answers = [each.response for each in event.recorder.interactions.values()]
            found.statuses.update(each.status_code for each in answers if each)
            found.failures.extend(
                f"{each.name}: {each.failure_info.failure.message} {each.failure_info.code_sample}"
                for checks in event.recorder.checks.values()
                for each in checks
                if each.failure_info
            )
        elif isinstance(event, NonFatalError | FatalError):
            found.failures.append(repr(event))
    return found


@pytest.mark.parametrize("path", PATHS)
def test_what_is_described_is_what_is_answered(gateway: Gateway, path: str) -> None:
    found = looked_at(gateway, path)
    assert found.failures == []
    assert found.statuses[200]
    if path.startswith("/v1/"):
        assert found.statuses[400]
        assert found.statuses[403]
