"""Messages that others put on the indexer's queue: nothing outside a root is read, written or believed.

Who may put any there is the business of infra (tests/infra/test_permissions.py); this is what is left then.
"""

import json
from typing import Any

import pytest

from groundwire.adapters.sqs import HEAL, LEARN, REPAIR
from tests.attacks.keep import INNER, OUTSIDE, PLANTED, Keep, Walls
from tests.captured import captured, object_event
from tests.integration.driving import deliver, get
from tests.integration.logs import writing
from tests.integration.test_access import role
from tests.integration.test_external_stores import DRIVE

pytestmark = pytest.mark.attacks

SEEN: dict[str, Any] = {
    "version": "1",
    "mime_type": "text/markdown",
    "title": PLANTED,
    "sequencer": "9" * 40,
    "verdict": "valid",
}
FOREIGN_KEYS = (*OUTSIDE, "", "/", "..", "../plan.md", "kb", "kb_", "\0", "x" * 2_000, "\ud800")


def by_each_way(root: str, key: Any) -> list[Any]:
    return [
        {"detail-type": REPAIR, "documents": [{"root": root, "key": key}]},
        {"detail-type": HEAL, "root": root, "key": key, "cursor": None},
        {"detail-type": LEARN, "root": root, "key": key, "seen": SEEN},
    ]


def snapshot(walls: Walls) -> list[Any]:
    items = walls.cloud.dynamodb.scan(TableName=walls.cloud.table)["Items"]
    return sorted(items, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))


@pytest.mark.parametrize("key", FOREIGN_KEYS, ids=lambda key: ascii(key)[:30])
def test_no_key_leads_out_of_the_root_that_is_named(walls: Walls, key: str) -> None:
    before = snapshot(walls)
    walls.watched.asked.clear()
    assert deliver(*by_each_way("kb", key), object_event(walls.cloud.bucket, key)) == []
    assert walls.watched.asked == []
    assert snapshot(walls) == before


@pytest.mark.parametrize("root", ["", "KB", "kb/inner", "__class__", "\0", "kb\n", "*", "s3"])
def test_a_root_that_there_is_not_is_nobodys(walls: Walls, root: str) -> None:
    before = snapshot(walls)
    walls.watched.asked.clear()
    assert (
        deliver(*by_each_way(root, "kb/here.md"), object_event(f"{walls.cloud.bucket}{root}x", "kb/here.md"))
        == []
    )
    assert walls.watched.asked == []
    assert snapshot(walls) == before


def test_what_is_repaired_by_the_outer_root_is_judged_by_the_inner_one(walls: Walls) -> None:
    assert deliver(*by_each_way("kb", INNER)) == []
    assert get("/v1/documents", role("app"), uri=walls.cloud.uri(INNER)).status == 404
    assert get("/v1/documents", role("reader"), uri=walls.cloud.uri(INNER)).json["title"] == PLANTED
    assert all(
        each["root"]["S"] == "inner" for each in snapshot(walls) if each.get("key", {}).get("S") == INNER
    )


def test_nothing_is_learned_of_a_store_that_tells_of_itself(walls: Walls) -> None:
    """S3 has events, so a sighting can only be made up."""
    before = snapshot(walls)
    assert deliver({"detail-type": LEARN, "root": "kb", "key": "kb/here.md", "seen": SEEN}) == []
    assert snapshot(walls) == before


BENT: dict[str, Any] = {
    "no node": {},
    "a number": {"version": 1, "sequencer": 2},
    "a list for a title": {"title": [PLANTED]},
    "a verdict of their own": {"verdict": "trusted"},
    "includes that are none": {"includes": [PLANTED]},
    "a size beyond numbers": {"size_bytes": 10**400},
    "a location of their own": {"location": {"root": {"name": "kb", "bucket": "x"}, "key": "x"}},
    "half a surrogate pair": {"title": "\ud800"},
    "a debt that there is not": {"owes": ["shell:x"]},
    "a field that there is not": {"readers": ["*"]},
}


@pytest.mark.parametrize("bent", BENT.values(), ids=BENT.keys())
def test_a_made_up_sighting_fails_nobody_else(keep: Keep, bent: dict[str, Any]) -> None:
    """Stored, kept as a dead letter or come again by itself: never in its batch's way, and never logged."""
    keep.store("a.md", b"Here.")
    keep.cloud.put("good.md", "Good.")
    lesson = {"detail-type": LEARN, "root": "labs", "key": "a.md", "seen": (SEEN if bent else {}) | bent}
    with writing() as written:
        assert deliver(lesson, object_event(keep.cloud.bucket, "good.md")) in ([], ["m0"])
    assert PLANTED not in written.text
    assert get("/v1/documents", uri=keep.cloud.uri("good.md")).status == 200
    known = get("/v1/documents", uri=f"gs://{keep.bucket}/a.md")
    assert known.status in (200, 404)
    if known.status == 200:
        assert known.json["uri"] == f"gs://{keep.bucket}/a.md"


def test_a_made_up_sighting_makes_nothing_readable(keep: Keep) -> None:
    """It may lie about a document, whose bytes then decide (B-9); about rights it has nothing to say."""
    include = {"index": 0, "raw": "x", "line": 1, "column": 1, "key": "hidden/plan.md"}
    outer = {
        "detail-type": LEARN,
        "root": "labs",
        "key": "a.md",
        "seen": SEEN | {"title": "A", "includes": [include]},
    }
    hidden = {"detail-type": LEARN, "root": "labs", "key": "hidden/plan.md", "seen": SEEN}
    drive = {"detail-type": LEARN, "root": "hr", "key": "HR/Secret/plan.md", "seen": SEEN}
    assert deliver(outer, hidden, drive) == []
    app = role("app")
    for uri in (f"gs://{keep.bucket}/hidden/plan.md", f"sharepoint://{DRIVE}/HR/Secret/plan.md"):
        assert get("/v1/documents", app, uri=uri).status == 404
        assert get("/v1/documents", role("reader"), uri=uri).status == 200
    assert PLANTED not in get("/v1/graph", app, uri=f"gs://{keep.bucket}/a.md").body


CURSORS = ["x", ":", "0", "-1:a", "0:../x", "9" * 400 + ":", "0:" + "a" * 3_000, "0:\0", "1:a\n", 7, ["0:"]]


@pytest.mark.parametrize("cursor", CURSORS, ids=lambda cursor: ascii(cursor)[:30])
def test_a_place_that_nobody_stopped_at_is_poison_and_not_tried_again(walls: Walls, cursor: Any) -> None:
    """X-8: it is kept for an operator, since it will never mean anything."""
    message = {"detail-type": HEAL, "root": "kb", "key": "kb/here.md", "cursor": cursor}
    assert deliver(message) == []
    kept = walls.cloud.messages(walls.cloud.dead_letters)
    for each in kept:
        walls.cloud.sqs.delete_message(QueueUrl=walls.cloud.dead_letters, ReceiptHandle=each["ReceiptHandle"])
    assert [json.loads(each["Body"])["cursor"] for each in kept] == [cursor]


def test_a_message_of_the_largest_size_is_worked_off_or_kept(walls: Walls) -> None:
    many = [{"root": "kb", "key": f"other/{n}.md"} for n in range(10_000)]
    large = {
        "detail-type": LEARN,
        "root": "kb",
        "key": "kb/here.md",
        "seen": SEEN | {"title": PLANTED * 40_000},
    }
    notification = captured("s3_notification")
    notification["Records"] *= 500
    walls.watched.asked.clear()
    with writing() as written:
        assert deliver({"detail-type": REPAIR, "documents": many}, large, notification) == []
    assert walls.watched.asked == []
    assert max(map(len, written.text.split("\n"))) < 2_000


def test_a_notification_of_a_foreign_bucket_is_not_decoded_into_ours(walls: Walls) -> None:
    notification = captured("s3_notification")
    entity = notification["Records"][0]["s3"]
    entity["bucket"]["name"] = walls.cloud.bucket
    walls.watched.asked.clear()
    for key in ("kb%2F..%2Fplan.md", "..%2Fplan.md", "kb_secret%2Fplan.md", "%6b%62_secret/plan.md"):
        entity["object"]["key"] = key
        assert deliver(notification) == []
    walls.check()
