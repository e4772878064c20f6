"""X-8: every fault of docs/faults.md, met by one record between two good ones, comes to what the table says.

And nothing is lost: once it is over, and the record came again or the bucket was looked through, the table is
what a fresh scan of the bucket makes.
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.limits import HEAD_BYTES
from groundwire.nodes import document_id
from groundwire.pointers import Location
from indexer.wiring import wired
from reindex.handler import handler as look_again
from reindex.handler import reconcile
from tests.captured import captured, object_event, sqs_batch
from tests.cloud import Cloud, lambda_context
from tests.contracts.misbehaving import Reply
from tests.integration.driving import deliver, heal, upload
from tests.integration.gateway import FIVE_GB, Fault, Gateway, refusal
from tests.integration.logs import Written, writing
from tests.integration.test_reindex import listed

Outcome = Literal["absorbed", "recorded", "counted", "retried", "dead-lettered"]
Left = Literal["old", "new", "gone", "not_readable", "huge"]
PAGE = Path(__file__).parents[2] / "docs" / "faults.md"

KEY, TARGET, PATH = "docs/bad.md", "docs/wanted.md", "bad.md"
OLD = "---\ntitle: Old\nincludes: [dropped.md, wanted.md]\n---\n"
NEW = f"---\ntitle: New\ncanonical_path: {PATH}\nincludes: [wanted.md, other.md]\n---\n"
SHARDS = 2
GOOD = [f"docs/good/{number}.md" for number in range(2)]
METRICS = {"retried": "RecordsFailed", "dead-lettered": "UnknownMessages", "counted": "ForeignObjects"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A fault, and what it must come to."""

    name: str
    outcome: Outcome
    left: Left
    """What is known of the document while the fault lasts."""
    fault: Fault | None = None
    key: str = KEY
    old: str | None = OLD
    """The document as it was indexed before; None: it is new."""
    new: str | None = NEW
    """The document as it is; None: it is gone."""
    message: Callable[[str], Any] | None = None
    """What is sent about the bucket of that name; None: the document's own event."""
    then: tuple[str, ...] = ()
    """Documents that come to be by what is done in the end."""
    lasts: bool = False
    """Whether this is how the store is, and not a fault that ends."""


def s3(name: str, outcome: Outcome, left: Left, answer: Any, call: str = "GET", **more: Any) -> Row:
    return Row(name=name, outcome=outcome, left=left, fault=Fault(call, answer), **more)


def on_head(name: str, outcome: Outcome, left: Left, answer: Reply) -> Row:
    """Only of an empty object, of which no range can be had, the head is asked for."""
    return s3(name, outcome, left, answer, "HEAD", new="")


def inbox(name: str, call: str, answer: Reply) -> Row:
    placed = "docs/placed/a.md"
    new = "---\ncanonical_path: placed/a.md\n---\n"
    return s3(name, "retried", "gone", answer, call, key="docs/inbox/a.md", old=None, new=new, then=(placed,))


def aws(name: str, outcome: Outcome, left: Left, call: str, answer: Any, times: int | None = None) -> Row:
    return Row(name=name, outcome=outcome, left=left, fault=Fault(call, answer, times))


def message(name: str, outcome: Outcome, made: Callable[[str], Any], **more: Any) -> Row:
    return Row(name=name, outcome=outcome, left="gone", old=None, new=None, message=made, **more)


def killed(name: str, left: Left, call: str, answer: Any) -> Row:
    return Row(name=name, outcome="retried", left=left, fault=Fault(call, answer, 1))


def unprocessed_keys(request: Any) -> Reply:
    answer = {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}
    return Reply(200, body=json.dumps(answer).encode())


def unprocessed_items(request: Any) -> Reply:
    return Reply(200, body=json.dumps({"UnprocessedItems": request["RequestItems"]}).encode())


def as_s3(code: str, text: str) -> bytes:
    return f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{text}</Message></Error>'.encode()


NO_KMS = "User: arn:aws:sts::111122223333:assumed-role/indexer is not authorized to perform: kms:Decrypt"
HUGE = Reply(
    206,
    body=b"---\ntitle: Huge\n---\n".ljust(HEAD_BYTES, b"x"),
    headers={"ETag": '"5"', "Content-Range": f"bytes 0-{HEAD_BYTES - 1}/{FIVE_GB}"},
)
ANOTHER = refusal(400, "ConditionalCheckFailedException", Item={"gen": {"S": "another writer's"}})
THROTTLED = refusal(400, "ProvisionedThroughputExceededException")
REFUSED = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException", "ErrorMessage": "no"}]}
POISON = '{"poison": "docs/bad.md"}'

ROWS = [
    s3("S3 answers 403 to GET", "recorded", "not_readable", Reply(403, "AccessDenied")),
    on_head("S3 answers 403 to HEAD", "recorded", "not_readable", Reply(403)),
    s3("S3 answers 404 to GET", "recorded", "gone", Reply(404, "NoSuchKey")),
    on_head("S3 answers 404 to HEAD", "recorded", "gone", Reply(404)),
    s3("S3 answers 503 to GET", "retried", "old", Reply(503, "SlowDown")),
    on_head("S3 answers 503 to HEAD", "retried", "old", Reply(503)),
    Row(
        name="S3 answers 503 to GET, once",
        outcome="absorbed",
        left="new",
        fault=Fault("GET", Reply(503, "SlowDown"), times=1),
    ),
    s3("S3 answers 500", "retried", "old", Reply(500, "InternalError")),
    s3("S3 does not answer in time", "retried", "old", "hang"),
    s3("S3 closes the connection", "retried", "old", "reset"),
    s3("S3 breaks off its answer", "retried", "old", "cut"),
    s3("S3 takes the credentials for expired", "retried", "old", Reply(400, "ExpiredToken")),
    s3(
        "the storage root names the wrong region",
        "retried",
        "old",
        Reply(301, "PermanentRedirect", headers={"x-amz-bucket-region": "us-east-1"}),
    ),
    s3("KMS denies the key", "recorded", "not_readable", Reply(403, body=as_s3("AccessDenied", NO_KMS))),
    s3(
        "KMS denies the key, under its own name",
        "recorded",
        "not_readable",
        Reply(403, "KMS.AccessDeniedException"),
    ),
    s3("the KMS key is disabled", "retried", "old", Reply(400, "KMS.DisabledException")),
    s3("the object is archived", "retried", "old", Reply(403, "InvalidObjectState")),
    s3("an `.md` of 5 GB", "recorded", "huge", HUGE, lasts=True),
    s3("an `.md` of 5 GB in a store that knows no ranges", "recorded", "huge", "endless", lasts=True),
    inbox("S3 denies the copy out of the inbox", "PUT", Reply(403, "AccessDenied")),
    inbox("S3 answers 503 to the copy out of the inbox", "PUT", Reply(503, "SlowDown")),
    inbox("S3 answers 503 to the removal from the inbox", "DELETE", Reply(503, "SlowDown")),
    aws("DynamoDB throttles GetItem", "retried", "old", "GetItem", THROTTLED),
    aws("DynamoDB throttles Query", "retried", "old", "Query", THROTTLED),
    aws("DynamoDB throttles PutItem", "retried", "old", "PutItem", THROTTLED),
    aws("DynamoDB throttles PutItem, once", "absorbed", "new", "PutItem", THROTTLED, 1),
    aws("BatchGetItem leaves keys unprocessed", "retried", "old", "BatchGetItem", unprocessed_keys),
    aws("BatchGetItem leaves keys unprocessed, once", "absorbed", "new", "BatchGetItem", unprocessed_keys, 1),
    aws("BatchWriteItem leaves items unprocessed", "retried", "old", "BatchWriteItem", unprocessed_items),
    aws(
        "BatchWriteItem leaves items unprocessed, once",
        "absorbed",
        "new",
        "BatchWriteItem",
        unprocessed_items,
        1,
    ),
    aws("another writer was first", "absorbed", "new", "PutItem", ANOTHER, 1),
    aws("other writers are always first", "retried", "old", "PutItem", ANOTHER),
    aws("another writer has put a pointer back", "absorbed", "new", "DeleteItem", ANOTHER),
    aws("DynamoDB answers 500", "retried", "old", "PutItem", refusal(500, "InternalServerError")),
    aws("DynamoDB does not answer in time", "retried", "old", "GetItem", "hang"),
    aws("DynamoDB denies access", "retried", "old", "PutItem", refusal(400, "AccessDeniedException")),
    Row(
        name="SQS throttles what asks for healing",
        outcome="retried",
        left="new",
        fault=Fault("SendMessage", refusal(400, "RequestThrottled")),
        old=None,
    ),
    Row(
        name="SQS does not answer in time",
        outcome="retried",
        left="new",
        fault=Fault("SendMessage", "hang"),
        old=None,
    ),
    aws("EventBridge answers 500", "retried", "new", "PutEvents", refusal(500, "InternalException")),
    aws(
        "EventBridge refuses the event",
        "retried",
        "new",
        "PutEvents",
        Reply(200, body=json.dumps(REFUSED).encode()),
    ),
    aws("EventBridge does not answer in time", "retried", "new", "PutEvents", "hang"),
    message("a message that is not JSON", "dead-lettered", lambda _: "{"),
    message("a message of an unknown shape", "dead-lettered", lambda _: {"what": "is this"}),
    message("an S3 event without a key", "dead-lettered", lambda _: {"source": "aws.s3", "detail": {}}),
    message(
        "a message nobody knows, and no dead-letter queue to keep it in",
        "retried",
        lambda _: POISON,
        fault=Fault("SendMessage", refusal(500, "InternalFailure")),
    ),
    message("an `s3:TestEvent`", "counted", lambda _: captured("s3_test_event")),
    message("a message whose `Records` are empty", "counted", lambda _: {"Records": []}),
    message("an event of an unknown bucket", "counted", lambda _: object_event("somebody-elses", KEY)),
    message(
        "an event of a key outside every storage root",
        "counted",
        lambda bucket: object_event(bucket, "elsewhere/bad.md"),
    ),
    Row(name="an event of an object that is gone", outcome="recorded", left="gone", new=None),
    killed("the function is killed before it writes the node", "old", "PutItem", "hang"),
    killed("the function is killed when it has written the node", "new", "PutItem", "pass on, then hang"),
    killed("the function is killed while it tells the event bus", "new", "PutEvents", "pass on, then hang"),
]

KILLED = [row for row in ROWS if row.name.startswith("the function is killed")]
ALIVE = [row for row in ROWS if row not in KILLED]


def named(row: Row) -> str:
    return row.name


@pytest.fixture
def gateway(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """Between the functions and the cloud; nobody pauses before trying again. Timeouts are the real ones."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.0)
    monkeypatch.setattr("groundwire.adapters.dynamo_errors.random", lambda: 0.0)
    gateway = Gateway(cloud.endpoint)
    cloud.wire(cloud.root(prefix="docs"))
    cloud.environment(GROUNDWIRE_REVERSE_SHARDS=str(SHARDS))  # each is a call whenever somebody is healed
    yield gateway
    gateway.close()


@pytest.fixture
def written() -> Iterator[Written]:
    with writing() as written:
        yield written


@pytest.mark.parametrize("row", ALIVE, ids=named)
def test_each_fault_comes_to_what_the_table_says(
    cloud: Cloud, gateway: Gateway, written: Written, row: Row
) -> None:
    batch = prepared(cloud, row)
    cloud.environment(AWS_ENDPOINT_URL=gateway.endpoint)
    written.clear()
    if row.fault:
        gateway.begin(row.fault, *markers(row))
    failed = deliver(*batch)

    assert failed == (["m1"] if row.outcome == "retried" else [])
    assert bool(gateway.met) == (row.fault is not None), "the fault was met"
    assert [key for key in GOOD if title(cloud, key) != "Good"] == [], "its batch is indexed"
    assert left(cloud, row.key) == row.left
    dead = cloud.messages(cloud.dead_letters)
    check_dead_letters(dead, batch[1] if row.outcome == "dead-lettered" else None)
    if metric := METRICS.get(row.outcome):
        assert f'"{metric}":[1.0]' in written.text.replace(" ", "")
    if row.outcome == "retried":
        assert '"will be retried"' in written.text or '"unexpected error"' in written.text
    if row.left == "huge":
        assert gateway.sent < FIVE_GB // 50, "what sockets hold, and not the rest of 5 GB"

    if not row.lasts:
        gateway.end()
    mend(cloud, row, batch[1])
    assert said(cloud, cloud.table) == fresh_scan(cloud)


@pytest.mark.parametrize("row", KILLED, ids=named)
def test_a_function_that_is_killed_leaves_nothing_that_its_batch_does_not_mend(
    cloud: Cloud, gateway: Gateway, row: Row
) -> None:
    batch = prepared(cloud, row)
    cloud.environment(AWS_ENDPOINT_URL=gateway.endpoint)
    assert row.fault is not None
    gateway.begin(row.fault, *markers(row))
    with subprocess.Popen(
        [sys.executable, "-c", FUNCTION], stdin=subprocess.PIPE, cwd=PAGE.parents[1]
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(sqs_batch(*batch)).encode())
        process.stdin.close()
        try:
            assert gateway.held.wait(60), "the function came to the call"
        finally:
            process.kill()
    gateway.end()
    assert left(cloud, row.key) == row.left
    assert [key for key in GOOD if title(cloud, key) == "Good"] == GOOD[:1], (
        "it died in the middle of its batch"
    )

    assert deliver(*batch) == []
    heal(cloud)
    assert said(cloud, cloud.table) == fresh_scan(cloud)


FUNCTION = """
import json, sys
from types import SimpleNamespace
from indexer.handler import handler
about = dict(function_name="f", memory_limit_in_mb=512, invoked_function_arn="arn", aws_request_id="1")
handler(json.load(sys.stdin), SimpleNamespace(**about))
"""


def test_the_page_lists_these_faults_with_these_outcomes() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE)
    told = {name: outcome for name, outcome in rows if name != "fault" and set(name) != {"-"}}
    assert told == {row.name: row.outcome for row in ROWS}
    assert len(ROWS) == len({row.name for row in ROWS})


# -- the world around a row -----------------------------------------------------------------------


def prepared(cloud: Cloud, row: Row) -> list[Any]:
    """The bucket as the row wants it; three messages, of which the second is the row's."""
    upload(cloud, {TARGET: "words", row.key: row.old} if row.old else {TARGET: "words"})
    for key in GOOD:
        cloud.put(key, "---\ntitle: Good\nincludes: [../wanted.md]\n---\n")
    if row.new is not None:
        cloud.put(row.key, row.new)
    elif row.old is not None:
        cloud.delete(row.key)
    own = row.message(cloud.bucket) if row.message else object_event(cloud.bucket, row.key, sequencer="F0")
    events: list[Any] = [object_event(cloud.bucket, key) for key in GOOD]
    return [events[0], own, events[1]]


def markers(row: Row) -> tuple[str, ...]:
    """What only the afflicted record's calls mention: keys, ids of documents, its claim."""
    root = wired().roots.by_name["kb"]
    ids = (document_id(Location(root, key)) for key in (row.key, "docs/other.md"))
    claim = hashlib.sha256(PATH.encode()).hexdigest()[:32]
    return row.key, *row.then, *ids, claim


def mend(cloud: Cloud, row: Row, message: Any) -> None:
    """What happens when the fault is over: the record comes again, or the night's run looks at everything."""
    if row.outcome == "retried":
        assert deliver(message, *(object_event(cloud.bucket, key) for key in row.then)) == []
        check_dead_letters(cloud.messages(cloud.dead_letters), message if row.message else None)
    elif row.outcome == "recorded":
        look_again(listed(cloud), lambda_context())
        reconcile({"root": "kb"}, lambda_context())
    heal(cloud)


def check_dead_letters(found: list[Any], message: Any) -> None:
    """The message is the one dead letter, as it came and with a reason; None: there is none."""
    body = message if isinstance(message, str) else json.dumps(message)
    assert [each["Body"] for each in found] == ([body] if message is not None else [])
    assert all(each["MessageAttributes"]["reason"]["StringValue"] for each in found)


def index(cloud: Cloud, table: str) -> Any:
    """A table as it is, whatever stands between it and the functions."""
    return DynamoEdgeIndex(cloud.dynamodb, table, wired().roots, SHARDS)


def title(cloud: Cloud, key: str) -> str | None:
    found = index(cloud, cloud.table).node(Location(wired().roots.by_name["kb"], key))
    return found.title if found else None


def left(cloud: Cloud, key: str) -> Left:
    """What the index says of the afflicted document."""
    found = index(cloud, cloud.table).node(Location(wired().roots.by_name["kb"], key))
    if found is None or not found.exists:
        return "gone"
    if found.size_bytes == FIVE_GB:
        return "huge"
    if [each.code for each in found.findings] == ["not_readable"]:
        return "not_readable"
    return "old" if found.title == "Old" else "new"


_OF_A_WRITE = {"gen", "edgeGen", "seq", "indexedAt"}


def said(cloud: Cloud, table: str) -> Any:
    """What a table says to readers: living nodes, but for when they were written, and what points to them.

    Pointers that no node confirms are nothing to a reader: a write that was broken off may leave some.
    """
    pages = cloud.dynamodb.get_paginator("scan").paginate(TableName=table)
    items = [item for page in pages for item in page["Items"]]
    living = {
        item["PK"]["S"].removeprefix("D#"): item
        for item in items
        if item["PK"]["S"].startswith("D#") and "version" in item
    }
    reader = index(cloud, table)
    confirmed = {
        (place, own) for own, item in living.items() for place in reader._pointers(reader._node(item))
    }
    nodes = {own: {name: item[name] for name in item.keys() - _OF_A_WRITE} for own, item in living.items()}
    return nodes, {(item["PK"]["S"], item["SK"]["S"]) for item in items} & confirmed


def fresh_scan(cloud: Cloud) -> Any:
    """What an empty table says when the bucket was looked through."""
    table = cloud.new_table(f"{cloud.table}-fresh")
    cloud.environment(GROUNDWIRE_TABLE=table)
    look_again(listed(cloud), lambda_context())
    heal(cloud)
    return said(cloud, table)
