"""What `groundwire` prints and how it ends (section 10): JSON for programs, marks and hints for people."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from groundwire_cli.main import main

C, D = "l\u00e4m.md", "la\u0308m.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A storage root, with the working folder elsewhere."""
    root = tmp_path / "kb"
    root.mkdir()
    (root / "groundwire.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return root


def write(folder: Path, **documents: str) -> None:
    for name, text in documents.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any]:
    status = main([str(each) for each in arguments])
    return status, json.loads(capsys.readouterr().out)


def codes(document: Any) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def test_lint_says_what_is_missing_and_what_was_meant(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, sop="---\nincludes:\n  - Terms.md\n---\n", terms="x")
    assert main(["lint", "kb"]) == 1
    shown = capsys.readouterr().out
    for line in (
        "✗ sop.md",
        "3:5 ✗ target_missing  'Terms.md' names 'Terms.md', which does not exist.",
        "→ 'terms.md' exists; it differs by letter case.",
        "2 documents  ✓ 1 valid  ! 0 with warnings  ✗ 1 invalid",
    ):
        assert line in shown
    assert "\x1b" not in shown


def test_lint_judges_duplicates_and_itself_by_where_targets_are_stored(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / C).write_text(f"---\nincludes: ['{D}', '{C}']\n---\n", encoding="utf-8")
    write(folder, other=f"---\nincludes: ['{D}', '{D}']\n---\n")
    status, result = run_json(capsys, "lint", "--json", folder)
    itself, other = sorted(result["documents"], key=lambda each: str(each["path"] == "other.md"))
    assert [each["code"] for each in itself["includes"]] == ["self_include", "include_duplicate"]
    assert codes(itself) == ["self_include", "include_duplicate"]
    assert [each["target"] for each in other["includes"]] == [f"local://kb/{C}"] * 2
    assert codes(other) == ["unicode_form_differs", "include_duplicate"]
    assert status == 0


def test_conflicts_are_found_over_the_whole_root(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a="---\ncanonical_path: a.md\n---\n", b="---\ncanonical_path: a.md\n---\n")
    status, result = run_json(capsys, "lint", "--json", folder / "a.md")
    assert [each["path"] for each in result["documents"]] == ["a.md"]
    assert (status, codes(result["documents"][0])) == (1, ["canonical_path_conflict"])


def test_each_folder_below_is_linted_in_its_own_root(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nested = folder / "nested"
    nested.mkdir()
    (nested / "groundwire.toml").touch()
    write(nested, a="---\ncanonical_path: a.md\n---\n")
    _, result = run_json(capsys, "lint", "--json", folder)
    assert [(each["uri"], each["verdict"]) for each in result["documents"]] == [
        ("local://nested/a.md", "valid")
    ]
    _, result = run_json(capsys, "lint", "--json", "--root", folder, folder)
    assert [codes(each) for each in result["documents"]] == [["canonical_path_mismatch"]]


def test_explain_of_one_is_a_bundle_and_of_several_a_list(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a="---\nincludes: [b.md]\n---\n", b="---\nincludes: [a.md]\n---\n")
    status, bundle = run_json(capsys, "explain", "--json", folder / "a.md")
    assert (status, bundle["complete"], bundle["root"]["uri"]) == (0, True, "local://kb/a.md")
    assert "text" not in bundle["root"]
    _, several = run_json(capsys, "explain", "--json", folder / "a.md", folder / "b.md")
    assert [each["root"]["uri"] for each in several["bundles"]] == ["local://kb/a.md", "local://kb/b.md"]
    assert all(len(each["included"]) == 1 for each in several["bundles"])


def test_strict_ends_with_1_where_a_bundle_is_incomplete(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, a="---\nincludes: [gone.md]\n---\n")
    assert main(["explain", str(folder / "a.md")]) == 0
    assert "✗ gone.md  fetch_failed: not_found" in capsys.readouterr().out
    assert main(["explain", "--strict", str(folder / "a.md")]) == 1


def test_dependents_are_found_through_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, a="---\nincludes: [b.md]\n---\n", b="---\nincludes: [c.md]\n---\n", c="x")
    _, result = run_json(capsys, "dependents", "--json", folder / "c.md")
    assert [(each["uri"], each["distance"]) for each in result["dependents"]] == [
        ("local://kb/b.md", 1),
        ("local://kb/a.md", 2),
    ]
    _, result = run_json(capsys, "dependents", "--direct", "--json", folder / "c.md")
    assert [each["uri"] for each in result["dependents"]] == ["local://kb/b.md"]
    assert main(["dependents", str(folder / "c.md")]) == 0
    assert "2 documents would lose c.md" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lint", "nowhere"], "nowhere: there is no such file or folder"),
        (
            ["dependents", "kb/nowhere.md"],
            "kb/nowhere.md: there is no such file, and no document includes it",
        ),
        (["explain", "--max-depth", "-1", "kb/a.md"], "--max-depth must be a whole number of at least 0"),
        (["explain", "--root", "kb/sub", "kb/a.md"], "kb/a.md: lies outside the storage root kb/sub"),
        (
            ["explain", "--traversable-mime", "markdown", "kb/a.md"],
            "--traversable-mime must be a list of MIME",
        ),
    ],
)
def test_usage_errors_end_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    write(folder, a="x")
    (folder / "sub").mkdir()
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_name_that_can_be_no_key_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = os.fsdecode(os.fsencode(folder) + b"/\xff.md")
    Path(odd).write_text("x")
    status, result = run_json(capsys, "lint", "--json", folder)
    assert (status, result["documents"]) == (1, [])
    (said,) = result["summary"]["unreadable"]
    assert "its name is not UTF-8" in said
    assert main(["explain", odd]) == 2
