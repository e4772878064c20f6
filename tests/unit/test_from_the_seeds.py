"""docs/from-the-seeds.md: everything that it points at exists, and the seeds' own words are all there."""

import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import groundwire

PAGE = (Path(__file__).parents[2] / "docs" / "from-the-seeds.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1:4] for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
NAMES = [name for _, here, _ in ROWS for name in re.findall(r"`(groundwire\.[\w.]+)`", here)]
ASKED_FOR = """
    CanonicalGroundingService CanonicalDocumentFetcher DocumentAttachment GeminiFileSearchStores maxDocuments
    allowedSourceTypes prepareDocumentOptions forceContentType useFilesApi compositionPolicy
    prepareFromSources
    KnowledgeSource userId auditingId CanonicalGroundingResult pointers preparedDocuments compositionBundles
    allDocumentsForAttachment CanonicalDocumentPointer SharePointDocumentPointer S3DocumentPointer
    GcsDocumentPointer fetchPreparedDocument PreparedDocument geminiDocument geminiFileReference getDocument
    customMetadata canonical-grounding includes canonical_path title CompositionPolicy traversableMimeTypes
    maxDepth maxDocs maxIncludeBytes timeoutMs onFetchError CompositionLoader loadBundle rootDoc rootPointer
    policyOverride alreadyVisited prepareOptions CompositionBundle included includedPointers allDocuments
    edges
    skipped CompositionEdge relativePath depth SkippedInclude parentUri reason detail composition-loader
"""


def _found(dotted: str) -> Any:
    """What a dotted name means: a module's member, and then members and fields of that."""
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            value: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            if is_dataclass(value) and name in {each.name for each in fields(value)}:
                return name
            value = getattr(value, name)
        return value
    raise AssertionError(f"{dotted} is nowhere")


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_what_the_page_points_at_exists(name: str) -> None:
    assert _found(name) is not None


def test_every_row_points_somewhere() -> None:
    assert len(ROWS) > 60
    assert [there for there, here, _ in ROWS if "`groundwire." not in here and there.strip() != "there"] == []


@pytest.mark.parametrize("word", ASKED_FOR.split())
def test_every_name_of_the_seeds_has_a_row(word: str) -> None:
    assert any(word in there for there, _, _ in ROWS)


def test_a_name_that_is_nowhere_is_noticed() -> None:
    with pytest.raises(AttributeError):
        _found("groundwire.policy.CompositionPolicy.no_such_option")


def test_the_package_itself_exports_the_seeds_names() -> None:
    exported = {name.rpartition(".")[2] for name in NAMES} & set(groundwire.__all__)
    assert exported >= {
        "CanonicalGroundingService",
        "CompositionLoader",
        "CompositionPolicy",
        "KnowledgeSource",
    }
    for name in groundwire.__all__:
        assert getattr(groundwire, name) is not None
