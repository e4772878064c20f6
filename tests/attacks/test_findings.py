"""What verdicts tell (Z-1): a finding names other documents, but none that the caller may not read.

A verdict is stored. When a root is configured inside another one, what is stored was found by other rules.
"""

import pytest

from tests.attacks.keep import PLANTED
from tests.cloud import Cloud
from tests.integration.driving import get, index, post, upload
from tests.integration.test_access import READER, role

pytestmark = pytest.mark.attacks

APP = role("app")
HIDDEN = f"hidden/{PLANTED}.md"


def hide(cloud: Cloud) -> None:
    """Only one reader may see the folder `hidden` from now on."""
    cloud.wire(cloud.root(), cloud.root(name="hidden", prefix="hidden", readers=(READER,)))


def verdict(cloud: Cloud, key: str = "a.md") -> str:
    answer = get("/v1/documents", APP, uri=cloud.uri(key))
    assert answer.status == 200
    return answer.body


def test_a_rival_that_was_hidden_is_none(cloud: Cloud) -> None:
    claim = "---\ncanonical_path: x.md\n---\n"
    cloud.wire(cloud.root())
    upload(cloud, {"a.md": claim, HIDDEN: claim})
    assert PLANTED in verdict(cloud)
    hide(cloud)
    assert PLANTED not in verdict(cloud)
    assert "canonical_path_conflict" not in verdict(cloud)
    upload(cloud, {"b.md": claim})
    assert "is also claimed by 'b.md'." in verdict(cloud), "of those outside it tells as before"


def test_where_a_document_was_moved_to_is_told_only_where_it_may_be_read(cloud: Cloud) -> None:
    cloud.wire(cloud.root())
    includes = "---\nincludes: [gone.md, lost.md]\n---\n"
    upload(cloud, {"a.md": includes, "gone.md": "Gone.", "lost.md": "Lost."})
    upload(cloud, {HIDDEN: "Gone.", "found.md": "Lost."})
    for key in ("gone.md", "lost.md"):
        cloud.delete(key)
    index(cloud, "gone.md", "lost.md", name="object_deleted")
    assert PLANTED in verdict(cloud)
    hide(cloud)
    assert PLANTED not in verdict(cloud)
    moved = [
        each.get("movedTo") for each in get("/v1/documents", APP, uri=cloud.uri("a.md")).json["findings"]
    ]
    assert moved == [None, cloud.uri("found.md")]


def test_an_include_of_what_was_hidden_is_one_of_what_is_missing(cloud: Cloud) -> None:
    cloud.wire(cloud.root())
    upload(cloud, {"a.md": f"---\nincludes: [{HIDDEN}, hidden/nothing.md]\n---\n", HIDDEN: "Here."})
    hide(cloud)
    there, missing = get("/v1/documents", APP, uri=cloud.uri("a.md")).json["includes"]
    assert there["code"] == missing["code"] == "target_missing"


def test_asking_what_would_be_found_tells_of_no_hidden_claim_or_document(cloud: Cloud) -> None:
    cloud.wire(cloud.root())
    upload(
        cloud,
        {HIDDEN: f"---\ncanonical_path: {HIDDEN}\n---\n", "hidden/b.md": "---\ncanonical_path: x.md\n---\n"},
    )
    hide(cloud)
    for path in (HIDDEN, "x.md", "hidden/nothing.md"):
        content = f"---\ncanonical_path: {path}\nincludes: [{path}]\n---\n"
        found = post("/v1/validate", {"path": "q.md", "content": content}, APP).json["findings"]
        assert [each["code"] for each in found] == ["canonical_path_mismatch", "target_missing"], path


def test_a_reader_of_a_nested_root_alone_learns_nothing_of_the_outer_one(cloud: Cloud) -> None:
    """The other way round: the chain that leads to a document begins where the caller may not read."""
    cloud.wire(cloud.root(readers=(READER,)), cloud.root(name="open", prefix="open", readers=("*",)))
    secret = f"---\ntitle: {PLANTED}\nincludes: [open/a.md]\ncanonical_path: open/a.md\n---\n"
    upload(
        cloud, {f"{PLANTED}.md": secret, "open/a.md": "---\ncanonical_path: a.md\nincludes: [b.md]\n---\n"}
    )
    uri, gone = cloud.uri("open/a.md"), cloud.uri("open/b.md")
    answers = [
        get("/v1/documents", APP, uri=uri),
        get("/v1/graph", APP, uri=uri, direction="dependents", depth="5"),
    ]
    answers += [get("/v1/dependents", APP, uri=each, transitive="true") for each in (uri, gone)]
    assert [each.status for each in answers] == [200] * 4
    assert PLANTED not in str(answers)
