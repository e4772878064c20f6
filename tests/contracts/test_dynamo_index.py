"""What only DynamoDB can do to the index: leave work undone, throttle, crash, keep what expired."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from groundwire.adapters.dynamodb import DynamoEdgeIndex
from groundwire.deadline import Deadline
from groundwire.errors import Throttled, Unavailable
from groundwire.findings import finding
from groundwire.includes import Include
from groundwire.limits import FINDINGS_STORED, HEAD_BYTES, INCLUDES_PER_DOCUMENT, KEY_BYTES
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.roots import StorageRoot, StorageRoots
from groundwire.verdicts import Surroundings, judged
from tests.cloud import Cloud
from tests.contracts.test_edge_index import (
    ROOTS,
    SOON,
    at,
    dynamo,
    including,
    node,
    tombstone,
    written,
)
from tests.fakes import MemoryStore, indexer_over

ITEM_BYTES = 400 * 1024
Call = Callable[..., Any]


class Between:
    """A client whose calls go through what a test puts in their way."""

    def __init__(self, client: Any, **ways: Callable[[Call], Call]) -> None:
        self._client = client
        self._ways = ways

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        return self._ways[name](call) if name in self._ways else call


def through(cloud: Cloud, **ways: Callable[[Call], Call]) -> DynamoEdgeIndex:
    """An index on the cloud's table, each call of which goes through what is given for it."""
    client: Any = Between(cloud.dynamodb, **ways)
    return DynamoEdgeIndex(client, cloud.table, ROOTS, 4)


def failing(error: Exception, times: int = 1_000) -> Callable[[Call], Call]:
    """Fails that often, then works."""
    left = [times]

    def way(call: Call) -> Call:
        def made(**arguments: Any) -> Any:
            if left[0] > 0:
                left[0] -= 1
                raise error
            return call(**arguments)

        return made

    return way


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "Operation")


def crash(call: Call) -> Call:
    def made(**arguments: Any) -> Any:
        raise KeyboardInterrupt

    return made


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-off waits a random part of its pause: none of it, here."""
    monkeypatch.setattr("groundwire.adapters.dynamo_errors.random", lambda: 0.0)


def rows(cloud: Cloud, kind: str) -> list[dict[str, Any]]:
    """The table's items whose partition key begins so, as they are stored."""
    found = cloud.dynamodb.scan(TableName=cloud.table, ConsistentRead=True)["Items"]
    return [item for item in found if item["PK"]["S"].startswith(kind)]


# -- what is left undone ------------------------------------------------------------------------


def test_unprocessed_keys_are_asked_for_again(cloud: Cloud) -> None:
    nodes = [node(f"n/{number}.md") for number in range(20)]
    written(dynamo(cloud), *nodes)
    asked: list[int] = []

    def half(call: Call) -> Call:
        def made(RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
            request = RequestItems[cloud.table]
            keys = request["Keys"]
            asked.append(len(keys))
            now, later = keys[: (len(keys) + 1) // 2], keys[(len(keys) + 1) // 2 :]
            reply = call(RequestItems={cloud.table: request | {"Keys": now}})
            left = {cloud.table: request | {"Keys": later}} if later else {}
            return reply | {"UnprocessedKeys": left}

        return made

    found = through(cloud, batch_get_item=half).nodes((each.location for each in nodes), deadline=SOON)
    assert found == {each.location.uri: each for each in nodes}
    assert asked == [20, 10, 5, 2, 1]


def nothing_processed(call: Call) -> Call:
    def made(RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
        return {"Responses": {}, "UnprocessedKeys": RequestItems, "UnprocessedItems": RequestItems}

    return made


def test_keys_that_stay_unprocessed_are_unknown_never_missing(cloud: Cloud) -> None:
    written(dynamo(cloud), node("a.md"))
    with pytest.raises(Throttled) as caught:
        through(cloud, batch_get_item=nothing_processed).nodes([at("a.md"), at("b.md")], deadline=SOON)
    assert caught.value.code == "throttled"


def test_unprocessed_keys_are_not_waited_for_after_the_deadline(cloud: Cloud) -> None:
    now = [0.0]

    def slow(call: Call) -> Call:
        def made(**arguments: Any) -> Any:
            now[0] += 1.0
            return nothing_processed(call)(**arguments)

        return made

    with pytest.raises(Throttled):
        through(cloud, batch_get_item=slow).nodes([at("a.md")], deadline=Deadline(2.5, lambda: now[0]))
    assert now[0] == 3.0


def test_unprocessed_items_are_written_again(cloud: Cloud) -> None:
    sizes: list[int] = []

    def half(call: Call) -> Call:
        def made(RequestItems: Any) -> Any:  # noqa: N803 - boto3's name
            requests = RequestItems[cloud.table]
            sizes.append(len(requests))
            now, later = requests[: (len(requests) + 1) // 2], requests[(len(requests) + 1) // 2 :]
            call(RequestItems={cloud.table: now})
            return {"UnprocessedItems": {cloud.table: later} if later else {}}

        return made

    targets = [f"t/{number}.md" for number in range(30)]
    written(through(cloud, batch_write_item=half), node("a.md", *targets))
    assert all(including(dynamo(cloud), target) == ["a.md"] for target in targets)
    assert max(sizes) <= 25, "BatchWriteItem takes no more; moto would"


def test_items_that_stay_unprocessed_leave_the_node_as_it_was(cloud: Cloud) -> None:
    first = node("a.md", "b.md")
    written(dynamo(cloud), first)
    with pytest.raises(Throttled):
        through(cloud, batch_write_item=nothing_processed).replace(node("a.md", "c.md"), first)
    assert dynamo(cloud).node(at("a.md")) == first


def test_a_query_follows_its_pages(cloud: Cloud) -> None:
    keys = [f"p/{number}.md" for number in range(9)]
    written(dynamo(cloud), *(node(key, "t.md") for key in keys))

    def paged(call: Call) -> Call:
        return lambda **arguments: call(**arguments, Limit=2)

    assert including(through(cloud, query=paged), "t.md") == keys


def test_a_query_ends_with_the_deadline(cloud: Cloud) -> None:
    with pytest.raises(Unavailable):
        dynamo(cloud).dependents(at("t.md"), deadline=Deadline(0.0), limit=1)


# -- errors -------------------------------------------------------------------------------------

THROTTLING = ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"]
DOWN = ["InternalServerError", "TransactionConflictException", "ServiceUnavailable"]
READS = ["batch_get_item", "get_item", "query"]
WRITES = ["batch_write_item", "put_item", "delete_item"]


def every_way(index: DynamoEdgeIndex, call: str) -> None:
    """Does what needs this call of the client."""
    if call == "batch_get_item":
        index.nodes([at("a.md")], deadline=SOON)
    elif call == "get_item":
        index.node(at("a.md"))
    elif call == "query":
        index.dependents(at("a.md"), deadline=SOON, limit=1)
    else:
        written(index, node("a.md", "b.md"), node("a.md", "c.md"))


@pytest.mark.parametrize("call", READS + WRITES)
def test_each_error_of_each_call_has_its_class(cloud: Cloud, call: str) -> None:
    for code in THROTTLING:
        with pytest.raises(Throttled):
            every_way(through(cloud, **{call: failing(refused(code))}), call)
    for code in DOWN:
        with pytest.raises(Unavailable) as caught:
            every_way(through(cloud, **{call: failing(refused(code))}), call)
        assert caught.value.code == "unavailable"
    with pytest.raises(Unavailable):
        every_way(through(cloud, **{call: failing(ReadTimeoutError(endpoint_url="x"))}), call)
    # What no retry can mend is no dependency's fault.
    with pytest.raises(ClientError):
        every_way(through(cloud, **{call: failing(refused("ValidationException"))}), call)


# -- crashes and races --------------------------------------------------------------------------


def test_a_crash_before_the_flip_leaves_edges_that_nobody_believes(cloud: Cloud) -> None:
    first = node("a.md", "b.md")
    written(dynamo(cloud), first)
    with pytest.raises(KeyboardInterrupt):
        through(cloud, put_item=crash).replace(node("a.md", "c.md"), first)
    assert len(rows(cloud, "R#")) == 2
    assert (including(dynamo(cloud), "b.md"), including(dynamo(cloud), "c.md")) == (["a.md"], [])


def test_a_crash_before_the_sweep_leaves_edges_that_nobody_believes(cloud: Cloud) -> None:
    first, second = node("a.md", "b.md"), node("a.md", "c.md")
    written(dynamo(cloud), first)
    with pytest.raises(KeyboardInterrupt):
        through(cloud, delete_item=crash).replace(second, first)
    assert len(rows(cloud, "R#")) == 2
    assert (including(dynamo(cloud), "b.md"), including(dynamo(cloud), "c.md")) == ([], ["a.md"])


def test_a_sweep_leaves_only_what_the_node_includes(cloud: Cloud) -> None:
    written(dynamo(cloud), node("a.md", "b.md", "c.md"), node("a.md", "c.md"))
    assert len(rows(cloud, "R#")) == 1
    written(dynamo(cloud), tombstone("a.md"))
    assert rows(cloud, "R#") == []


def test_a_sweep_spares_the_edge_of_a_newer_writer(cloud: Cloud) -> None:
    """Another writer includes the target again, between this one's flip and its sweep."""
    first, second, third = node("a.md", "b.md"), node("a.md"), node("a.md", "b.md")
    written(dynamo(cloud), first)

    def overtaken(call: Call) -> Call:
        def made(**arguments: Any) -> Any:
            assert dynamo(cloud).replace(third, second)
            return call(**arguments)

        return made

    assert through(cloud, delete_item=overtaken).replace(second, first)
    assert dynamo(cloud).node(at("a.md")) == third
    assert including(dynamo(cloud), "b.md") == ["a.md"]


def test_a_lost_race_between_reading_and_flipping_changes_nothing(cloud: Cloud) -> None:
    first, fast, slow = node("a.md", "b.md"), node("a.md", "c.md"), node("a.md", "d.md")
    written(dynamo(cloud), first)

    def overtaken(call: Call) -> Call:
        def made(**arguments: Any) -> Any:
            assert dynamo(cloud).replace(fast, first)
            return call(**arguments)

        return made

    assert not through(cloud, put_item=overtaken).replace(slow, first)
    assert dynamo(cloud).node(at("a.md")) == fast
    assert including(dynamo(cloud), "d.md") == []


@pytest.mark.parametrize("first", [None, node("a.md", "b.md")])
def test_a_put_whose_answer_was_lost_counts_as_done(cloud: Cloud, first: Node | None) -> None:
    """boto3 sends it again, and the condition then fails against our own write."""
    if first:
        written(dynamo(cloud), first)
    mine = node("a.md", "c.md")

    def twice(call: Call) -> Call:
        def made(**arguments: Any) -> Any:
            call(**arguments)
            return call(**arguments)

        return made

    assert through(cloud, put_item=twice).replace(mine, first)
    assert dynamo(cloud).node(at("a.md")) == mine
    assert len(rows(cloud, "R#")) == 1, "the sweep has run all the same"


def test_an_indexer_that_loses_a_race_looks_again(cloud: Cloud) -> None:
    store = MemoryStore({"a.md": b"---\nincludes: [b.md]\n---\n"})
    rival, raced = node("a.md", "z.md"), [False]

    def overtaken(call: Call) -> Call:
        def made(**arguments: Any) -> Any:
            if not raced[0]:
                raced[0] = True
                written(dynamo(cloud), rival)
            return call(**arguments)

        return made

    assert (
        indexer_over(store, through(cloud, put_item=overtaken)).object_changed(at("a.md"), "01") == "indexed"
    )
    stored = dynamo(cloud).node(at("a.md"))
    assert stored is not None
    assert [each.key for each in stored.targets()] == ["b.md"]
    assert (including(dynamo(cloud), "b.md"), including(dynamo(cloud), "z.md")) == (["a.md"], [])


# -- what expired -------------------------------------------------------------------------------


def expire(cloud: Cloud) -> None:
    """Thirty days pass, and DynamoDB has not removed the tombstones yet (it may take days)."""
    for item in rows(cloud, "D#"):
        if "expires" in item:
            cloud.dynamodb.put_item(TableName=cloud.table, Item=item | {"expires": {"N": "1"}})


def test_a_tombstone_carries_its_end_and_a_document_does_not(cloud: Cloud) -> None:
    written(dynamo(cloud), node("a.md"), tombstone("b.md"))
    ends = ["expires" in item for item in sorted(rows(cloud, "D#"), key=lambda item: item["key"]["S"])]
    assert ends == [False, True]


def test_an_expired_tombstone_is_nothing(cloud: Cloud) -> None:
    written(dynamo(cloud), tombstone("a.md"))
    expire(cloud)
    assert dynamo(cloud).node(at("a.md")) is None
    assert dynamo(cloud).nodes([at("a.md")], deadline=SOON) == {}


def test_a_document_returns_over_an_expired_tombstone(cloud: Cloud) -> None:
    written(dynamo(cloud), node("a.md", "b.md"), tombstone("a.md"))
    expire(cloud)
    back = node("a.md", "c.md")
    written(dynamo(cloud), back)
    assert dynamo(cloud).node(at("a.md")) == back
    assert all("expires" not in item for item in rows(cloud, "D#"))


def test_a_root_that_is_no_longer_configured_is_left_out(cloud: Cloud) -> None:
    written(dynamo(cloud), node("a.md", "b.md"))
    others = StorageRoots([StorageRoot("hr", "s3", "hr-kb")])
    index = DynamoEdgeIndex(cloud.dynamodb, cloud.table, others, 4)
    assert index.nodes([at("a.md")], deadline=SOON) == {}
    assert index.dependents(at("b.md"), deadline=SOON, limit=10) == ([], False)


def test_shards_may_grow_when_readers_know_first(cloud: Cloud) -> None:
    keys = [f"p/{number}.md" for number in range(12)]
    written(dynamo(cloud, shards=2), *(node(key, "t.md") for key in keys[:6]))
    written(dynamo(cloud, shards=8), *(node(key, "t.md") for key in keys[6:]))
    found, _ = dynamo(cloud, shards=8).dependents(at("t.md"), deadline=SOON, limit=100)
    assert sorted(each.location.key for each in found) == sorted(keys)


# -- what is large ------------------------------------------------------------------------------


def size_of(item: dict[str, Any]) -> int:
    """An item's size as DynamoDB counts it: names and values in UTF-8."""
    return sum(
        len(name.encode()) + len(str(next(iter(value.values()))).encode()) for name, value in item.items()
    )


def indexed(cloud: Cloud, block: str, key: str = "a.md") -> dict[str, Any]:
    """The stored item of a document with this frontmatter."""
    content = f"---\n{block}\n---\n".encode()
    assert len(content) <= HEAD_BYTES
    store = MemoryStore({key: content})
    location = Location(ROOTS.by_name["kb"], key)
    assert indexer_over(store, dynamo(cloud)).object_changed(location, "01") == "indexed"
    (stored,) = rows(cloud, "D#")
    read = dynamo(cloud).node(location)
    assert read is not None
    return stored


LARGE = {
    "many includes of long names": "includes:\n" + "\n".join(f"- {n:03}{'å' * 310}.md" for n in range(100)),
    "one long entry, named a hundred times": "includes:\n- &a '" + "x" * 60_000 + "'\n" + "- *a\n" * 99,
    "characters that JSON writes in six": 'includes:\n- &a "' + r"\a" * 30_000 + '"\n' + "- *a\n" * 99,
    "entries that are no text": "includes:\n- &a !x '" + "x" * 60_000 + "'\n" + "- *a\n" * 99,
    "a long title": "title: '" + "ä" * 30_000 + "'",
    "a long title that is also each include": "title: &a '"
    + "ä" * 30_000
    + "'\nincludes:\n"
    + "- *a\n" * 100,
    "thousands of findings": "\n".join(f"Include{'s' * (n % 2)}: {n}" for n in range(4_500)),
    "invisible characters": 'includes: ["' + '", "'.join(f"{n}" + r"\u200b" * 100 for n in range(99)) + '"]',
    "long keys twice": "\n".join(f"{'k' * 300}{n // 2}: 1" for n in range(200)),
    "a long canonical path": f"canonical_path: '{'./' * 30_000}x.md'",
    "a canonical path that is far too long": f"canonical_path: '{'x' * 60_000}'",
}


@pytest.mark.parametrize("block", LARGE.values(), ids=LARGE.keys())
def test_no_frontmatter_makes_a_node_too_large(cloud: Cloud, block: str) -> None:
    item = indexed(cloud, block, "k" * (KEY_BYTES - 3) + ".md")
    assert size_of(item) < ITEM_BYTES
    assert len(json.loads(item["includes"]["S"])) <= INCLUDES_PER_DOCUMENT
    assert len(json.loads(item["findings"]["S"])) <= FINDINGS_STORED


def test_all_findings_are_counted(cloud: Cloud) -> None:
    item = indexed(cloud, "includes:\n" + "- /x\n" * 90)
    assert int(item["findingCount"]["N"]) == 90
    assert len(json.loads(item["findings"]["S"])) == FINDINGS_STORED


def test_the_largest_node_there_can_be_is_stored(cloud: Cloud) -> None:
    name = "€" * (KEY_BYTES // 3)
    largest = Node(
        at(name),
        "v" * 100,
        version_id="v" * 1_024,
        mime_type="m" * 255,
        includes=tuple(Include(n, name[:256], n, 1, name) for n in range(INCLUDES_PER_DOCUMENT)),
        findings=tuple(
            replace(finding("include_url", "€" * 400, line=n), hint="€" * 100) for n in range(FINDINGS_STORED)
        ),
        generation="g",
    )
    written(dynamo(cloud), largest)
    (item,) = rows(cloud, "D#")
    assert size_of(item) < ITEM_BYTES
    assert dynamo(cloud).node(at(name)) == largest


@pytest.mark.parametrize("fate", ["moved", "other form"])
def test_the_largest_judgement_there_can_be_is_stored(cloud: Cloud, fate: str) -> None:
    """A hundred targets of the longest names, each of them moved, or stored in another Unicode form."""
    raw = "\U0001f600" * 160  # a hundred of these fill the frontmatter
    keys = [f"{n:03}\u00e9" + "\U0001f600" * 254 for n in range(INCLUDES_PER_DOCUMENT)]
    own = tuple(finding("include_url", "\u20ac" * 400, line=n) for n in range(FINDINGS_STORED))
    includes = tuple(Include(n, raw, n, 1, key) for n, key in enumerate(keys))
    bare = Node(at(keys[0][:-1]), "v", includes=includes, generation="g", edge_generation="g")
    forms = [at(key.replace("\u00e9", "e\u0301")) for key in keys]
    rivals = [at(key) for key in keys]
    around = (
        Surroundings({}, {at(key).uri: at(key[3:]) for key in keys}, rivals)
        if fate == "moved"
        else Surroundings({form.uri: node(form.key) for form in forms}, {}, rivals)
    )
    index = dynamo(cloud)
    for findings in ((), own):
        settled = replace(
            judged(replace(bare, findings=findings, canonical_path=keys[0]), around), generation="h"
        )
        written(index, settled)
        assert size_of(rows(cloud, "D#")[0]) < ITEM_BYTES
        assert index.node(settled.location) == settled
        assert judged(settled, around) == settled
