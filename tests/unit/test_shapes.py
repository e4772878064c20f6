"""Sections 10 and 11: the JSON of the seeds' types, key for key."""

import pytest

from groundwire.includes import declare
from groundwire.pointers import (
    CanonicalDocumentPointer,
    GcsDocumentPointer,
    LocalDocumentPointer,
    S3DocumentPointer,
    SharePointDocumentPointer,
)
from groundwire.shapes import bundle_json, document_json, findings_json, include_json, pointer_json
from tests.fakes import MemoryStore
from tests.unit.graphs import at, bundles, page

DOCUMENT = {"uri", "pointer", "displayName", "mimeType", "sizeBytes", "version", "sha256", "findings"}
FILES = {"a.md": page("b.md", "s.pdf", "/x", "a.md"), "b.md": b"text", "s.pdf": b"%PDF"}


def test_a_bundle_has_the_seeds_keys() -> None:
    (bundle,) = bundles(MemoryStore(FILES), {})
    shape = bundle_json(bundle, bodies=False)
    assert list(shape) == [
        "root",
        "rootPointer",
        "included",
        "includedPointers",
        "edges",
        "skipped",
        "policy",
        "complete",
        "aborted",
        "bundleId",
    ]
    assert shape["edges"][0] == {
        "from": "local://kb/a.md",
        "to": "local://kb/b.md",
        "relativePath": "b.md",
        "depth": 1,
    }
    assert shape["skipped"][0] == {
        "parentUri": "local://kb/a.md",
        "relativePath": "/x",
        "reason": "resolve_failed",
        "code": "include_absolute",
        "detail": None,
        "line": 5,
    }
    assert shape["policy"].keys() == {
        "traversableMimeTypes",
        "maxDepth",
        "maxDocs",
        "maxIncludeBytes",
        "timeoutMs",
        "onFetchError",
    }
    assert [each.keys() for each in (shape["root"], *shape["included"])] == [DOCUMENT] * 3
    assert shape["includedPointers"] == [each["pointer"] for each in shape["included"]]
    assert (shape["complete"], shape["aborted"], shape["bundleId"]) == (False, False, bundle.bundle_id)


def test_bodies_are_text_or_what_gemini_takes() -> None:
    """G-6: one delivery each."""
    (bundle,) = bundles(MemoryStore(FILES), {})
    shape = bundle_json(bundle, bodies=True)
    assert shape["root"].keys() == DOCUMENT | {"text"}
    text, pdf = shape["included"]
    assert (text["text"], text.keys()) == ("text", DOCUMENT | {"text"})
    assert (pdf["geminiDocument"], pdf.keys()) == (
        {"mimeType": "application/pdf", "data": "JVBERg=="},
        DOCUMENT | {"geminiDocument"},
    )


def test_a_document_says_what_it_is() -> None:
    (bundle,) = bundles(MemoryStore({"a.md": b"---\ntitle: 7\n---\n"}), {})
    shape = document_json(bundle.root, body=False)
    assert shape["sizeBytes"] == 17
    assert shape["displayName"] == "a.md"
    assert shape["pointer"] == {
        "source_type": "local",
        "local_root": "kb",
        "local_path": "a.md",
        "display_name": "a.md",
        "mime_type": "text/markdown",
    }
    assert [list(each) for each in shape["findings"]] == [
        ["code", "severity", "line", "column", "message", "hint"]
    ]
    assert (shape["findings"][0]["code"], shape["findings"][0]["severity"]) == ("title_not_string", "warning")


@pytest.mark.parametrize(
    ("pointer", "shape"),
    [
        (
            S3DocumentPointer(s3_bucket="b", s3_key="k", s3_force_path_style=False, display_name="n"),
            {
                "source_type": "s3",
                "s3_bucket": "b",
                "s3_key": "k",
                "s3_force_path_style": False,
                "display_name": "n",
            },
        ),
        (
            GcsDocumentPointer(gcs_bucket="b", gcs_object="o", gcs_generation="1"),
            {"source_type": "gcs", "gcs_bucket": "b", "gcs_object": "o", "gcs_generation": "1"},
        ),
        (
            SharePointDocumentPointer(sharepoint_drive_id="d", sharepoint_item_id="i"),
            {"source_type": "sharepoint", "sharepoint_drive_id": "d", "sharepoint_item_id": "i"},
        ),
        (
            LocalDocumentPointer(local_root="r", local_path="p"),
            {"source_type": "local", "local_root": "r", "local_path": "p"},
        ),
    ],
)
def test_pointers_keep_the_seeds_own_names(
    pointer: CanonicalDocumentPointer, shape: dict[str, object]
) -> None:
    assert pointer_json(pointer) == shape


def test_includes_and_findings_have_the_names_of_section_10() -> None:
    content = b"---\nincludes:\n  - 7\n  - b.md\n  - /x\ntitle: 7\n---\n"
    declared = declare(at("a.md"), "text/markdown", content, len(content))
    assert [include_json(each, at("a.md")) for each in declared.includes] == [
        {"raw": "7", "index": 0, "line": 3, "target": None, "code": "include_not_string"},
        {"raw": "b.md", "index": 1, "line": 4, "target": "local://kb/b.md", "code": None},
        {"raw": "/x", "index": 2, "line": 5, "target": None, "code": "include_absolute"},
    ]
    found = findings_json(declared.findings)
    assert [(each["line"], each["column"], each["code"]) for each in found] == [
        (3, 5, "include_not_string"),
        (5, 5, "include_absolute"),
        (6, 8, "title_not_string"),
    ]
    assert found[0]["severity"] == "error"
    assert found[0]["hint"]
