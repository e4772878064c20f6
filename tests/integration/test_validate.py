"""A document is judged before it is uploaded as it would be after (section 8), and nothing is stored."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cloud import Cloud
from tests.integration.driving import get, post, upload

GUIDE = """---
title: Cold complaint
canonical_path: sops/cold.md
includes:
  - ../glossary.md
  - missing.md
  - /absolute.md
  - cold.md
---
Check the thermostat.
"""


def validate(path: str, content: str, **more: Any) -> Any:
    answer = post("/v1/validate", {"path": path, "content": content, **more})
    assert answer.status == 200, answer.body
    return answer.json


def test_what_is_found_is_what_the_indexer_finds_after_the_upload(cloud: Cloud) -> None:
    upload(cloud, {"glossary.md": "# Glossary"})
    found = validate("sops/cold.md", GUIDE)
    assert (found["path"], found["uri"]) == ("sops/cold.md", cloud.uri("sops/cold.md"))
    assert [each["code"] for each in found["includes"]] == [
        None,
        "target_missing",
        "include_absolute",
        "self_include",
    ]
    assert found["verdict"] == "invalid"
    upload(cloud, {"sops/cold.md": GUIDE})
    indexed = get("/v1/documents", uri=cloud.uri("sops/cold.md")).json
    for name in ("verdict", "includes", "findings", "title", "canonicalPath", "findingCount"):
        assert found[name] == indexed[name], name


_LINES = st.sampled_from(
    [
        "title: A",
        "title: 7",
        "includes: [b.md]",
        "includes: [a.md, b.md, ../up.md, 7, '']",
        "includes: {}",
        "canonical_path: sops/cold.md",
        "canonical_path: sops/other.md",
        "canonical_path: ../up.md",
        "Includes: x",
        "a: [",
        "---",
    ]
)


@given(lines=st.lists(_LINES, max_size=5), opened=st.booleans())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_for_any_document_it_is_so(cloud: Cloud, lines: list[str], opened: bool) -> None:
    content = "\n".join([*(["---"] if opened else []), *lines, "---", "Body"])
    found = validate("sops/cold.md", content)
    upload(cloud, {"sops/cold.md": content})
    indexed = get("/v1/documents", uri=cloud.uri("sops/cold.md")).json
    assert {name: found[name] for name in ("verdict", "includes", "findings")} == {
        name: indexed[name] for name in ("verdict", "includes", "findings")
    }


def test_a_rival_of_the_same_path_is_told_of(cloud: Cloud) -> None:
    upload(cloud, {"old.md": "---\ncanonical_path: sops/cold.md\n---\n"})
    codes = [each["code"] for each in validate("sops/cold.md", GUIDE)["findings"]]
    assert "canonical_path_conflict" in codes


def test_nothing_is_stored(cloud: Cloud) -> None:
    validate("sops/cold.md", GUIDE)
    assert get("/v1/documents", uri=cloud.uri("sops/cold.md")).status == 404
    assert "Contents" not in cloud.s3.list_objects_v2(Bucket=cloud.bucket)
    assert cloud.messages(cloud.queue) == []


@pytest.mark.parametrize(
    "path",
    ["", "/a.md", "../a.md", "a//b.md", "a/", "https://x/y.md", "a\\b.md", "a%2f..%2f..%2fb.md", "x" * 1_025],
)
def test_a_path_that_leads_nowhere_is_refused_by_name(cloud: Cloud, path: str) -> None:
    answer = post("/v1/validate", {"path": path, "content": "x"})
    assert (answer.status, answer.json["errors"][0]["field"]) == (400, "path")


def test_the_root_is_named_where_several_could_be_meant(cloud: Cloud) -> None:
    other = cloud.new_bucket(cloud.bucket + "-other")
    secret = cloud.root(
        name="secret", bucket=cloud.new_bucket(cloud.bucket + "-secret"), readers=("group:hr",)
    )
    cloud.wire(cloud.root(), cloud.root(name="other", bucket=other), secret)
    answer = post("/v1/validate", {"path": "a.md", "content": "x"})
    assert (answer.status, answer.json["errors"][0]["field"]) == (400, "root")
    assert "kb, other" in answer.json["errors"][0]["problem"]
    assert validate("a.md", "x", root="other")["uri"] == f"s3://{other}/a.md"
    refused = [
        post("/v1/validate", {"path": "a.md", "content": "x", "root": name}) for name in ("secret", "none")
    ]
    assert refused[0].status == refused[1].status == 400
    assert refused[0].json["errors"] == refused[1].json["errors"]


def test_what_a_nested_root_holds_is_judged_as_there(cloud: Cloud) -> None:
    """I-8: includes stay inside the root that the document will be in, whichever root is named."""
    cloud.wire(cloud.root(), cloud.root(name="hr", prefix="hr"))
    found = validate("hr/a.md", "---\nincludes: [../b.md]\n---\n", root="kb")
    assert [each["code"] for each in found["includes"]] == ["include_escapes_root"]
    assert (found["path"], found["uri"]) == ("a.md", cloud.uri("hr/a.md"))


def test_an_answer_about_very_many_findings_fits(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.delivery.RESPONSE_BYTES", 60_000)
    entries = "".join(f"  - missing-{number:03}-{'x' * 200}.md\n" for number in range(100))
    answer = post("/v1/validate", {"path": "a.md", "content": f"---\nincludes:\n{entries}---\n"})
    assert answer.status == 200
    assert len(answer.body) < 60_000


@pytest.mark.parametrize("path", ["/v1/ground", "/v1/compose"])
def test_a_dry_run_is_the_answer_without_bodies(cloud: Cloud, path: str) -> None:
    upload(cloud, {"a.md": "---\nincludes: [b.md, gone.md]\n---\nSecret words", "b.md": "More words"})
    request: dict[str, Any] = (
        {"uri": cloud.uri("a.md")} if path.endswith("compose") else {"sources": [cloud.uri("a.md")]}
    )
    wet = post(path, request).json
    dry_answer = post(path, request | {"dryRun": True})
    assert "words" not in dry_answer.body
    dry = dry_answer.json

    def without_bodies(value: Any) -> Any:
        if isinstance(value, list):
            return [without_bodies(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {name: without_bodies(each) for name, each in value.items() if name not in ("text", "timings")}

    assert without_bodies(dry) == without_bodies(wet)
    assert post(path, request | {"dryRun": "yes"}).status == 400


def test_a_dry_run_moves_nothing_out(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.delivery.RESPONSE_BYTES", 60_000)
    upload(cloud, {"a.md": "x" * 100_000})
    answer = post("/v1/ground", {"sources": [cloud.uri("a.md")], "dryRun": True})
    (document,) = answer.json["allDocumentsForAttachment"]
    assert (document["sizeBytes"], answer.json["complete"]) == (100_000, True)
    assert not document.keys() & {"text", "downloadUrl", "undelivered"}
