"""Traversal (Z-2, I-4, I-8): paths.yaml by every door, and no document or object but the root's own."""

import json
from itertools import batched
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.attacks.keep import PLANTED, Walls, corpus
from tests.captured import object_event
from tests.integration.driving import Answer, deliver, get, heal, index, post
from tests.integration.test_uploads import ask

pytestmark = pytest.mark.attacks

PATHS = corpus("paths")
every_path = pytest.mark.parametrize("row", PATHS.values(), ids=PATHS.keys())
TOGETHER = [list(chunk) for chunk in batched(PATHS.values(), 24, strict=False)]
paths_together = pytest.mark.parametrize("rows", TOGETHER, ids=range(len(TOGETHER)))
"""Where nothing may come of any of them, and what came is seen at the end."""
REFUSED = {400, 404}


def path_of(row: dict[str, Any]) -> str:
    path: str = row["path"]
    return "x/" * 600 + "plan.md" if path == "LONG" else path


def written(text: str) -> str:
    """As a YAML scalar in double quotes, every character that is not plain as a code."""
    plain = "".join(c if " " <= c <= "~" and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return f'"{plain}"'


def nothing_came(answer: Answer) -> None:
    assert PLANTED not in answer.body


@every_path
def test_as_an_include(walls: Walls, row: dict[str, Any]) -> None:
    key = "kb/sops/attack.md"
    walls.cloud.put(key, f"---\nincludes: [{written(path_of(row))}]\n---\n")
    walls.watched.asked.clear()
    answer = post("/v1/compose", {"uri": walls.cloud.uri(key)})
    nothing_came(answer)
    walls.check()
    (skip,) = answer.json["skipped"]
    reason = "resolve_failed" if row["code"].startswith("include_") else "fetch_failed"
    assert (skip["reason"], skip["code"]) == (reason, row["code"])
    assert answer.json["included"] == []
    index(walls.cloud, key)
    for answer in (
        get("/v1/documents", uri=walls.cloud.uri(key)),
        get("/v1/graph", uri=walls.cloud.uri(key)),
        post("/v1/validate", {"path": "sops/attack.md", "root": "kb", "content": _including(row)}),
    ):
        assert answer.status == 200
        nothing_came(answer)
    walls.check()


def _including(row: dict[str, Any]) -> str:
    return f"---\nincludes: [{written(path_of(row))}]\n---\n"


@every_path
def test_as_a_canonical_path(walls: Walls, row: dict[str, Any]) -> None:
    """C-2: it is what includes resolve from, so it would lead them out."""
    key = "kb/sops/claim.md"
    walls.cloud.put(key, f"---\ncanonical_path: {written(path_of(row))}\nincludes: [plan.md]\n---\n")
    walls.watched.asked.clear()
    answer = post("/v1/compose", {"uri": walls.cloud.uri(key)})
    nothing_came(answer)
    walls.check()
    if row["code"].startswith("include_"):
        assert "canonical_path_invalid" in [each["code"] for each in answer.json["root"]["findings"]]
    for edge in answer.json["edges"]:
        assert edge["to"].startswith(walls.cloud.uri("kb/"))


@paths_together
def test_as_where_an_upload_is_placed(walls: Walls, rows: list[dict[str, Any]]) -> None:
    """C-4: the indexer may write, so what an inbox takes must not lead it anywhere."""
    before = walls.stored()
    keys = [f"kb/inbox/attack-{number}.md" for number in range(len(rows))]
    for key, row in zip(keys, rows, strict=True):
        walls.cloud.put(key, f"---\ncanonical_path: {written(path_of(row))}\n---\nOverwritten.")
    index(walls.cloud, *keys)
    assert walls.stored() == before
    walls.restore()


def test_as_where_an_upload_is_placed_in_a_root_nested_in_the_inboxs_own(walls: Walls) -> None:
    """Whoever may put something into the outer inbox is no writer of the inner root."""
    before = walls.stored()
    key = "kb/inbox/into-inner.md"
    walls.cloud.put(key, "---\ncanonical_path: inner/plan.md\n---\nOverwritten.")
    index(walls.cloud, key)
    assert walls.stored() == before
    found = get("/v1/documents", uri=walls.cloud.uri(key)).json
    assert [each["code"] for each in found["findings"]] == ["placement_refused"]
    walls.restore()


@every_path
@pytest.mark.parametrize("door", ["validate", "uploads"])
def test_as_a_path_to_validate_or_upload(walls: Walls, row: dict[str, Any], door: str) -> None:
    for path in (path_of(row), f"sops/{path_of(row)}"):
        body = {"path": path, "root": "kb"}
        answer = post("/v1/validate", {**body, "content": "x"}) if door == "validate" else ask(body)
        nothing_came(answer)
        if answer.status != 400:
            uri = answer.json["uri"]
            assert uri.startswith(walls.cloud.uri("kb/")), uri
            assert not uri.startswith(walls.cloud.uri("kb/inner/"))
            assert not {"..", "."} & set(uri.split("/"))
        if answer.status == 200 and door == "uploads":
            signed = urlsplit(answer.json["url"]).path
            assert unquote(signed) == "/" + uri.removeprefix("s3://"), "the store decodes once"
    walls.check()


@every_path
def test_as_a_uri_or_a_pointers_key(walls: Walls, row: dict[str, Any]) -> None:
    cloud = walls.cloud
    walls.watched.asked.clear()
    keys = (f"kb/sops/{path_of(row)}", path_of(row))
    pointers = [{"source_type": "s3", "s3_bucket": cloud.bucket, "s3_key": key} for key in keys]
    for answer in (
        *(post("/v1/compose", {"uri": cloud.uri(key)}) for key in keys),
        post("/v1/compose", {"pointer": pointers[0]}),
        *(get(f"/v1/{door}", uri=cloud.uri(keys[0])) for door in ("documents", "graph", "dependents")),
    ):
        nothing_came(answer)
        assert answer.status in REFUSED, answer.body
    described = [
        {"customMetadata": [{"key": name, "stringValue": value} for name, value in each.items()]}
        for each in pointers
    ]
    answer = post("/v1/ground", {"sources": [*map(cloud.uri, keys), *pointers, *described]})
    nothing_came(answer)
    assert answer.json["allDocumentsForAttachment"] == []
    walls.check()


@paths_together
def test_as_the_key_of_an_event(walls: Walls, rows: list[dict[str, Any]]) -> None:
    cloud = walls.cloud
    keys = [key for row in rows for key in (f"kb/sops/{path_of(row)}", path_of(row))]
    walls.watched.asked.clear()
    messages = [
        {"detail-type": "Groundwire Repair", "documents": [{"root": "kb", "key": key}]} for key in keys
    ]
    assert deliver(*(object_event(cloud.bucket, key) for key in keys), *messages) == []
    heal(cloud)
    strayed = [each for each in walls.watched.asked if not each.startswith(f"{cloud.bucket}/kb/")]
    walls.watched.asked.clear()
    assert strayed == []
    stored = cloud.dynamodb.scan(TableName=cloud.table, FilterExpression="attribute_exists(title)")["Items"]
    titled = {each["uri"]["S"] for each in stored if PLANTED in json.dumps(each)}
    assert titled == {cloud.uri("kb/inner/plan.md")}, "what a reader of its own root may ask for"
