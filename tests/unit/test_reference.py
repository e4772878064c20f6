"""The reference gives the right answer to every worked case of sections 2, 3, 4 and 6."""

import base64
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference import paths, search

CASES = Path(__file__).parent.parent / "cases"


def cases(name: str) -> list[Any]:
    """The cases of one file, by id."""
    listed = yaml.safe_load((CASES / name).read_text(encoding="utf-8"))
    return [pytest.param(case, id=case["id"]) for case in listed]


def content(value: str | dict[str, str]) -> bytes:
    """The bytes of a file, written as text or as base64."""
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])


@pytest.mark.parametrize("case", cases("frontmatter.yaml"))
def test_frontmatter(case: dict[str, Any]) -> None:
    """F, I-1, I-2: findings that follow from path and content alone."""
    data = content(case["content"] if "content" in case else {"base64": case["content_base64"]})
    document = search.load(search.Files({case["path"]: data}), case["path"])
    expect = case["expect"]
    assert document.matter.title == expect.get("title")
    assert document.declared == expect.get("canonical_path")
    assert [entry.raw for entry in document.matter.entries if entry.code is None] == expect["includes"]
    # No other file exists here, and a case says nothing about other files.
    codes = {finding.code for finding in document.findings} - {"target_missing"}
    assert sorted(codes) == expect["findings"]
    if "frontmatter_valid" in expect:
        assert document.matter.readable == expect["frontmatter_valid"]


@pytest.mark.parametrize("case", cases("paths.yaml"))
def test_path(case: dict[str, Any]) -> None:
    """I-3 to I-8, C-1, C-2: one entry to one key or code."""
    prefix = case["root_prefix"]
    lead = f"{prefix}/" if prefix else ""
    base = case["document"].removeprefix(lead)
    if "canonical_path" in case:
        base = paths.declared(case["canonical_path"], prefix) or base
    expect = case["expect"]
    key, code = attempt(case["include"], base, prefix)
    if key is None:
        assert code == expect.get("code")
        return
    key = lead + key
    warning = None
    if "keys" in case:
        names = {_name(stored, case): stored for stored in case["keys"]}
        found, differs = paths.locate(_name(key, case), names.__contains__)
        if found is None:
            assert expect.get("code") == "target_missing"
            return
        key, warning = names[found], "unicode_form_differs" if differs else None
    assert key == expect.get("target")
    assert warning == expect.get("warning")


def attempt(include: str, base: str, prefix: str) -> tuple[str | None, str | None]:
    """The key, or the code of the refusal."""
    try:
        return paths.resolve(include, base, prefix), None
    except paths.Refused as refused:
        return None, refused.code


def _name(key: str, case: dict[str, Any]) -> str:
    # Only SharePoint's server ignores letter case.
    return key.casefold() if case.get("source_type") == "sharepoint" else key


@pytest.mark.parametrize("case", cases("bundles.yaml"))
def test_bundle(case: dict[str, Any], tmp_path: Path) -> None:
    """B-1 to B-6, from memory and from a folder."""
    files = {key: content(value) for key, value in case["files"].items()}
    found = search.search(files, case["root"], case["policy"])
    expect = case["expect"]
    for name in ("included", "complete", "aborted"):
        if name in expect:
            assert found[name] == expect[name]
    if "edges" in expect:
        assert found["edges"] == [tuple(edge) for edge in expect["edges"]]
    if "skipped" in expect:
        codes = [skip[3] for skip in expect["skipped"]]
        without = [
            (*skip[:3], skip[3] if code is not None else None)
            for skip, code in zip(found["skipped"], codes, strict=True)
        ]
        assert without == [tuple(skip) for skip in expect["skipped"]]

    for key, data in files.items():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_bytes(data)
    told = search.explain(tmp_path, tmp_path / case["root"], case["policy"])
    lead = f"local://{tmp_path.name}/"
    assert [item["uri"] for item in told["included"]] == [lead + key for key in found["included"]]
    assert [(edge["from"], edge["to"], edge["depth"]) for edge in told["edges"]] == [
        (lead + source, lead + target, depth) for source, target, depth in found["edges"]
    ]
    assert (told["complete"], told["aborted"]) == (found["complete"], found["aborted"])


def test_forms() -> None:
    """I-5: both spellings of one stored key name the same document."""
    stored = unicodedata.normalize("NFD", "l\u00e4mp\u00f6.md")
    files = {"r.md": "---\nincludes: [l\u00e4mp\u00f6.md]\n---\n".encode(), stored: b"x"}
    assert search.search(files, "r.md", {})["included"] == [stored]


def test_several_roots() -> None:
    """B-7: a root is attached as a root, and what one root attached is not attached again."""
    files = {
        "a.md": b"---\nincludes: [b.md, t.md]\n---\n",
        "b.md": b"---\nincludes: [t.md, a.md, u.md]\n---\n",
        "t.md": b"terms",
        "u.md": b"units",
    }
    found = search.search_roots(files, ["a.md", "b.md", "a.md", "gone.md"], {"maxDocs": 2})
    assert found["documents"] == ["a.md", "b.md", "t.md", "u.md"]
    assert found["failed"] == ["gone.md"]
    assert [bundle["skipped"] for bundle in found["bundles"]] == [
        [("a.md", "b.md", "cycle", "already_attached")],
        [("b.md", "t.md", "cycle", "already_attached"), ("b.md", "a.md", "cycle", "already_attached")],
    ]


def test_request_maximum() -> None:
    """B-7: the request as a whole holds 64 documents, the roots among them."""
    files = {f"r{n}.md": f"---\nincludes: [x{n}.md]\n---\n".encode() for n in range(50)}
    files |= {f"x{n}.md": b"x" for n in range(50)}
    found = search.search_roots(files, [f"r{n}.md" for n in range(50)], {})
    assert len(found["documents"]) == 64
    assert sum(len(bundle["skipped"]) for bundle in found["bundles"]) == 36
