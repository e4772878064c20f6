"""Whatever fails, the rest is answered, and what is missing is named: one test for each row of docs/api.md.

The real handler over real stores; trouble comes over a socket. A store that never answers proves by the
answer's coming that nobody waited for it.
"""

import contextlib
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from grounding import wiring
from groundwire.adapters.access_tokens import AccessToken
from groundwire.adapters.gcs import GcsDocumentFetcher
from groundwire.adapters.gemini import Gemini
from groundwire.adapters.graph import GraphClient
from groundwire.adapters.microsoft import GraphTokens, keyless
from groundwire.adapters.sharepoint import SharePointDocumentFetcher
from groundwire.settings import GoogleSettings, MicrosoftSettings, StorageRootSettings
from local.servers.gemini import KEY, GeminiServer
from local.servers.graph import Entra, GraphServer
from tests.cloud import REGION, Cloud, session
from tests.contracts.misbehaving import Reply
from tests.integration.described import departures
from tests.integration.driving import post
from tests.integration.gateway import Fault, Gateway

PAGE: Final = Path(__file__).parents[2] / "docs" / "api.md"
NOBODY: Final = "http://127.0.0.1:1"
DRIVE: Final = "b!drive"
FILES: Final[dict[str, str | bytes]] = {
    "a.md": "---\nincludes: [b.md, c.md]\n---\nA.\n",
    "b.md": "B.\n",
    "c.md": "C.\n",
    "d.md": "D.\n",
    "gap.md": "---\nincludes: [gone.md, b.md]\n---\n",
    "big.md": "---\nincludes: [large.md, b.md]\n---\n",
    "large.md": "x" * 50_000,
    "keeps.md": "---\nincludes: [secret/s.md, b.md]\n---\n",
    "secret/s.md": "S.\n",
}
ALL: Final = "a.md b.md c.md d.md"


class World:
    """A knowledge base in S3 behind a gateway, and other services where a row wants them."""

    def __init__(self, cloud: Cloud, gateway: Gateway, patch: pytest.MonkeyPatch) -> None:
        self.cloud, self.gateway, self.patch = cloud, gateway, patch
        self.services = contextlib.ExitStack()
        for key, content in FILES.items():
            cloud.put(key, content)

    def wire(self, *roots: StorageRootSettings, **settings: Any) -> None:
        """Wires the function to the knowledge base and these roots beside it, through the gateway."""
        self.cloud.wire(self.cloud.root(), *roots, **settings)
        self.cloud.environment(AWS_ENDPOINT_URL=self.gateway.endpoint)

    def fault(self, call: str, answer: Any, *markers: str) -> None:
        self.gateway.begin(Fault(call, answer), *(markers or ("",)))

    def ground(self, *sources: Any, **more: Any) -> Any:
        """The answer about these keys, URIs or sources, which is 200 and as it is described."""
        found = [self.cloud.uri(s) if isinstance(s, str) and "://" not in s else s for s in sources]
        answer = post("/v1/ground", {"sources": found, **more})
        assert answer.status == 200, answer.body
        assert departures(answer, "post", "/v1/ground") == []
        return answer.json

    def sharepoint(self, endpoint: str | None = None) -> GraphServer:
        """A drive with a document `x.md`; the function asks `endpoint` where one is given."""
        server = self.services.enter_context(GraphServer())
        server.put(DRIVE, "x.md", b"X" * 50_000)
        tokens = GraphTokens("t", "c", keyless(lambda: "vouched"), transport=Entra(server))
        client = GraphClient(tokens, endpoint=endpoint or server.endpoint, allow_http=True)
        self.services.callback(client.close)
        self.patch.setattr("grounding.wiring._sharepoint", lambda *_: SharePointDocumentFetcher(client))
        return server

    def gemini(self, **settings: Any) -> GeminiServer:
        """Gemini with a store whose document leads to `d.md`."""
        server = self.services.enter_context(GeminiServer())
        self.patch.setattr("grounding.wiring._gemini", self._closing(wiring._gemini))
        store = server.add_store("handbook")
        pointer = {"source_type": "s3", "s3_bucket": self.cloud.bucket, "s3_key": "d.md"}
        self.document = server.add_document(store, "D", display_name="The D", metadata=pointer)
        name = f"gemini-{uuid4().hex[:8]}"
        secrets = session().client("secretsmanager", endpoint_url=self.cloud.endpoint)
        secrets.create_secret(Name=name, SecretString=KEY)
        secrets.close()
        given = {"gemini_endpoint": server.url, "file_search_stores": (store,)} | settings
        self.wire(gemini_key_secret=name, **given)
        return server

    def _closing(self, connect: Callable[..., Gemini | None]) -> Callable[..., Gemini | None]:
        """`connect`, whose connections end with the test."""

        def connected(*arguments: Any) -> Gemini | None:
            gemini = connect(*arguments)
            if gemini:
                self.services.callback(gemini.close)
            return gemini

        return connected


IN_SHAREPOINT: Final = StorageRootSettings(
    name="drive", source_type="sharepoint", bucket=DRIVE, readers=("*",)
)
MICROSOFT: Final = MicrosoftSettings(tenant_id="t", client_id="c", keyless=True)


@pytest.fixture
def world(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    gateway = Gateway(cloud.endpoint)
    world = World(cloud, gateway, monkeypatch)
    with world.services:
        world.wire()
        yield world
    gateway.close()


@dataclass(frozen=True)
class Row:
    """What fails, what is attached all the same, what is said of the rest, and whether it is complete."""

    name: str
    attached: str
    said: frozenset[str]
    complete: bool
    ask: Callable[[World], Any]


ROWS: Final[list[Row]] = []


def row(
    name: str, attached: str, *said: str, complete: bool = False
) -> Callable[[Callable[[World], Any]], Callable[[World], Any]]:
    def add(ask: Callable[[World], Any]) -> Callable[[World], Any]:
        ROWS.append(Row(name, attached, frozenset(said), complete, ask))
        return ask

    return add


# -- stores ---------------------------------------------------------------------------------------


@row("S3 is down", "x.md", "sources: unavailable")
def _(world: World) -> Any:
    world.sharepoint()
    world.wire(IN_SHAREPOINT, microsoft=MICROSOFT)
    world.fault("GET", Reply(500, "InternalError"))
    return world.ground("a.md", f"sharepoint://{DRIVE}/x.md")


@row("S3 is busy", "x.md", "sources: throttled")
def _(world: World) -> Any:
    world.sharepoint()
    world.wire(IN_SHAREPOINT, microsoft=MICROSOFT)
    world.fault("GET", Reply(503, "SlowDown"))
    return world.ground("a.md", f"sharepoint://{DRIVE}/x.md")


@row("Cloud Storage is down", ALL, "sources: unavailable")
def _(world: World) -> Any:
    def token() -> AccessToken:
        return AccessToken("t", datetime.now(UTC) + timedelta(hours=1))

    world.patch.setattr("grounding.wiring._gcs", lambda *_: GcsDocumentFetcher(token))
    labs = StorageRootSettings(name="labs", source_type="gcs", bucket="labs", endpoint=NOBODY, readers=("*",))
    world.wire(labs, google=GoogleSettings(audience="//iam.googleapis.com/x"))
    return world.ground("a.md", "d.md", "gs://labs/g.md")


@row("SharePoint is down", ALL, "sources: unavailable")
def _(world: World) -> Any:
    world.sharepoint(f"{NOBODY}/v1.0")
    world.wire(IN_SHAREPOINT, microsoft=MICROSOFT)
    return world.ground("a.md", "d.md", f"sharepoint://{DRIVE}/x.md")


@row("a store is killed in the middle of a body", ALL, "sources: unavailable")
def _(world: World) -> Any:
    store = world.services.enter_context(_dying())
    url = f"http://127.0.0.1:{store.server_address[1]}"
    other = StorageRootSettings(
        name="other", bucket="other", region=REGION, endpoint=url, force_path_style=True, readers=("*",)
    )
    world.wire(other)
    answer = world.ground("a.md", "d.md", "s3://other/o.md")
    assert store.died.is_set()
    return answer


@row("a source's store does not answer", "a.md b.md c.md", "sources: unavailable")
def _(world: World) -> Any:
    world.fault("GET", "hang", "d.md")
    return _in_time(world, "a.md", "d.md")


@row("an include's store does not answer", "a.md d.md c.md", "skipped: timeout")
def _(world: World) -> Any:
    world.fault("GET", "hang", "b.md")
    return _in_time(world, "a.md", "d.md")


def _in_time(world: World, *sources: str) -> Any:
    answer = world.ground(*sources, overrides={"compositionPolicy": {"timeoutMs": 2_500}})
    assert world.gateway.held.is_set()
    return answer


# -- single documents -----------------------------------------------------------------------------


@row("a store forbids one document", "a.md c.md d.md", "skipped: fetch_failed not_found")
def _(world: World) -> Any:
    world.fault("GET", Reply(403, "AccessDenied"), "b.md")
    return world.ground("a.md", "d.md")


@row("a document is not there", "gap.md b.md", "skipped: fetch_failed not_found", "sources: not_found")
def _(world: World) -> Any:
    return world.ground("gap.md", "nowhere.md")


@row("the caller may not read an include", "keeps.md b.md", "skipped: fetch_failed not_found")
def _(world: World) -> Any:
    world.wire(world.cloud.root(name="secret", prefix="secret", readers=()))
    return world.ground("keeps.md")


@row("the caller may read nothing", "", "sources: not_found")
def _(world: World) -> Any:
    world.cloud.wire(world.cloud.root(readers=()))
    return world.ground("a.md", "d.md")


@row("an include is larger than the policy allows", "big.md b.md", "skipped: byte_budget_exceeded")
def _(world: World) -> Any:
    return world.ground("big.md", overrides={"compositionPolicy": {"maxIncludeBytes": 1_000}})


@row("a document is larger than any that is read", "d.md", "sources: too_large")
def _(world: World) -> Any:
    world.patch.setattr("groundwire.fetching.DOCUMENT_BYTES", 10_000)
    return world.ground("large.md", "d.md")


@row(
    "a fetch fails, and the policy says abort",
    "gap.md",
    "skipped: fetch_failed not_found",
    "skipped: fetch_failed aborted",
    "aborted",
)
def _(world: World) -> Any:
    return world.ground("gap.md", overrides={"compositionPolicy": {"onFetchError": "abort"}})


# -- index, catalogue and Gemini ------------------------------------------------------------------


@row("the index is down", ALL, complete=True)
def _(world: World) -> Any:
    world.cloud.environment(AWS_ENDPOINT_URL_DYNAMODB=NOBODY)
    return world.ground("a.md", "d.md")


@row("the index does not answer", ALL, complete=True)
def _(world: World) -> Any:
    world.fault("BatchGetItem", "hang")
    answer = world.ground("a.md", "d.md")
    assert world.gateway.held.wait(30)
    return answer


@row("the index's repair queue is down", ALL, complete=True)
def _(world: World) -> Any:
    world.cloud.environment(AWS_ENDPOINT_URL_SQS=NOBODY)
    return world.ground("a.md", "d.md")


@row(
    "the catalogue is down, and Gemini knows the document's name",
    ALL,
    "lookupErrors: catalogue: unavailable",
    complete=True,
)
def _(world: World) -> Any:
    world.gemini()
    world.cloud.environment(AWS_ENDPOINT_URL_DYNAMODB=NOBODY)
    return world.ground("a.md", {"documentName": world.document})


@row(
    "the catalogue is down, and only a title is known",
    "a.md b.md c.md",
    "lookupErrors: catalogue: unavailable",
    "lookupErrors: listing: unavailable",
    "sources: document_not_found",
)
def _(world: World) -> Any:
    world.gemini()
    world.cloud.environment(AWS_ENDPOINT_URL_DYNAMODB=NOBODY)
    return world.ground("a.md", {"title": "The D", "fileSearchStore": "fileSearchStores/handbook"})


@row(
    "Gemini is down, and the document is not in the catalogue",
    "a.md b.md c.md",
    "lookupErrors: get: unavailable",
    "sources: document_not_found",
)
def _(world: World) -> Any:
    world.gemini(gemini_endpoint=NOBODY)
    return world.ground("a.md", {"documentName": world.document})


@row("Gemini is down, and the catalogue has the document", ALL, complete=True)
def _(world: World) -> Any:
    world.gemini()
    world.ground({"documentName": world.document})  # is in the catalogue from now on
    world.cloud.environment(GROUNDWIRE_GEMINI_ENDPOINT=NOBODY)
    return world.ground("a.md", {"documentName": world.document})


# -- handing over ---------------------------------------------------------------------------------


@row("the answer is too large", "large.md d.md", "downloadUrl", complete=True)
def _(world: World) -> Any:
    world.patch.setattr("groundwire.delivery.RESPONSE_BYTES", 20_000)
    return world.ground("large.md", "d.md")


@row("the answer is too large, and the delivery bucket is down", "x.md d.md", "undelivered: unavailable")
def _(world: World) -> Any:
    world.sharepoint()
    world.wire(IN_SHAREPOINT, microsoft=MICROSOFT, delivery_bucket="delivery")
    world.patch.setattr("groundwire.delivery.RESPONSE_BYTES", 20_000)
    world.fault("PUT", Reply(500, "InternalError"))
    return world.ground(f"sharepoint://{DRIVE}/x.md", "d.md")


@row("the Files API is down", ALL, "filesApi: unavailable", complete=True)
def _(world: World) -> Any:
    world.gemini(gemini_endpoint=NOBODY)
    options = {"prepareDocumentOptions": {"useFilesApi": "always"}}
    return world.ground("a.md", "d.md", overrides=options)


# -- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_failure_costs_what_the_table_says(world: World, row: Row) -> None:
    answer = row.ask(world)
    documents = answer["allDocumentsForAttachment"]
    assert sorted(each["displayName"] for each in documents) == sorted(row.attached.split())
    assert said(answer) == row.said
    assert answer["complete"] is row.complete


def said(answer: Any) -> frozenset[str]:
    """All that the answer says of what is missing, or not where it was asked for."""
    found = {f"sources: {each['code']}" for each in answer["sources"] if each["code"]}
    found |= {f"lookupErrors: {each}" for each in answer["lookupErrors"]}
    for bundle in answer["compositionBundles"]:
        found |= {f"skipped: {s['reason']} {s['code'] or ''}".strip() for s in bundle["skipped"]}
        found |= {"aborted"} if bundle["aborted"] else set()
    for document in answer["allDocumentsForAttachment"]:
        found |= {f"{name}: {document[name]}" for name in ("undelivered", "filesApi") if name in document}
        found |= {name for name in ("downloadUrl",) if name in document}
    return frozenset(found)


def test_the_page_lists_these_failures_with_these_outcomes() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Partial results", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]*) \| (true|false) \|$", section, re.MULTILINE)
    told = {name: (frozenset(re.findall(r"`([^`]+)`", what)), whole) for name, what, whole in rows}
    assert told == {row.name: (row.said, str(row.complete).lower()) for row in ROWS}
    assert len(ROWS) == len({row.name for row in ROWS})


class _Dying(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.died = threading.Event()
        super().__init__(("127.0.0.1", 0), _Dies)


class _Dies(http.server.BaseHTTPRequestHandler):
    """Sends the beginning of a body, and is no more: neither connection nor server."""

    server: _Dying

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        self.close_connection = True
        self.send_response(200)
        headers = {"Content-Length": "1000", "ETag": '"1"', "Last-Modified": "Mon, 02 Mar 2026 08:15:00 GMT"}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"x" * 10)
        self.wfile.flush()
        self.server.shutdown()
        self.server.server_close()
        self.server.died.set()


@contextlib.contextmanager
def _dying() -> Iterator[_Dying]:
    server = _Dying()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
