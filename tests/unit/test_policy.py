"""Rule B-1: the seed's defaults, a call's overrides over them, clamped; nonsense is refused by name."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.composition import policy_json
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.errors import InvalidRequest
from groundwire.fetching import PrepareDocumentOptions
from groundwire.policy import CompositionPolicy
from groundwire.roots import SOURCE_TYPES
from tests.fakes import MemoryStore
from tests.unit.graphs import loader

DEFAULTS = CompositionPolicy()


def test_the_defaults_are_the_seeds() -> None:
    assert policy_json(DEFAULTS) == {
        "traversableMimeTypes": ["text/markdown"],
        "maxDepth": 2,
        "maxDocs": 8,
        "maxIncludeBytes": 5_242_880,
        "timeoutMs": 10_000,
        "onFetchError": "skip",
    }


@pytest.mark.parametrize("overrides", [None, {}, {"maxDepth": None}])
def test_what_is_not_overridden_stays(overrides: dict[str, Any] | None) -> None:
    service = CompositionPolicy(("text/plain",), 1, 2, 3, 4, "abort")
    assert service.merged(overrides) == service
    assert service.merged({"maxDocs": 5}) == replace(service, max_docs=5)


@given(
    depth=st.integers(0, 10**12),
    docs=st.integers(1, 10**12),
    size=st.integers(0, 10**12),
    milliseconds=st.integers(1, 10**12),
)
def test_what_is_too_large_is_clamped(depth: int, docs: int, size: int, milliseconds: int) -> None:
    merged = DEFAULTS.merged(
        {"maxDepth": depth, "maxDocs": docs, "maxIncludeBytes": size, "timeoutMs": milliseconds}
    )
    assert merged.max_depth == min(depth, 5)
    assert merged.max_docs == min(docs, 64)
    assert merged.max_include_bytes == min(size, 25 * 1024 * 1024)
    assert merged.timeout_ms == min(milliseconds, 25_000)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxDepth", -1),
        ("maxDepth", 1.0),
        ("maxDepth", "2"),
        ("maxDepth", True),
        ("maxDocs", 0),
        ("max_docs", [8]),
        ("maxIncludeBytes", -1),
        ("timeoutMs", 0),
        ("timeout_ms", float("nan")),
        ("onFetchError", "ignore"),
        ("onFetchError", ["skip"]),
        ("traversableMimeTypes", "text/markdown"),
        ("traversableMimeTypes", ["markdown"]),
        ("traversable_mime_types", [7]),
        ("traversableMimeTypes", {"text/markdown": 1}),
        ("maxdepth", 1),
        ("MaxDepth", 1),
        ("depth", 1),
        ("", 1),
    ],
)
def test_nonsense_is_refused_under_the_name_it_was_given(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        DEFAULTS.merged({name: value})
    assert refused.value.field == name


@pytest.mark.parametrize("policy", [7, "text/markdown", ["maxDepth"], {1: 2}])
def test_a_policy_that_is_no_object_is_refused(policy: Any) -> None:
    with pytest.raises(InvalidRequest):
        DEFAULTS.merged(policy)
    with pytest.raises(InvalidRequest, match=r"overrides\.compositionPolicy"):
        CanonicalGroundingConfig().merged({"compositionPolicy": policy})


def test_both_spellings_are_read_but_not_at_once() -> None:
    assert DEFAULTS.merged({"maxDepth": 1}) == DEFAULTS.merged({"max_depth": 1})
    with pytest.raises(InvalidRequest, match="max_depth: is given twice"):
        DEFAULTS.merged({"maxDepth": 1, "max_depth": 1})


def test_types_are_compared_in_lower_case() -> None:
    assert DEFAULTS.merged({"traversableMimeTypes": [" Text/Plain "]}).traversable_mime_types == (
        "text/plain",
    )


def test_a_policy_as_a_value_is_clamped_too() -> None:
    """By the loader, and by the service."""
    greedy = CompositionPolicy(max_depth=99, max_docs=999, max_include_bytes=10**12, timeout_ms=10**9)
    clamped = CompositionPolicy(max_depth=5, max_docs=64, max_include_bytes=25 * 1024**2, timeout_ms=25_000)
    assert loader(MemoryStore({})).policy(greedy) == clamped
    assert CanonicalGroundingConfig().merged({"compositionPolicy": greedy}).composition_policy == clamped


def test_the_service_merges_a_call_over_its_own_configuration() -> None:
    """G-1: field by field; null switches composition off, an absent one leaves it."""
    own = CanonicalGroundingConfig(3, ("s3",), None, CompositionPolicy(max_depth=1))
    assert own.merged(None) == own.merged({}) == own
    merged = own.merged({"compositionPolicy": {"maxDocs": 4}, "max_documents": 7})
    assert merged.composition_policy == CompositionPolicy(max_depth=1, max_docs=4)
    assert merged.max_documents == 7
    assert own.merged({"compositionPolicy": None}).composition_policy is None
    assert own.merged({"maxDocuments": None, "allowedSourceTypes": None}) == own
    assert own.merged({"maxDocuments": 10**6}).max_documents == 50
    assert CanonicalGroundingConfig().merged({"compositionPolicy": {}}).composition_policy == DEFAULTS


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"maxDocuments": 0}, "overrides.maxDocuments"),
        ({"max_documents": True}, "overrides.max_documents"),
        ({"maxDocuments": "5"}, "overrides.maxDocuments"),
        ({"allowedSourceTypes": "s3"}, "overrides.allowedSourceTypes"),
        ({"allowedSourceTypes": ["s3", "ftp"]}, "overrides.allowedSourceTypes"),
        ({"allowedSourceTypes": [["s3"]]}, "overrides.allowedSourceTypes"),
        ({"allowedSourceTypes": {"s3": 1}}, "overrides.allowedSourceTypes"),
        ({"compositionPolicy": {"maxDepth": -1}}, "overrides.compositionPolicy.maxDepth"),
        ({"prepareDocumentOptions": "text"}, "overrides.prepareDocumentOptions"),
        (
            {"prepareDocumentOptions": {"forceContentType": "pdf"}},
            "overrides.prepareDocumentOptions.forceContentType",
        ),
        ({"prepareDocumentOptions": {"force": "text"}}, "overrides.prepareDocumentOptions.force"),
        ({"catalogue": 1}, "overrides.catalogue"),
    ],
)
def test_a_configuration_that_means_nothing_is_refused_by_name(overrides: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        CanonicalGroundingConfig().merged(overrides)
    assert refused.value.field == field


def test_prepare_options_come_as_a_value_or_as_written() -> None:
    attachment = PrepareDocumentOptions("attachment")
    for given_as in (attachment, {"forceContentType": "attachment"}, {"force_content_type": "attachment"}):
        merged = CanonicalGroundingConfig().merged({"prepareDocumentOptions": given_as})
        assert merged.prepare_document_options == attachment
    assert CanonicalGroundingConfig().allowed_source_types == SOURCE_TYPES
