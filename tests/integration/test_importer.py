"""The importer's handler over S3, the index and Gemini's protocol: what each message does (X-10)."""

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from groundwire.adapters.eventbridge import EventBridgeEventSink
from groundwire.adapters.secrets import secret_text
from groundwire.catalogue import Listing
from groundwire.deadline import Deadline
from groundwire.errors import Unavailable
from groundwire.nodes import document_id
from groundwire.pointers import Location
from groundwire.ports import FileSearchStores
from groundwire.settings import ImporterSettings
from importer.handler import handler
from importer.wiring import wired
from indexer.wiring import wired as indexer_wired
from local.servers.gemini import KEY, GeminiServer, refusal
from local.servers.loopback import On
from tests.captured import sqs_batch
from tests.cloud import Cloud, lambda_context, session
from tests.fakes import HandClock
from tests.integration.driving import index, upload
from tests.integration.logs import Written, writing

TEXT = "---\ntitle: Water leak\n---\nShut the valve.\n"
PLANTED = "MAGENTA-GIRAFFE"


class Office:
    """Gemini's service with two stores, and the importer that fills one of them and lists the other."""

    def __init__(self, cloud: Cloud, server: GeminiServer) -> None:
        self.cloud, self.server = cloud, server
        self.store, self.theirs = server.add_store("handbook"), server.add_store("faq")

    @property
    def documents(self) -> list[Any]:
        return list(self.server.stores[self.store].documents.values())

    def event(self, key: str) -> dict[str, Any]:
        """What the bus says of the document now, as the indexer would publish it."""
        sent: list[Any] = []

        class Bus:
            def put_events(self, *, Entries: Any) -> Any:  # noqa: N803 - boto3's name
                sent.extend(Entries)
                return {"FailedEntryCount": 0}

        node = indexer_wired().indexer._index.node(self.location(key))
        assert node is not None
        EventBridgeEventSink(Bus(), "bus").publish(node)  # type: ignore[arg-type]
        (entry,) = sent
        detail = json.loads(entry["Detail"])
        return {
            "version": "0",
            "id": str(uuid4()),
            "source": entry["Source"],
            "detail-type": entry["DetailType"],
            "detail": detail,
        }

    def location(self, key: str) -> Location:
        return Location(wired().roots.by_name["kb"], key)

    def put(self, key: str, content: str, sequencer: str | None = None) -> None:
        """Stores and indexes a document, and tells the importer."""
        self.cloud.put(key, content)
        index(self.cloud, key, sequencer=sequencer)
        assert self.tell(self.event(key)) == []

    def tell(self, *messages: Any, milliseconds: int = 60_000) -> list[str]:
        """Delivers messages in one batch; the ids (m0, m1, …) that must come again."""
        answer = handler(sqs_batch(*messages), lambda_context(milliseconds))
        return [each["itemIdentifier"] for each in answer["batchItemFailures"]]

    def listing(self, store: str) -> Listing | None:
        return wired().catalogue.listing(store, deadline=Deadline.after(10))


@pytest.fixture
def office(cloud: Cloud) -> Iterator[Office]:
    with GeminiServer() as server:
        office = Office(cloud, server)
        secrets = session().client("secretsmanager", endpoint_url=cloud.endpoint)
        name = f"gemini-{uuid4().hex[:8]}"
        secrets.create_secret(Name=name, SecretString=KEY + "\n")
        secrets.close()
        settings = ImporterSettings(
            table=cloud.table,
            storage_roots=(cloud.root(),),
            aws_endpoint=cloud.endpoint,
            import_store=office.store,
            listed_stores=(office.theirs,),
            gemini_key_secret=name,
            gemini_endpoint=server.url,
            import_queue_url=cloud.queue,
            dead_letter_queue_url=cloud.dead_letters,
        )
        cloud.environment(**settings.environment())
        wired.cache_clear()
        yield office
        stores: Any = wired().stores
        stores._gemini.close()
    wired.cache_clear()


def test_an_indexed_document_can_be_found_with_what_leads_back_to_it(office: Office) -> None:
    office.put("sops/water-leak.md", TEXT)
    (document,) = office.documents
    assert (document.state, document.display_name, document.mime_type) == (
        "STATE_ACTIVE",
        "Water leak",
        "text/markdown",
    )
    assert document.content == TEXT.encode()
    assert {each["key"]: each["stringValue"] for each in document.json()["customMetadata"]} == {
        "groundwire_id": document_id(office.location("sops/water-leak.md")),
        "source_type": "s3",
        "s3_bucket": office.cloud.bucket,
        "s3_key": "sops/water-leak.md",
        "s3_region": "eu-north-1",
        "display_name": "Water leak",
        "mime_type": "text/markdown",
    }
    found = wired().catalogue.titled(office.store, "Water leak", deadline=Deadline.after(10))
    assert [entry.name for entry in found] == [document.name]
    listing = office.listing(office.store)
    assert listing is not None
    assert listing.ours


def test_a_key_that_no_value_holds_is_there_by_its_id(office: Office) -> None:
    key = f"sops/{'é' * 130}.md"
    office.put(key, "text")
    (document,) = office.documents
    metadata = {each["key"]: each["stringValue"] for each in document.json()["customMetadata"]}
    assert metadata["groundwire_id"] == document_id(office.location(key))
    assert "s3_key" not in metadata


def test_an_overwritten_document_replaces_its_earlier_version(office: Office) -> None:
    office.put("a.md", TEXT)
    office.put("a.md", "---\ntitle: Leak, revised\n---\nRun.\n", sequencer="617F08299329D18A")
    (document,) = office.documents
    assert document.display_name == "Leak, revised"
    catalogue = wired().catalogue
    assert catalogue.titled(office.store, "Water leak", deadline=Deadline.after(10)) == []
    (entry,) = catalogue.titled(office.store, "Leak, revised", deadline=Deadline.after(10))
    assert entry.name == document.name


def test_a_deleted_document_is_gone(office: Office) -> None:
    office.put("a.md", TEXT)
    office.cloud.delete("a.md")
    index(office.cloud, "a.md", name="object_deleted", sequencer="617F08299329D18A")
    assert office.tell(office.event("a.md")) == []
    assert office.documents == []
    assert wired().catalogue.titled(office.store, "Water leak", deadline=Deadline.after(10)) == []


def test_the_same_event_twice_asks_gemini_nothing(office: Office) -> None:
    office.put("a.md", TEXT)
    asked = len(office.server.requests)
    assert office.tell(office.event("a.md"), office.event("a.md")) == []
    assert len(office.server.requests) == asked


@pytest.mark.parametrize(
    "behaviour",
    [refusal(429, "RESOURCE_EXHAUSTED"), refusal(503, "UNAVAILABLE"), "reset"],
    ids=["429", "503", "reset"],
)
def test_a_service_that_does_not_take_it_now_is_asked_again(office: Office, behaviour: Any) -> None:
    upload(office.cloud, {"a.md": TEXT, "b.md": "other"})
    office.server.script = [On("upload", behaviour)]
    events = office.event("a.md"), office.event("b.md")
    assert office.tell(*events) == ["m0"]
    assert [each.display_name for each in office.documents] == ["b.md"]
    assert office.tell(*events) == []
    assert sorted(each.display_name for each in office.documents) == ["Water leak", "b.md"]


def test_an_upload_whose_answer_was_lost_is_not_there_twice(office: Office) -> None:
    upload(office.cloud, {"a.md": TEXT})
    office.server.script = [
        On("GET /v1beta/fileSearchStores/handbook/upload/operations", behaviour)
        for behaviour in (refusal(500, "INTERNAL"), refusal(500, "INTERNAL"))
    ]
    event = office.event("a.md")
    assert office.tell(event) == ["m0"]
    assert len(office.documents) == 1
    assert office.tell(event) == []
    (document,) = office.documents
    assert document.state == "STATE_ACTIVE"


def test_a_document_that_gemini_never_takes_is_recorded_and_acknowledged(office: Office) -> None:
    upload(office.cloud, {"a.pdf": PLANTED, "b.md": TEXT})
    office.server.refused_mime_types = {"application/pdf"}
    with writing() as written:
        assert office.tell(office.event("a.pdf"), office.event("b.md")) == []
    assert [each.display_name for each in office.documents] == ["Water leak"]
    lines = _records(written)
    (refused,) = (line for line in lines if line.get("message") == "the service refuses it")
    assert (refused["uri"], refused["code"]) == (office.cloud.uri("a.pdf"), "INVALID_ARGUMENT")
    assert any(line.get("DocumentsRefused") == [1.0] for line in lines)
    assert office.cloud.messages(office.cloud.dead_letters) == []


def test_what_is_skipped_is_counted_by_its_reason(office: Office) -> None:
    upload(office.cloud, {"boiler.png": "\x89PNG", "empty.md": ""})
    with writing() as written:
        assert office.tell(office.event("boiler.png"), office.event("empty.md")) == []
    assert office.documents == []
    lines = _records(written)
    assert {line["reason"] for line in lines if "Skipped" in line} == {"unsupported_mime", "empty"}
    logged = [(line["outcome"], line["reason"]) for line in lines if line.get("message") == "document"]
    assert logged == [("skipped", "unsupported_mime"), ("skipped", "empty")]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("not json " + PLANTED, "not JSON"),
        (f'["{PLANTED}"]', "no JSON object"),
        ({"what": PLANTED}, "none of ours"),
        ({"source": "groundwire", "detail-type": "Document Indexed", "detail": {"uri": 3}}, "detail.uri"),
        ({"sweep": True, "cursor": 3}, "cursor"),
        ({"list": [PLANTED]}, "list"),
    ],
)
def test_a_message_that_means_nothing_is_kept_for_an_operator(office: Office, body: Any, reason: str) -> None:
    upload(office.cloud, {"a.md": TEXT})
    with writing() as written:
        assert office.tell(body, office.event("a.md")) == []
    (kept,) = office.cloud.messages(office.cloud.dead_letters)
    assert kept["Body"] == (body if isinstance(body, str) else json.dumps(body))
    assert reason in kept["MessageAttributes"]["reason"]["StringValue"]
    assert PLANTED not in written.text
    assert len(office.documents) == 1


@pytest.mark.parametrize(
    "detail",
    [
        {"uri": "s3://elsewhere/a.md", "root": "kb"},
        {"uri": "s3://elsewhere/a.md", "root": "unknown"},
        {"uri": "nonsense", "root": "kb"},
    ],
)
def test_documents_of_other_places_are_none_of_our_business(office: Office, detail: Any) -> None:
    event = {"source": "groundwire", "detail-type": "Document Indexed", "detail": detail}
    with writing() as written:
        assert office.tell(event) == []
    assert any(record.get("ForeignDocuments") == [1.0] for record in _records(written))
    assert office.server.requests == []


def test_nothing_of_a_document_the_key_or_an_upload_is_written(office: Office) -> None:
    upload(office.cloud, {"a.md": f"---\ntitle: {PLANTED}\n---\n{PLANTED}\n", "b.md": PLANTED})
    office.server.script = [On("uploadToFileSearchStore", refusal(503, PLANTED, PLANTED))]
    with writing() as written:
        events = office.event("a.md"), office.event("b.md")
        assert office.tell(*events) == ["m0"]
        assert office.tell(*events, {"sweep": True}, {"list": office.theirs}) == []
    assert len(office.documents) == 2
    assert '"outcome":"imported"' in written.text.replace(" ", "")
    for secret in (PLANTED, KEY, "upload_id"):
        assert secret not in written.text


def test_a_secret_that_is_not_there_is_waited_for(office: Office) -> None:
    upload(office.cloud, {"a.md": TEXT})
    office.cloud.environment(GROUNDWIRE_GEMINI_KEY_SECRET="gone")
    wired.cache_clear()
    with writing() as written:
        assert office.tell(office.event("a.md")) == ["m0"]
    assert "ResourceNotFoundException" in written.text


def test_a_secret_is_its_text_without_the_line_end_of_a_file() -> None:
    held = SimpleNamespace(get_secret_value=lambda SecretId: {"SecretString": f"{SecretId}\r\n"})  # noqa: N803
    assert secret_text(held, "key")() == "key"
    empty = SimpleNamespace(get_secret_value=lambda SecretId: {"SecretBinary": b"x"})  # noqa: N803
    with pytest.raises(Unavailable):
        secret_text(empty, "key")()


# -- sweeping and listing -----------------------------------------------------------------------


def test_a_sweep_removes_what_nobody_wrote_down(office: Office) -> None:
    office.put("a.md", TEXT)
    identity = document_id(office.location("a.md"))
    office.server.add_document(office.store, TEXT, metadata={"groundwire_id": identity})
    theirs = office.server.add_document(office.store, "by hand", display_name="By hand")
    assert office.tell({"sweep": True}) == []
    assert [each.display_name for each in office.documents] == ["Water leak", "By hand"]
    assert set(wired().catalogue.named([theirs], deadline=Deadline.after(10))) == {theirs}
    assert office.cloud.messages(office.cloud.queue) == []


def test_what_a_function_has_no_time_for_is_another_message(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(45):
        office.server.add_document(office.theirs, "text", display_name=f"Document {number}")
    slow = OnePage(wired().stores)
    with_slow = wired()._replace(stores=slow)  # type: ignore[arg-type]
    monkeypatch.setattr("importer.handler.wired", lambda: with_slow)
    monkeypatch.setattr(
        "importer.handler.Deadline", SimpleNamespace(after=lambda left: Deadline.after(left, slow.clock))
    )
    messages: list[Any] = [{"list": office.theirs}]
    for rounds in (1, 2, 3):
        assert office.tell(*messages) == []
        messages = [json.loads(each["Body"]) for each in _taken(office)]
        assert bool(messages) is (rounds < 3)
    listing = office.listing(office.theirs)
    assert listing is not None
    assert (listing.cursor, listing.completed > 0) == (None, True)
    names = list(office.server.stores[office.theirs].documents)
    assert len(wired().catalogue.named(names, deadline=Deadline.after(10))) == 45


def test_a_sweep_goes_on_in_another_message(office: Office) -> None:
    for number in range(25):
        office.server.add_document(office.store, "text", display_name=f"Document {number}")
    # Less than what a sweep leaves for its last page.
    assert office.tell({"sweep": True}, milliseconds=30_000) == []
    (message,) = _taken(office)
    body = json.loads(message["Body"])
    assert (body["sweep"], bool(body["cursor"])) == (True, True)
    assert office.tell(body, milliseconds=30_000) == []
    assert _taken(office) == []


def test_a_store_that_is_not_configured_is_not_listed(office: Office) -> None:
    assert office.tell({"list": "fileSearchStores/other"}) == []
    assert office.server.requests == []


def test_a_place_that_gemini_forgot_is_the_beginning(office: Office) -> None:
    office.server.add_document(office.theirs, "text", display_name="One")
    wired().catalogue.listed(office.theirs, Listing(cursor="long ago", begun=time.time()))
    office.server.script = [On(f"GET /v1beta/{office.theirs}/documents", refusal(400, "INVALID_ARGUMENT"))]
    assert office.tell({"list": office.theirs}) == []
    listing = office.listing(office.theirs)
    assert listing is not None
    assert listing.completed > 0


def _records(written: Written) -> list[Any]:
    """The log records and metrics among what was written."""
    return [json.loads(line) for line in written.text.splitlines() if line.startswith("{")]


def _taken(office: Office) -> list[Any]:
    """What the importer put on its own queue, taken from it."""
    messages = office.cloud.messages(office.cloud.queue)
    for message in messages:
        office.cloud.sqs.delete_message(QueueUrl=office.cloud.queue, ReceiptHandle=message["ReceiptHandle"])
    return messages


class OnePage:
    """Gemini's stores, whose every page takes all the time there is."""

    def __init__(self, stores: FileSearchStores) -> None:
        self._stores = stores
        self.clock = HandClock()

    def page(self, store: str, cursor: str | None, *, deadline: Deadline) -> Any:
        answer = self._stores.page(store, cursor, deadline=deadline)
        self.clock.turn(1_000)
        return answer
