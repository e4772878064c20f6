"""Nothing sensitive in any log line (Z-3), whatever level an operator sets and whatever goes wrong.

Contents, titles, tokens, keys, signatures and pre-authenticated URLs are planted, all is driven, and whatever
was written is searched: our own records, the libraries', standard output and standard error.
"""

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from groundwire.adapters.sqs import HEAL, LEARN, REPAIR
from local.servers.gemini import KEY
from local.servers.graph import TokenAnswer, failure, throttled
from local.servers.loopback import Behaviour, On
from tests.attacks.keep import SECRET_FOLDER, Keep
from tests.attacks.test_delegated import token_of
from tests.captured import object_event
from tests.contracts.token_servers import AWS_TOKEN, GOOGLE_TOKEN
from tests.integration.driving import Answer, deliver, get, index, post
from tests.integration.gateway import Fault, Gateway, refusal
from tests.integration.logs import writing
from tests.integration.test_access import jwt, role
from tests.integration.test_external_stores import DRIVE, STORE
from tests.integration.test_uploads import ask

pytestmark = pytest.mark.attacks

CONTENT, TITLE, METADATA = "planted-content-9001", "planted-title-9001", "planted-metadata-9001"
SECRET, SESSION = "planted-secret-key-9001", "planted-session-9001"
CALLERS = token_of("planted-caller-9001")
TEXTS = (CONTENT, TITLE, METADATA, SECRET, SESSION, CALLERS, KEY, GOOGLE_TOKEN, AWS_TOKEN)
DOCUMENT = f"---\ntitle: {TITLE}\nincludes: [big.md, gone.md, '{CONTENT}\\a']\nx: {CONTENT}\n---\n{CONTENT}\n"


class Listening:
    """Everything that is written, at every level; and what must not be in it, as it becomes known."""

    def __init__(self, stream: io.StringIO) -> None:
        self.stream = stream
        self.planted: set[str] = set(TEXTS)

    def note(self, answer: Answer) -> Answer:
        """Adds the signatures of an answer's URLs to what is planted."""
        for url in re.findall(r"https?://[^\"\\\\ ]+X-Amz-[^\"\\\\ ]+", answer.body):
            self.planted.update(parse_qs(urlsplit(url).query)["X-Amz-Signature"])
        return answer


@pytest.fixture
def listening(keep: Keep, capfd: pytest.CaptureFixture[str]) -> Iterator[Listening]:
    """The functions with credentials that are planted, their environment's DEBUG on, and all loggers open."""
    keep.cloud.environment(
        AWS_SECRET_ACCESS_KEY=SECRET,
        AWS_SESSION_TOKEN=SESSION,
        DEBUG="composition-loader,canonical-grounding",
        GROUNDWIRE_DEBUG_CALLERS='["*"]',
    )
    root, stream = logging.getLogger(), io.StringIO()
    level, handler = root.level, logging.StreamHandler(stream)
    handler.addFilter(lambda record: not record.name.startswith("werkzeug"))  # the emulator's own
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    heard = Listening(stream)
    with writing() as written:
        yield heard
        said = written.text + stream.getvalue() + "".join(capfd.readouterr())
    root.removeHandler(handler)
    root.setLevel(level)
    heard.planted |= {*keep.graph.downloads.tempauths, *keep.graph.grants}
    assert {
        line.split(" ", 1)[0] for line in said.split("\n") for each in heard.planted if each in line
    } == set()
    assert '"namespace":' in said
    assert '"message":"audit"' in said


def fill(keep: Keep) -> list[Any]:
    """Documents everywhere, and sources that lead to them in every way."""
    keep.cloud.put("a.md", DOCUMENT)
    keep.cloud.put("big.md", CONTENT * 400_000)
    keep.cloud.put("bad.md", f"---\n'{CONTENT}\n---\n")
    keep.cloud.put("hidden/b.md", DOCUMENT)
    keep.cloud.put("inbox/c.md", f"---\ntitle: {TITLE}\ncanonical_path: c.md\n---\n{CONTENT}")
    index(keep.cloud, "a.md", "big.md", "bad.md", "hidden/b.md", "inbox/c.md")
    keep.store("a.md", DOCUMENT.encode())
    keep.store("x//a.md", DOCUMENT.encode())
    keep.store("big.md", CONTENT.encode() * 400_000)
    for path in ("a.md", f"{SECRET_FOLDER}/b.md", "plan.docx"):
        keep.graph.put(DRIVE, path, DOCUMENT.encode())
    keep.entra.users[CALLERS] = {DRIVE}
    pointer = {"source_type": "s3", "s3_bucket": keep.cloud.bucket, "s3_key": "a.md"}
    return [
        {"uri": keep.cloud.uri("a.md"), "title": TITLE, "text": CONTENT},
        keep.cloud.uri("big.md"),
        keep.cloud.uri("bad.md"),
        keep.cloud.uri("hidden/b.md"),
        f"gs://{keep.bucket}/a.md",
        f"gs://{keep.bucket}/x//a.md",
        f"gs://{keep.bucket}/big.md",
        f"sharepoint://{DRIVE}/a.md",
        f"sharepoint://{DRIVE}/plan.docx",
        f"sharepoint://{DRIVE}/{SECRET_FOLDER}/b.md",
        keep.catalogued(pointer | {"author": METADATA}, title=TITLE),
        keep.catalogued({"author": METADATA}),
        {"title": TITLE, "fileSearchStore": STORE, "text": CONTENT},
        {"uri": f"https://example.com/?X-Amz-Signature={CALLERS}&tempauth={CALLERS}"},
        {"customMetadata": [{"key": METADATA, "stringValue": METADATA}], "text": CONTENT},
    ]


def drive(heard: Listening, keep: Keep, sources: list[Any]) -> None:
    """One of each request and message, as two kinds of callers."""
    headers = {"authorization": f"Bearer {CALLERS}", "cookie": CALLERS, "x-groundwire-debug": "*"}
    some = [each for each in sources if isinstance(each, str)]
    for caller in (jwt(), role("app"), None):
        for options in ({}, {"useFilesApi": "always"}):
            overrides = {"maxDocuments": 50, "prepareDocumentOptions": options}
            heard.note(post("/v1/ground", {"sources": sources, "overrides": overrides}, caller, headers))
        for uri in some:
            heard.note(post("/v1/compose", {"uri": uri}, caller, headers))
            get("/v1/documents", caller, uri=uri)
            get("/v1/dependents", caller, uri=uri)
        post("/v1/ground", {"groundingMetadata": {"groundingChunks": CONTENT}}, caller, headers)
        post("/v1/compose", {"pointer": {"source_type": CONTENT}, "uri": None}, caller, headers)
        post("/v1/validate", {"path": "n.md", "root": "kb", "content": DOCUMENT}, caller, headers)
        heard.note(ask({"path": "n.md", "root": "kb", "contentType": CONTENT}, caller))
        heard.note(ask({"path": "n.md", "root": "kb"}, caller))
    seen = {"title": TITLE, "version": [CONTENT]}
    deliver(
        f"{{{CONTENT}",
        {"detail-type": CONTENT, "content": CONTENT},
        {"detail-type": LEARN, "root": "labs", "key": "a.md", "seen": seen},
        {
            "detail-type": LEARN,
            "root": "labs",
            "key": "a.md",
            "seen": {"title": TITLE, "version": "1", CONTENT: 1},
        },
        {"detail-type": HEAL, "root": "kb", "key": "a.md", "cursor": CONTENT},
        {
            "detail-type": REPAIR,
            "documents": [{"root": "kb", "key": "a.md"}, {"root": "kb", "key": "bad.md"}],
        },
        object_event(keep.cloud.bucket, "a.md"),
    )
    deliver(*(message["Body"] for message in keep.cloud.messages(keep.cloud.queue)))


def test_when_all_is_well(keep: Keep, listening: Listening) -> None:
    drive(listening, keep, fill(keep))
    assert len(listening.planted) > len(TEXTS), "there were signatures"


def test_when_the_drive_and_its_tokens_fail(keep: Keep, listening: Listening) -> None:
    fill(keep)
    uri = f"sharepoint://{DRIVE}/a.md"
    headers = {"authorization": f"Bearer {CALLERS}"}
    moved = {"Location": f"{keep.graph.url}/x?tempauth={CALLERS}"}
    broken: list[Behaviour | On] = [
        failure(500, CONTENT),
        failure(403, "accessDenied", moved),
        throttled(0),
        (200, CONTENT.encode(), {}),
        (302, b"", moved),
        "reset",
        On("/content", (200, CONTENT.encode(), moved)),
        On("/content", (302, b"", {"Location": f"ftp://x/?tempauth={CALLERS}"})),
        On("/content", (302, b"", {"Location": f"http://127.0.0.1:1/?tempauth={CALLERS}"})),
        On("/content", (302, b"", {"Location": f"http://[::1/?tempauth={CALLERS}"})),
    ]
    for delegated in (False, True):
        keep.wire(delegated=delegated)
        for behaviour in broken:
            for server in (keep.graph, keep.graph.downloads):
                server.script[:] = [behaviour]
                post("/v1/compose", {"uri": uri}, jwt(), headers)
                server.script.clear()
        for text in (CONTENT, json.dumps({"error": CONTENT, "error_description": CALLERS})):
            keep.wire(delegated=delegated)
            keep.entra.script[:] = [TokenAnswer(400, text)]
            post("/v1/compose", {"uri": uri}, jwt(), headers)
            keep.entra.script.clear()


def test_when_google_and_its_tokens_fail(keep: Keep, listening: Listening) -> None:
    fill(keep)
    source = [{"title": "none", "fileSearchStore": STORE}, f"gs://{keep.bucket}/a.md"]
    said: list[Any] = [
        (400, CONTENT),
        (500, {"error": CONTENT, "error_description": CALLERS}),
        (200, {"x": CONTENT}),
    ]
    for answer in said:
        keep.wire()
        keep._tokens.answers["/token"] = answer
        post("/v1/ground", {"sources": source})
    broken: list[Behaviour] = [(status, CONTENT.encode(), {}) for status in (200, 400, 500)]
    options = {"prepareDocumentOptions": {"useFilesApi": "always"}}
    for behaviour in (*broken, "reset"):
        keep.wire()
        keep.gemini.script[:] = [behaviour] * 20
        post("/v1/ground", {"sources": source, "overrides": options})
        keep.gemini.script.clear()
    keep.gemini.keys.clear()
    keep.wire()
    post("/v1/ground", {"sources": source})


FAULTS = (
    Fault("GET", refusal(500, CONTENT)),
    Fault("GET", refusal(403, CONTENT)),
    Fault("GET", "reset"),
    Fault("GET", "cut"),
    Fault("PUT", refusal(403, CONTENT)),
    Fault("BatchGetItem", refusal(400, "ValidationException", message=CONTENT)),
    Fault("BatchGetItem", refusal(500, "InternalServerError", message=CONTENT)),
    Fault("PutItem", refusal(400, "ValidationException", message=CONTENT)),
    Fault("GetItem", refusal(400, "AccessDeniedException", message=CONTENT)),
    Fault("SendMessage", refusal(400, "AccessDeniedException", message=CONTENT)),
    Fault("GetSecretValue", refusal(400, "AccessDeniedException", message=KEY)),
)


def test_when_the_cloud_fails(keep: Keep, listening: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    monkeypatch.setattr("groundwire.adapters.dynamo_errors.random", lambda: 0.0)
    sources = fill(keep)
    unknown = {"documentName": f"{STORE}/documents/unknown"}
    gateway = Gateway(keep.cloud.endpoint)
    for fault in FAULTS:
        keep.cloud.environment(AWS_ENDPOINT_URL=gateway.endpoint)  # nothing is kept from before
        gateway.begin(fault, "")
        met = gateway.met
        listening.note(post("/v1/ground", {"sources": [*sources[:1], *sources[10:13], unknown]}, jwt()))
        listening.note(post("/v1/ground", {"sources": [f"gs://{keep.bucket}/big.md"]}, jwt()))
        post("/v1/compose", {"uri": keep.cloud.uri("a.md")}, jwt())
        get("/v1/documents", jwt(), uri=keep.cloud.uri("a.md"))
        deliver(object_event(keep.cloud.bucket, "a.md"), f"{{{CONTENT}")
        assert gateway.met > met, fault
        gateway.end()
    gateway.close()
