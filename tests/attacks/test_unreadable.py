"""Who is no reader of a document learns nothing of it (Z-1): not that it is there, nor where, nor its name.

Each way of naming it is asked twice, once with the document there and once without; the answers are the same.
"""

from collections.abc import Callable
from typing import Any

import pytest

from grounding.wiring import wired
from groundwire.adapters.sqs import HEAL, LEARN, REPAIR
from groundwire.deadline import Deadline
from groundwire.includes import Include
from groundwire.nodes import Node, document_id
from groundwire.pointers import Location
from tests.attacks.keep import INNER, PLANTED, SECRET_FOLDER, Keep, Walls
from tests.cloud import Cloud
from tests.integration.driving import Answer, deliver, get, index, post, upload
from tests.integration.logs import writing
from tests.integration.test_access import READER, role, without_times
from tests.integration.test_external_stores import DRIVE, STORE

pytestmark = pytest.mark.attacks

HIDDEN = "hidden/plan.md"
DOCUMENT = f"---\ntitle: {PLANTED}\n---\n{PLANTED}"
APP, INSIDER = role("app"), role("reader")


def ground(*sources: Any, authorizer: Any = APP) -> Answer:
    answer = post("/v1/ground", {"sources": list(sources)}, authorizer)
    assert answer.status == 200, answer.body
    return answer


def hidden_id() -> str:
    return document_id(Location(wired().roots.by_name["hidden"], HIDDEN))


# -- names that others gave it ------------------------------------------------------------------


def by_groundwire_id(keep: Keep) -> Any:
    return {"customMetadata": {"groundwire_id": hidden_id()}}


def by_title_and_pointer(keep: Keep) -> Any:
    pointer = {"source_type": "s3", "s3_bucket": keep.cloud.bucket, "s3_key": HIDDEN}
    return keep.catalogued(pointer, title="Plan")


def by_title_and_id(keep: Keep) -> Any:
    return keep.catalogued({"groundwire_id": hidden_id()}, title="Plan")


def by_resource_name(keep: Keep) -> Any:
    return keep.catalogued({"source_type": "s3", "s3_bucket": keep.cloud.bucket, "s3_key": HIDDEN})


def by_title_in_cloud_storage(keep: Keep) -> Any:
    return keep.catalogued(
        {"source_type": "gcs", "gcs_bucket": keep.bucket, "gcs_object": HIDDEN}, title="Plan"
    )


@pytest.mark.parametrize(
    "source",
    [by_groundwire_id, by_title_and_pointer, by_title_and_id, by_resource_name, by_title_in_cloud_storage],
)
def test_what_is_looked_up_is_as_if_nothing_had_this_name(keep: Keep, source: Callable[[Keep], Any]) -> None:
    """File Search metadata is written by authors, and ids can be computed: neither says where anything is."""
    upload(keep.cloud, {HIDDEN: DOCUMENT})
    keep.store(HIDDEN, DOCUMENT.encode())
    named = source(keep)
    # First, since the store is listed for it: that takes its time, and may take too long.
    found = (ground(named, authorizer=INSIDER).json["allDocumentsForAttachment"] for _ in range(5))
    assert any(found), "the name is a good one"
    with writing() as written:
        forbidden = ground(named)
    assert '"forbidden"' in written.text, "the audit record tells them apart"
    assert HIDDEN in written.text
    nobodys: dict[str, Any] = {"title": "Nobody's", "fileSearchStore": STORE}
    if "customMetadata" in named:
        nobodys = {"customMetadata": {"groundwire_id": "a" * 26}}
    elif "documentName" in named:
        nobodys = {"documentName": f"{STORE}/documents/nobodys"}
    assert without_times(forbidden) == without_times(ground(nobodys))
    assert HIDDEN not in forbidden.body
    assert PLANTED not in forbidden.body


def test_a_poisoned_catalogue_leads_nobody_past_a_roots_readers(keep: Keep) -> None:
    """X-10: whoever may write into the store may name any document; what is served is the caller's right."""
    upload(keep.cloud, {"a.md": "Here.", HIDDEN: DOCUMENT})
    mine = {"source_type": "s3", "s3_bucket": keep.cloud.bucket, "s3_key": "a.md"}
    poisoned = keep.catalogued(mine | {"s3_key": HIDDEN, "display_name": PLANTED}, title="Handbook")
    answer = ground(poisoned, keep.catalogued(mine))
    assert [each["text"] for each in answer.json["allDocumentsForAttachment"]] == ["Here."]
    assert PLANTED not in answer.body


# -- names that the caller gives it -------------------------------------------------------------


def item(keep: Keep, path: str) -> dict[str, str]:
    (found,) = [
        each
        for each in keep.graph.drives[DRIVE].items.values()
        if keep.graph.drives[DRIVE].path(each)[-1:] == [path]
    ]
    return {"source_type": "sharepoint", "sharepoint_drive_id": DRIVE, "sharepoint_item_id": found.id}


@pytest.mark.parametrize("path", ["Plan.md", "plan.MD"])
@pytest.mark.parametrize("door", ["/v1/ground", "/v1/compose"])
def test_a_drives_hidden_folder_is_empty_in_any_letter_case(keep: Keep, path: str, door: str) -> None:
    """The server would answer with its own spelling, and an id with the path."""
    keep.graph.put(DRIVE, f"{SECRET_FOLDER}/Plan.md", DOCUMENT.encode())
    uri = f"sharepoint://{DRIVE}/{SECRET_FOLDER.lower()}/{path}"
    by_path = {
        "source_type": "sharepoint",
        "sharepoint_drive_id": DRIVE,
        "sharepoint_path": uri.split("/", 3)[3],
    }
    by_id = item(keep, "Plan.md")
    asked: list[tuple[Any, Any]] = [({"sources": [each]}, None) for each in (uri, by_path, by_id)]
    if door == "/v1/compose":
        asked = [({"uri": uri}, None), ({"pointer": by_path}, None), ({"pointer": by_id}, None)]
    there = [without_times(post(door, body, APP)) for body, _ in asked]
    assert PLANTED not in str(there)
    assert "Plan.md" not in str(there).replace(uri, "")
    keep.graph.drives.pop(DRIVE)
    keep.graph.put(DRIVE, "a.md", b"x")
    assert [without_times(post(door, body, APP)) for body, _ in asked] == there


@pytest.mark.parametrize("store", ["s3", "gcs", "sharepoint"])
def test_an_include_of_a_hidden_document_is_one_of_a_missing_document(keep: Keep, store: str) -> None:
    folder, root = ("hidden", "root.md") if store != "sharepoint" else (SECRET_FOLDER, "root.md")
    text = f"---\nincludes: [{folder}/plan.md, {folder}/PLAN.md]\n---\n"

    name = f"{folder}/plan.md"
    if store == "s3":
        upload(keep.cloud, {root: text})
        uri = keep.cloud.uri(root)
    elif store == "gcs":
        uri = keep.store(root, text.encode())
    else:
        keep.graph.put(DRIVE, root, text.encode())
        uri = f"sharepoint://{DRIVE}/{root}"
    missing = [without_times(each) for each in (post("/v1/compose", {"uri": uri}, APP), ground(uri))]
    upload(keep.cloud, {name: DOCUMENT})
    keep.store(name, DOCUMENT.encode())
    keep.graph.put(DRIVE, name, DOCUMENT.encode())
    there = [without_times(each) for each in (post("/v1/compose", {"uri": uri}, APP), ground(uri))]
    assert PLANTED not in str(there)
    assert there == missing
    assert PLANTED in post("/v1/compose", {"uri": uri}, INSIDER).body


# -- what the index says ------------------------------------------------------------------------


def about(cloud: Cloud) -> list[Answer]:
    """Everything the index is asked about a document that includes a hidden one."""
    uri, hidden = cloud.uri("a.md"), cloud.uri(HIDDEN)
    text = f"---\nincludes: [{HIDDEN}, hidden/deeper.md]\ncanonical_path: n.md\n---\n"
    return [
        get("/v1/documents", APP, uri=uri),
        get("/v1/graph", APP, uri=uri, depth="5"),
        get("/v1/graph", APP, uri=uri, direction="dependents"),
        get("/v1/dependents", APP, uri=uri, transitive="true"),
        get("/v1/documents", APP, uri=hidden),
        get("/v1/graph", APP, uri=hidden),
        get("/v1/dependents", APP, uri=hidden, transitive="true"),
        post("/v1/validate", {"path": "n.md", "root": "kb", "content": text}, APP),
        post("/v1/validate", {"path": HIDDEN, "root": "kb", "content": text}, APP),
        post("/v1/validate", {"path": "plan.md", "root": "hidden", "content": text}, APP),
    ]


FILES: dict[str, str | bytes] = {
    "a.md": f"---\nincludes: [{HIDDEN}]\n---\n",
    HIDDEN: f"---\ntitle: {PLANTED}\nincludes: [deeper.md, ../a.md]\n---\n{PLANTED}",
    "hidden/deeper.md": f"---\ntitle: {PLANTED}\n---\n",
}


def test_no_question_about_the_graph_leads_into_a_hidden_root(cloud: Cloud) -> None:
    hidden = cloud.root(name="hidden", prefix="hidden", readers=(READER,))
    cloud.wire(cloud.root(), hidden)
    upload(cloud, {"a.md": FILES["a.md"]})
    missing = [(each.status, each.body) for each in about(cloud)]
    upload(cloud, FILES)
    # what a search that may read both asks for, and anything else that names the outer root
    repair = {"detail-type": REPAIR, "documents": [{"root": "kb", "key": key} for key in FILES]}
    heals = [{"detail-type": HEAL, "root": "kb", "key": key} for key in FILES]
    assert deliver(repair, *heals) == []
    there = about(cloud)
    assert PLANTED not in str(there)
    assert [_undated(each.body) for each in there] == [_undated(body) for _, body in missing]
    insiders = get("/v1/documents", INSIDER, uri=cloud.uri(HIDDEN))
    assert insiders.json["title"] == PLANTED


def _undated(body: str) -> str:
    return body.partition('"indexedAt"')[0]


def test_what_was_indexed_before_a_root_was_hidden_is_hidden_too(cloud: Cloud) -> None:
    cloud.wire(cloud.root())
    upload(cloud, FILES)
    assert PLANTED in get("/v1/graph", APP, uri=cloud.uri("a.md")).body
    cloud.wire(cloud.root(), cloud.root(name="hidden", prefix="hidden", readers=(READER,)))
    answers = about(cloud)
    assert PLANTED not in str(answers)
    nodes = {each["uri"]: each for each in answers[1].json["nodes"]}
    assert nodes[cloud.uri(HIDDEN)]["exists"] is False
    assert cloud.uri("hidden/deeper.md") not in nodes
    assert answers[3].json["dependents"] == [] if answers[3].status == 200 else answers[3].status == 404
    index(cloud, HIDDEN, "hidden/deeper.md")
    assert PLANTED not in str(about(cloud))


def test_a_readers_search_teaches_the_index_nothing_for_others(cloud: Cloud) -> None:
    """B-9: what a search finds stale is indexed again, under the readers that count there."""
    cloud.wire(cloud.root(), cloud.root(name="hidden", prefix="hidden", readers=(READER,)))
    upload(cloud, FILES)
    for _ in range(3):
        answer = post("/v1/compose", {"uri": cloud.uri("a.md")}, INSIDER)
        assert PLANTED in answer.body
        assert deliver(*(each["Body"] for each in cloud.messages(cloud.queue))) == []
    assert PLANTED not in str(about(cloud))


def test_asking_for_what_one_may_not_read_makes_no_work_for_the_indexer(cloud: Cloud) -> None:
    cloud.wire(cloud.root(), cloud.root(name="hidden", prefix="hidden", readers=(READER,)))
    upload(cloud, {HIDDEN: FILES[HIDDEN]})
    for key in (HIDDEN, "hidden/nothing.md"):
        assert post("/v1/compose", {"uri": cloud.uri(key)}, APP).status == 404
        ground(cloud.uri(key))
    assert cloud.messages(cloud.queue) == []


def test_an_index_that_lies_has_nothing_read_that_is_outside(walls: Walls) -> None:
    """B-9: it is only followed ahead of the search, and not even that out of a root."""
    reader: Any = wired().index
    roots = wired().roots
    location = Location(roots.by_name["kb"], "kb/liar.md")
    walls.cloud.put("kb/liar.md", "No includes at all.")
    index(walls.cloud, "kb/liar.md")
    seen = reader.node(location)
    keys = ("plan.md", "kb_secret/plan.md", "kb/../plan.md", INNER, "other/plan.md", "/plan.md")
    lies = tuple(Include(n, key, 1, 1, key=key) for n, key in enumerate(keys))
    lying = Node(
        location,
        seen.version,
        mime_type="text/markdown",
        includes=lies,
        generation="lie",
        edge_generation="lie",
    )
    assert reader.replace(lying, seen)
    walls.watched.asked.clear()
    for _ in range(3):
        assert post("/v1/compose", {"uri": location.uri}, APP).json["included"] == []
    walls.check()
    nodes = reader.nodes([location], deadline=Deadline.after(5))
    assert nodes[location.uri].includes == lies, "the lie was there to be followed"


def test_a_drive_that_is_read_by_each_callers_right_is_in_no_index(keep: Keep) -> None:
    """Not by a message that says so, and not by what was learned before it was read like that."""
    uri = f"sharepoint://{DRIVE}/plan.md"
    seen = {
        "version": "1",
        "mime_type": "text/markdown",
        "title": PLANTED,
        "sequencer": "1",
        "verdict": "valid",
    }
    lesson = {"detail-type": LEARN, "root": "hr", "key": "plan.md", "seen": seen}
    assert deliver(lesson) == []
    assert PLANTED in get("/v1/documents", APP, uri=uri).body
    keep.wire(delegated=True)
    missing = get("/v1/documents", APP, uri=f"sharepoint://{DRIVE}/gone.md")
    for answer in (
        get("/v1/documents", APP, uri=uri),
        get("/v1/graph", APP, uri=uri),
        get("/v1/dependents", APP, uri=uri),
    ):
        assert without_times(answer) == without_times(missing)
    before = keep.cloud.dynamodb.scan(TableName=keep.cloud.table)["Items"]
    assert deliver({**lesson, "seen": seen | {"title": "Newer", "sequencer": "9"}}) == []
    assert keep.cloud.dynamodb.scan(TableName=keep.cloud.table)["Items"] == before
