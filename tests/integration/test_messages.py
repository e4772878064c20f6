"""Which messages the indexer acts on: raw keys of its roots; others are kept or let go, never retried."""

import json
from typing import Any
from urllib.parse import quote_plus
from uuid import uuid4

import pytest

from tests.captured import captured, object_event
from tests.cloud import Cloud
from tests.integration.driving import deliver, get, index


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    shared_cloud.wire(shared_cloud.root(prefix="docs"))
    return shared_cloud


def taken(cloud: Cloud) -> list[dict[str, Any]]:
    """What was kept as a dead letter since the last look."""
    found = cloud.messages(cloud.dead_letters)
    for each in found:
        cloud.sqs.delete_message(QueueUrl=cloud.dead_letters, ReceiptHandle=each["ReceiptHandle"])
    return found


def nodes(cloud: Cloud) -> int:
    return cloud.dynamodb.scan(TableName=cloud.table, Select="COUNT")["Count"]


@pytest.mark.parametrize(
    "key",
    ["a b+c%20d.md", "100%.md", "a+b.md", "%2e%2e/x.md", "é/日本.md", "a//b.md", "/lead.md", "a&b=c;#?.md"],
)
def test_the_key_of_an_event_is_raw(kb: Cloud, key: str) -> None:
    key = f"docs/{key}"
    kb.put(key, f"---\ntitle: {json.dumps(key)}\n---\n")
    index(kb, key)
    found = get("/v1/documents", uri=kb.uri(key)).json
    assert (found["uri"], found["title"]) == (kb.uri(key), key)


REPAIR = "Groundwire Repair"
POISON = {
    "not JSON": "{",
    "empty object": {},
    "a list": [],
    "a number": 7,
    "nesting": "[" * 100_000,
    "nesting in an object": '{"source":' * 50_000,
    "a number of many digits": "9" * 10_000,
    "NaN": "NaN",
    "another service's event": {"source": "aws.ec2", "detail-type": "x", "detail": {}},
    "an S3 event without a key": {"source": "aws.s3", "detail-type": "Object Created", "detail": {}},
    "a repair of nothing": {"detail-type": REPAIR},
    "a repair of a number": {"detail-type": REPAIR, "documents": 7},
    "a repair without a key": {"detail-type": REPAIR, "documents": [{"root": "kb"}]},
    "a detail-type that is a list": {"detail-type": [REPAIR]},
}


@pytest.mark.parametrize("message", POISON.values(), ids=POISON.keys())
def test_poison_is_kept_with_a_reason_and_acknowledged(kb: Cloud, message: Any) -> None:
    body = message if isinstance(message, str) else json.dumps(message)
    good = f"docs/{uuid4()}.md"
    kb.put(good, "text")
    assert deliver(body, object_event(kb.bucket, good)) == []
    assert get("/v1/documents", uri=kb.uri(good)).status == 200, "its batch is indexed"
    (kept,) = taken(kb)
    assert kept["Body"] == body
    assert kept["MessageAttributes"]["reason"]["StringValue"]


def test_the_reason_says_nothing_of_the_content(kb: Cloud) -> None:
    event = object_event(kb.bucket, "docs/a.md")
    event["detail"]["object"] = {"secret-4711": "secret-4711", "key": ["secret-4711"]}
    assert deliver(event) == []
    (kept,) = taken(kb)
    assert "secret-4711" not in kept["MessageAttributes"]["reason"]["StringValue"]


ELSEWHERE = {
    "a foreign bucket": ("somebody-elses", "docs/a.md"),
    "outside the prefix": (None, "other/a.md"),
    "a sibling of the prefix": (None, "docs-old/a.md"),
    "the prefix itself": (None, "docs"),
    "an empty key": (None, ""),
    "a key no store can hold": (None, "docs/" + "x" * 2_000),
    "a key that is no text": (None, "docs/\ud800.md"),
}


@pytest.mark.parametrize(("bucket", "key"), ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_what_no_root_holds_is_acknowledged(kb: Cloud, bucket: str | None, key: str) -> None:
    before = nodes(kb)
    assert deliver(object_event(bucket or kb.bucket, key)) == []
    assert nodes(kb) == before
    assert taken(kb) == []


@pytest.mark.parametrize("by_way_of_sns", [False, True])
def test_a_direct_notification_is_decoded_once(kb: Cloud, by_way_of_sns: bool) -> None:
    key = f"docs/{uuid4()} a+b%2Fc.md"
    kb.put(key, "---\ntitle: Direct\n---\n")
    notification = json.loads(json.dumps(captured("s3_notification")))
    notification["Records"][0]["s3"]["bucket"]["name"] = kb.bucket
    notification["Records"][0]["s3"]["object"]["key"] = quote_plus(key, safe="/")
    message = {"Type": "Notification", "Message": json.dumps(notification)} if by_way_of_sns else notification
    assert deliver(json.dumps(message)) == []
    assert get("/v1/documents", uri=kb.uri(key)).json["title"] == "Direct"


def test_the_test_event_of_a_notification_is_acknowledged(kb: Cloud) -> None:
    before = nodes(kb)
    assert deliver(json.dumps(captured("s3_test_event"))) == []
    assert (nodes(kb), taken(kb)) == (before, [])
