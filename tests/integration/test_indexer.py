"""The indexer's handler: what each message does to the index, the queues and its batch (X-1 to X-8)."""

from collections.abc import Iterator
from typing import Any

import pytest

from groundwire.deadline import Deadline
from groundwire.nodes import Node
from groundwire.pointers import Location
from indexer.handler import handler
from indexer.wiring import wired
from tests.captured import captured, object_event, sqs_batch
from tests.cloud import Cloud, lambda_context
from tests.contracts.misbehaving import Misbehaving, Reply, head_of
from tests.integration.driving import deliver, get, index, upload

CREATED = ["object_created", "object_created_versioned", "object_restore_completed"]
DELETED = ["object_deleted", "object_deleted_versioned", "object_deleted_by_lifecycle"]


def stored(cloud: Cloud, key: str) -> Node | None:
    """The node as it is in the table."""
    function = wired()
    location = Location(function.roots.by_name["kb"], key)
    return function.indexer._index.node(location)


def targets(cloud: Cloud, key: str) -> list[str]:
    node = stored(cloud, key)
    assert node is not None
    return [each.key for each in node.targets()]


def dependents(cloud: Cloud, key: str) -> list[str]:
    function: Any = wired()
    location = Location(function.roots.by_name["kb"], key)
    found, _ = function.indexer._index.dependents(location, deadline=Deadline.after(10), limit=100)
    return [each.location.key for each in found]


@pytest.mark.parametrize("name", CREATED)
def test_each_event_of_an_object_that_is_there_indexes_it(cloud: Cloud, name: str) -> None:
    cloud.put("a.md", "---\ntitle: A\nincludes: [b.md]\n---\nText.\n", "text/markdown")
    index(cloud, "a.md", name=name)
    node = stored(cloud, "a.md")
    assert node is not None
    assert (node.title, node.mime_type, node.verdict) == ("A", "text/markdown", "invalid")
    assert [each.code for each in node.findings] == ["target_missing"]
    assert targets(cloud, "a.md") == ["b.md"]
    assert cloud.messages(cloud.dead_letters) == []


@pytest.mark.parametrize("name", DELETED)
def test_each_event_of_an_object_that_is_gone_removes_it(cloud: Cloud, name: str) -> None:
    upload(cloud, {"a.md": "---\nincludes: [b.md]\n---\n"})
    cloud.delete("a.md")
    index(cloud, "a.md", name=name, sequencer="617F0837B476E463")
    node = stored(cloud, "a.md")
    assert node is not None
    assert not node.exists
    assert dependents(cloud, "b.md") == []
    assert get("/v1/documents", uri=cloud.uri("a.md")).status == 404


@pytest.mark.parametrize("name", [*CREATED, *DELETED])
def test_the_object_decides_whatever_the_event_says(cloud: Cloud, name: str) -> None:
    cloud.put("there.md", "---\ntitle: There\n---\n")
    index(cloud, "there.md", "gone.md", name=name)
    node = stored(cloud, "there.md")
    assert node is not None
    assert node.title == "There"
    assert stored(cloud, "gone.md") is None


def test_an_overwritten_object_has_its_new_edges(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "---\nincludes: [b.md, c.md]\n---\n"})
    cloud.put("a.md", "---\nincludes: [c.md, d.md]\n---\n")
    index(cloud, "a.md", sequencer="617F08299329D18A")
    assert targets(cloud, "a.md") == ["c.md", "d.md"]
    assert [dependents(cloud, key) for key in ("b.md", "c.md", "d.md")] == [[], ["a.md"], ["a.md"]]


def test_a_document_that_returns_is_indexed_again(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "one"})
    cloud.delete("a.md")
    index(cloud, "a.md", name="object_deleted", sequencer="617F08299329D18A")
    cloud.put("a.md", "---\ntitle: Back\n---\n")
    index(cloud, "a.md", sequencer="617F08299329D18B")
    node = stored(cloud, "a.md")
    assert node is not None
    assert node.title == "Back"


def test_a_late_event_changes_nothing(cloud: Cloud) -> None:
    cloud.put("a.md", "---\ntitle: A\n---\n")
    index(cloud, "a.md", sequencer="617F08299329D18A00")
    before = stored(cloud, "a.md")
    index(cloud, "a.md", sequencer="617F08299329D189")
    assert stored(cloud, "a.md") == before


def test_the_same_event_twice_is_the_same_index(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "---\nincludes: [b.md]\n---\n"})
    index(cloud, "a.md", "a.md")
    assert (targets(cloud, "a.md"), dependents(cloud, "b.md")) == (["b.md"], ["a.md"])


@pytest.mark.parametrize(
    ("key", "content", "mime_type"),
    [
        ("folder/", "", "application/octet-stream"),
        (".hidden.md", "---\nincludes: [b.md]\n---\n", "text/markdown"),
        ("._a.md", "\x00\x05\x16\x07", "text/markdown"),
        ("scan.pdf", "---\nincludes: [b.md]\n---\n", "application/pdf"),
    ],
)
def test_every_object_is_a_node_if_only_without_edges(
    cloud: Cloud, key: str, content: str, mime_type: str
) -> None:
    cloud.put(key, content)
    index(cloud, key)
    node = stored(cloud, key)
    assert node is not None
    assert (node.mime_type, node.size_bytes, node.includes, node.verdict) == (
        mime_type,
        len(content),
        (),
        "valid",
    )


def test_only_the_head_of_a_large_object_counts(cloud: Cloud) -> None:
    cloud.put("a.md", "---\ntitle: A\n---\n" + "x" * 300_000)
    index(cloud, "a.md")
    node = stored(cloud, "a.md")
    assert node is not None
    assert (node.title, node.size_bytes, node.verdict) == ("A", 300_017, "valid")


# -- batches ------------------------------------------------------------------------------------


@pytest.fixture
def broken_store(cloud: Cloud) -> Iterator[Misbehaving]:
    """A store that is always busy, in the place of S3; the index and the queues are well."""
    server = Misbehaving()
    server.behaviour = Reply(503, "SlowDown")
    cloud.environment(
        AWS_ENDPOINT_URL=server.endpoint,
        AWS_ENDPOINT_URL_DYNAMODB=cloud.endpoint,
        AWS_ENDPOINT_URL_SQS=cloud.endpoint,
        AWS_ENDPOINT_URL_EVENTBRIDGE=cloud.endpoint,
    )
    yield server
    server.close()


def test_one_bad_record_never_fails_its_batch(cloud: Cloud, broken_store: Misbehaving) -> None:
    keys = [f"n/{number}.md" for number in range(10)]
    for key in keys[:4] + keys[5:]:
        broken_store.paths[f"/{cloud.bucket}/{key}"] = head_of(b"---\ntitle: Fine\n---\n")
    assert deliver(*(object_event(cloud.bucket, key) for key in keys)) == ["m4"]
    assert [key for key in keys if stored(cloud, key) is None] == [keys[4]]
    assert cloud.messages(cloud.dead_letters) == []


def test_a_record_that_failed_succeeds_when_it_comes_again(cloud: Cloud, broken_store: Misbehaving) -> None:
    event = object_event(cloud.bucket, "a.md")
    assert deliver(event) == ["m0"]
    broken_store.behaviour = head_of(b"---\ntitle: A\n---\n")
    assert deliver(event) == []
    node = stored(cloud, "a.md")
    assert node is not None
    assert node.title == "A"


def test_all_records_may_fail_without_an_error(cloud: Cloud, broken_store: Misbehaving) -> None:
    assert deliver(*(object_event(cloud.bucket, f"{n}.md") for n in range(2))) == ["m0", "m1"]


def test_an_object_that_may_not_be_read_is_a_finding_not_a_retry(
    cloud: Cloud, broken_store: Misbehaving
) -> None:
    """X-2: forbidden is never deleted."""
    broken_store.behaviour = Reply(403, "AccessDenied")
    index(cloud, "a.md")
    node = stored(cloud, "a.md")
    assert node is not None
    assert (node.exists, node.verdict) == (True, "invalid")
    assert [each.code for each in node.findings] == ["not_readable"]


def test_an_index_that_is_not_there_fails_every_record(cloud: Cloud) -> None:
    cloud.put("a.md", "text")
    cloud.environment(AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:1")
    assert deliver(object_event(cloud.bucket, "a.md")) == ["m0"]


@pytest.mark.parametrize("event", [{"Records": []}, {}])
def test_no_records_no_failures(cloud: Cloud, event: dict[str, Any]) -> None:
    assert handler(event, lambda_context()) == {"batchItemFailures": []}


def test_poison_comes_again_when_it_cannot_be_kept(cloud: Cloud) -> None:
    cloud.environment(GROUNDWIRE_DEAD_LETTER_QUEUE_URL=cloud.dead_letters + "-gone")
    assert deliver("{") == ["m0"]


# -- repairs ------------------------------------------------------------------------------------


REPAIR = "Groundwire Repair"


def repair(*documents: dict[str, Any]) -> dict[str, Any]:
    return {"detail-type": REPAIR, "documents": list(documents)}


def test_a_repair_makes_the_index_what_the_bucket_is(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "---\nincludes: [b.md]\n---\n", "b.md": "text", "same.md": "text"})
    same = stored(cloud, "same.md")
    cloud.put("a.md", "---\nincludes: [c.md]\n---\n")
    cloud.delete("b.md")
    cloud.put("new+%20.md", "---\ntitle: New\n---\n")
    keys = ("a.md", "b.md", "new+%20.md", "same.md", "never.md")
    assert deliver(repair(*({"root": "kb", "key": key} for key in keys))) == []
    assert targets(cloud, "a.md") == ["c.md"]
    gone, new = stored(cloud, "b.md"), stored(cloud, "new+%20.md")
    assert gone is not None
    assert not gone.exists
    assert new is not None
    assert new.title == "New"
    assert stored(cloud, "same.md") == same, "an unchanged node is not written again"
    assert stored(cloud, "never.md") is None


def test_a_repair_does_not_hide_a_later_event(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "one"})
    cloud.put("a.md", "---\ntitle: Two\n---\n")
    assert deliver(repair({"root": "kb", "key": "a.md"})) == []
    cloud.put("a.md", "---\ntitle: Three\n---\n")
    index(cloud, "a.md", sequencer="617F08299329D18A")
    node = stored(cloud, "a.md")
    assert node is not None
    assert node.title == "Three"


@pytest.mark.parametrize(
    "document",
    [
        {"root": "gone", "key": "a.md"},
        {"root": "kb", "key": ""},
        {"root": "kb", "key": "\ud800"},
        {"root": "kb", "key": "x" * 2_000},
        {"root": "kb", "key": "outside/a.md"},
    ],
)
def test_a_repair_of_what_no_root_holds_does_nothing(cloud: Cloud, document: dict[str, Any]) -> None:
    cloud.wire(cloud.root(prefix="docs") if document["key"].startswith("outside") else cloud.root())
    cloud.put("good.md", "text")
    assert deliver(repair(document), object_event(cloud.bucket, "elsewhere.md")) == []
    assert cloud.dynamodb.scan(TableName=cloud.table)["Items"] == []


def test_a_batch_is_what_sqs_sends() -> None:
    assert sqs_batch("x")["Records"][0].keys() == captured("sqs_batch")["Records"][0].keys()
