"""Rules G-1 and G-3 without a catalogue: what a search returned becomes pointers or codes."""

import contextlib
from collections.abc import Mapping
from typing import Any

import pytest
from google.genai import interactions, types
from hypothesis import given
from hypothesis import strategies as st

from groundwire.deadline import Deadline
from groundwire.errors import InvalidRequest, PointerRefused
from groundwire.lookup import SourceLookup
from groundwire.pointers import (
    GcsDocumentPointer,
    LocalDocumentPointer,
    S3DocumentPointer,
    SharePointDocumentPointer,
)
from groundwire.resolution import KnowledgeSource, pointer_from, pointer_from_uri, sources
from groundwire.roots import StorageRoot, StorageRoots

ROOTS = StorageRoots([StorageRoot("kb", "s3", "kb")])
POINTER = S3DocumentPointer(s3_bucket="kb", s3_key="sops/leak.md", s3_region="eu-north-1")
METADATA = {"source_type": "s3", "s3_bucket": "kb", "s3_key": "sops/leak.md", "s3_region": "eu-north-1"}


def resolve(source: KnowledgeSource) -> Any:
    """The pointer of a source; PointerRefused where it carries none."""
    (looked,), _ = SourceLookup(ROOTS).find([source], Deadline.after(5))
    if isinstance(looked, PointerRefused):
        raise looked
    return looked.pointer


def resolved(source: Mapping[str, Any] | str) -> Any:
    """The pointer of one source, or its code."""
    try:
        return resolve(sources({"sources": [source]})[0])
    except PointerRefused as refused:
        return refused.code


def by_metadata(**metadata: Any) -> Any:
    return resolved({"customMetadata": metadata})


RESPONSE = types.GroundingMetadata(
    grounding_chunks=[
        types.GroundingChunk(
            retrieved_context=types.GroundingChunkRetrievedContext(
                title="Leak",
                text="Close the valve.",
                file_search_store="fileSearchStores/facilities",
                page_number=1,
                custom_metadata=[
                    types.GroundingChunkCustomMetadata(key="source_type", string_value="s3"),
                    types.GroundingChunkCustomMetadata(key="s3_bucket", string_value="kb"),
                    types.GroundingChunkCustomMetadata(key="s3_key", string_value="sops/leak.md"),
                    types.GroundingChunkCustomMetadata(key="s3_region", string_value="eu-north-1"),
                    types.GroundingChunkCustomMetadata(key="s3_force_path_style", string_value="false"),
                    types.GroundingChunkCustomMetadata(key="revision", numeric_value=3.0),
                ],
            )
        ),
        types.GroundingChunk(
            retrieved_context=types.GroundingChunkRetrievedContext(
                custom_metadata=[
                    types.GroundingChunkCustomMetadata(key="source_type", string_value="gcs"),
                    types.GroundingChunkCustomMetadata(key="gcs_bucket", string_value="plans"),
                    types.GroundingChunkCustomMetadata(key="gcs_object", string_value="floors/2.md"),
                    types.GroundingChunkCustomMetadata(
                        key="gcs_generation", numeric_value=1_700_000_000_000_000.0
                    ),
                ]
            )
        ),
        types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://example.org/a", title="A page")),
        types.GroundingChunk(retrieved_context=types.GroundingChunkRetrievedContext(title="Nothing else")),
    ],
    grounding_supports=[types.GroundingSupport(grounding_chunk_indices=[0])],
)


@pytest.mark.parametrize("exclude_none", [True, False])
@pytest.mark.parametrize(("name", "by_alias"), [("groundingMetadata", True), ("grounding_metadata", False)])
def test_a_gemini_response_is_read_as_its_own_library_writes_it(
    name: str, by_alias: bool, exclude_none: bool
) -> None:
    """In both spellings, with or without the fields that are null."""
    dumped = RESPONSE.model_dump(mode="json", by_alias=by_alias, exclude_none=exclude_none)
    first, second, web, bare = sources({name: dumped})
    assert resolve(first) == S3DocumentPointer(
        s3_bucket="kb", s3_key="sops/leak.md", s3_region="eu-north-1", s3_force_path_style=False
    )
    assert resolve(second) == GcsDocumentPointer(
        gcs_bucket="plans", gcs_object="floors/2.md", gcs_generation="1700000000000000"
    )
    codes = []
    for source in (web, bare):
        with pytest.raises(PointerRefused) as refused:
            resolve(source)
        codes.append(refused.value.code)
    assert codes == ["web_source", "metadata_missing"]
    assert (first.title, bare.title) == ("Leak", "Nothing else")


@pytest.mark.parametrize("exclude_none", [True, False])
@pytest.mark.parametrize("by_alias", [True, False])
def test_a_whole_answer_is_read_by_the_chunks_of_its_candidates(by_alias: bool, exclude_none: bool) -> None:
    """It must not pass for grounding metadata that found nothing."""
    grounded = types.Candidate(grounding_metadata=RESPONSE, finish_reason=types.FinishReason.STOP)
    answer = types.GenerateContentResponse(candidates=[grounded, types.Candidate(), grounded])

    def read(value: Any) -> list[KnowledgeSource]:
        dumped = value.model_dump(mode="json", by_alias=by_alias, exclude_none=exclude_none)
        return sources({"groundingMetadata": dumped})

    assert read(answer) == read(RESPONSE) * 2
    assert read(grounded) == read(RESPONSE)
    assert read(types.GenerateContentResponse(model_version="m")) == []


@pytest.mark.parametrize(
    ("chunk", "code"),
    [
        ({"web": {"uri": "https://example.org/"}}, "web_source"),
        ({"maps": {"uri": "https://example.org/"}, "web": None}, "web_source"),
        ({"image": {"sourceUri": "https://example.org/"}}, "web_source"),
        ({}, "metadata_missing"),
        ({"web": None, "retrieved_context": None}, "metadata_missing"),
        ({"hologram": {"title": "a kind of chunk that is not known yet"}}, "metadata_missing"),
    ],
)
def test_only_what_comes_from_the_web_is_a_web_source(chunk: dict[str, Any], code: str) -> None:
    (source,) = sources({"groundingMetadata": {"groundingChunks": [chunk]}})
    with pytest.raises(PointerRefused) as refused:
        resolve(source)
    assert refused.value.code == code


CITATIONS: list[dict[str, Any]] = [
    {"type": "file_citation", "document_uri": "s3://kb/a.md", "file_name": "A", "start_index": 0},
    {"type": "url_citation", "url": "https://example.org/"},
    {"type": "word_info", "text": "no source at all"},
    {"type": "place_citation", "name": "The plant", "url": "https://example.org/map"},
    {"type": "file_citation", "file_name": "B", "custom_metadata": METADATA, "source": "a passage"},
]


@pytest.mark.parametrize(
    "answer",
    [
        {"annotations": CITATIONS},
        {"outputs": [{"type": "text", "text": "x", "annotations": CITATIONS}]},
        {
            "id": "v1_x",
            "steps": [
                {"type": "file_search_call", "arguments": {}},
                {"type": "model_output", "content": [{"type": "text", "text": "a"}]},
                {
                    "type": "model_output",
                    "content": [{"type": "text", "text": "b", "annotations": CITATIONS}],
                },
            ],
        },
    ],
)
def test_an_answer_of_the_interactions_api_is_read_by_its_citations(answer: dict[str, Any]) -> None:
    first, web, place, second = sources({"groundingMetadata": answer})
    assert resolve(first) == S3DocumentPointer(s3_bucket="kb", s3_key="a.md")
    assert (first.title, second.title, web.is_web, place.is_web) == ("A", "B", True, True)
    assert resolve(second) == POINTER


def test_citations_may_be_sources_by_themselves() -> None:
    cited = [each for each in CITATIONS if each["type"] != "word_info"]
    assert sources({"sources": cited}) == sources({"groundingMetadata": {"annotations": cited}})


def test_an_interaction_is_read_as_its_own_library_writes_it() -> None:
    citation = interactions.FileCitation(
        file_name="Leak",
        document_uri="fileSearchStores/facilities/documents/leak-1",
        custom_metadata={"year": 2024},
    )
    answer = interactions.Interaction(
        status="completed",
        steps=[
            interactions.ModelOutputStep(
                content=[interactions.TextContent(text="Close the valve.", annotations=[citation])]
            )
        ],
    )
    (source,) = sources({"groundingMetadata": answer.model_dump(mode="json")})
    assert source.document_name == "fileSearchStores/facilities/documents/leak-1"
    assert (source.title, source.uri, dict(source.custom_metadata)) == ("Leak", None, {"year": 2024})


def test_what_names_a_document_of_a_file_search_store_is_kept() -> None:
    (source,) = sources(
        {
            "sources": [
                {
                    "fileSearchStore": "facilities",
                    "documentName": "fileSearchStores/facilities/documents/leak-1",
                    "title": "Leak",
                    "text": "A passage.",
                    "customMetadata": {"groundwire_id": "abc"},
                }
            ]
        }
    )
    assert source.file_search_store == "fileSearchStores/facilities"
    assert source.document_name == "fileSearchStores/facilities/documents/leak-1"
    assert (source.title, source.text, source.groundwire_id) == ("Leak", "A passage.", "abc")
    assert "passage" not in repr(source)


@pytest.mark.parametrize("value", [7, 7.0, "", "é", "x" * 65, None, ["a"]])
def test_what_can_be_no_id_is_none(value: Any) -> None:
    assert KnowledgeSource(custom_metadata={"groundwire_id": value}).groundwire_id is None


@pytest.mark.parametrize("metadata", [{}, {"groundingChunks": None}, {"grounding_chunks": []}, {"other": 1}])
def test_a_response_without_chunks_has_no_sources(metadata: dict[str, Any]) -> None:
    """Some models return none, and that is an answer."""
    assert sources({"groundingMetadata": metadata}) == []


@pytest.mark.parametrize(
    "metadata",
    [
        METADATA,
        [{"key": key, "stringValue": value} for key, value in METADATA.items()],
        [{"key": key, "string_value": value} for key, value in METADATA.items()],
        [{"key": key, "stringValue": value, "numericValue": None} for key, value in METADATA.items()],
        [{"key": key, "stringValue": None, "string_value": value} for key, value in METADATA.items()],
    ],
)
@pytest.mark.parametrize("name", ["customMetadata", "custom_metadata"])
def test_metadata_is_an_object_or_a_list_of_entries(name: str, metadata: Any) -> None:
    assert resolved({"title": "Leak", name: metadata, "unknown": [1]}) == POINTER


@pytest.mark.parametrize(
    ("value", "style"),
    [
        *((value, True) for value in ("true", "True", "1", "yes", True, 1.0, 1)),
        *((value, False) for value in ("false", "0", "no", False, 0.0, 0, "maybe")),
    ],
)
def test_booleans_may_be_text_or_numbers(value: Any, style: bool) -> None:
    """The service stores none."""
    assert by_metadata(**METADATA, s3_force_path_style=value).s3_force_path_style is style


@pytest.mark.parametrize(
    ("value", "text"), [(17.0, "17"), (17, "17"), ("17", "17"), (1.5, "1.5"), (2.0**60, str(2**60))]
)
def test_numbers_become_text_without_a_fraction(value: Any, text: str) -> None:
    """The service returns every number as a float."""
    pointer = by_metadata(source_type="gcs", gcs_bucket="b", gcs_object="o", gcs_generation=value)
    assert pointer.gcs_generation == text


@pytest.mark.parametrize("missing", ["s3_bucket", "s3_key"])
@pytest.mark.parametrize("value", [None, "", [], {}])
def test_an_incomplete_pointer_is_passed_over(missing: str, value: Any) -> None:
    """G-3: for the source's URI, where it has one."""
    metadata = METADATA | {missing: value}
    assert by_metadata(**metadata) == "metadata_missing"
    source = {"customMetadata": metadata, "uri": "s3://kb/other.md"}
    assert resolved(source) == S3DocumentPointer(s3_bucket="kb", s3_key="other.md")


@pytest.mark.parametrize(
    ("metadata", "pointer"),
    [
        ({"sharepoint_drive_id": "d"}, "metadata_missing"),
        ({"sharepoint_path": "p"}, "metadata_missing"),
        (
            {"sharepoint_drive_id": "d", "sharepoint_path": "p"},
            SharePointDocumentPointer(sharepoint_drive_id="d", sharepoint_path="p"),
        ),
        (
            {"sharepoint_drive_id": "d", "sharepoint_item_id": "i", "sharepoint_site_id": "s"},
            SharePointDocumentPointer(
                sharepoint_drive_id="d", sharepoint_item_id="i", sharepoint_site_id="s"
            ),
        ),
    ],
)
def test_a_sharepoint_pointer_needs_a_drive_and_an_item_or_a_path(
    metadata: dict[str, Any], pointer: Any
) -> None:
    assert by_metadata(source_type="sharepoint", **metadata) == pointer


def test_the_sources_own_pointer_comes_before_its_uri() -> None:
    assert resolved({"customMetadata": METADATA, "uri": "gs://plans/x.md"}) == POINTER


@pytest.mark.parametrize("source_type", ["ftp", "S3", "", 3.0, ["s3"]])
def test_a_source_type_nobody_knows_has_its_own_code(source_type: Any) -> None:
    assert by_metadata(**METADATA | {"source_type": source_type}) == "source_type_unknown"


@pytest.mark.parametrize("source", [{}, {"title": "Leak"}, {"customMetadata": {"author": "x"}}, {"uri": ""}])
def test_metadata_without_a_pointer_is_no_pointer(source: dict[str, Any]) -> None:
    assert resolved(source) == "metadata_missing"


@pytest.mark.parametrize(
    ("uri", "pointer"),
    [
        ("s3://kb/a%20b c?d#e.md", S3DocumentPointer(s3_bucket="kb", s3_key="a%20b c?d#e.md")),
        ("s3://kb//a//b/../c.md", S3DocumentPointer(s3_bucket="kb", s3_key="/a//b/../c.md")),
        ("gs://kb/läm.md", GcsDocumentPointer(gcs_bucket="kb", gcs_object="läm.md")),
        ("local://kb/a/b.md", LocalDocumentPointer(local_root="kb", local_path="a/b.md")),
        (
            "sharepoint://b!X/HR/Leave Policy.md",
            SharePointDocumentPointer(sharepoint_drive_id="b!X", sharepoint_path="HR/Leave Policy.md"),
        ),
    ],
)
def test_a_uri_is_read_as_it_is(uri: str, pointer: Any) -> None:
    """Section 1: keys are raw; nothing is decoded, folded or cut off."""
    assert resolved(uri) == resolved({"uri": uri}) == pointer_from_uri(uri, ROOTS) == pointer


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.org/x.md",
        "S3://kb/x.md",
        "gcs://kb/x.md",
        "s3:/kb/x.md",
        "s3://kb",
        "s3://kb/",
        "s3:///x.md",
        "kb/x.md",
        "file:///etc/passwd",
        " s3://kb/x.md",
        "",
    ],
)
def test_other_uris_are_unsupported(uri: str) -> None:
    with pytest.raises(PointerRefused) as refused:
        pointer_from_uri(uri, ROOTS)
    assert refused.value.code == "uri_unsupported"


@given(uri=st.text(max_size=40) | st.text(max_size=20).map("s3://kb/".__add__))
def test_any_text_is_a_uri_or_refused(uri: str) -> None:
    try:
        pointer = pointer_from_uri(uri, ROOTS)
    except PointerRefused:
        return
    assert isinstance(pointer, GcsDocumentPointer) or uri.endswith(
        str(getattr(pointer, "s3_key", "") or getattr(pointer, "local_path", ""))
    )


@pytest.mark.parametrize(
    "written",
    [METADATA, {"sourceType": "s3", "s3Bucket": "kb", "s3Key": "sops/leak.md", "s3Region": "eu-north-1"}],
)
def test_a_pointer_is_a_source_in_both_spellings(written: dict[str, Any]) -> None:
    assert resolved(written) == POINTER


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ({"source_type": "ftp"}, "source_type_unknown"),
        ({"sourceType": "S3", "s3Bucket": "kb", "s3Key": "a.md"}, "source_type_unknown"),
        ({"source_type": "s3", "s3_bucket": "kb"}, "metadata_missing"),
        ({"sourceType": "s3", "s3Bucket": "kb", "s3Key": ""}, "metadata_missing"),
        ({"source_type": "sharepoint", "sharepoint_drive_id": "d"}, "metadata_missing"),
        ({"source_type": None, "s3_bucket": "kb", "s3_key": "a.md"}, "metadata_missing"),
    ],
)
def test_a_pointer_that_leads_nowhere_costs_its_own_source_a_code(written: dict[str, Any], code: str) -> None:
    """G-3: every source ends in one; the others of the request are answered."""
    found = sources({"sources": [written, METADATA]})
    with pytest.raises(PointerRefused) as refused:
        resolve(found[0])
    assert (refused.value.code, resolve(found[1])) == (code, POINTER)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({}, "sources"),
        ({"sources": None}, "sources"),
        ({"sources": [], "groundingMetadata": {}}, "sources"),
        ({"sources": "s3://kb/x.md"}, "sources"),
        ({"sources": {"0": "s3://kb/x.md"}}, "sources"),
        ({"sources": ["s3://kb/x.md"] * 51}, "sources"),
        ({"sources": [7]}, "sources.0"),
        ({"sources": ["s3://kb/x.md", None]}, "sources.1"),
        ({"sources": [{"uri": 7}]}, "sources.0.uri"),
        ({"sources": [{"title": ["x"]}]}, "sources.0.title"),
        ({"sources": [{"customMetadata": "x"}]}, "sources.0.customMetadata"),
        ({"sources": [{"customMetadata": 7}]}, "sources.0.customMetadata"),
        ({"sources": [{"custom_metadata": [{"key": "a"}, "b"]}]}, "sources.0.customMetadata.1"),
        ({"sources": [{"customMetadata": [{"stringValue": "a"}]}]}, "sources.0.customMetadata.0"),
        ({"sources": [{"source_type": ["s3"]}]}, "sources.0.source_type"),
        ({"sources": [{"sourceType": "s3", "s3Bucket": "kb", "s3Key": {}}]}, "sources.0.s3_key"),
        ({"groundingMetadata": []}, "groundingMetadata"),
        ({"groundingMetadata": "x"}, "groundingMetadata"),
        ({"groundingMetadata": {"groundingChunks": "x"}}, "groundingMetadata.groundingChunks"),
        ({"groundingMetadata": {"groundingChunks": {"0": {}}}}, "groundingMetadata.groundingChunks"),
        ({"groundingMetadata": {"groundingChunks": [1]}}, "groundingMetadata.groundingChunks.0"),
        (
            {"grounding_metadata": {"grounding_chunks": [{"retrieved_context": "s3://kb/x.md"}]}},
            "groundingMetadata.groundingChunks.0.retrievedContext",
        ),
        (
            {"groundingMetadata": {"groundingChunks": [{}, {"retrievedContext": {"uri": 1}}]}},
            "groundingMetadata.groundingChunks.1.retrievedContext.uri",
        ),
        ({"groundingMetadata": {"groundingChunks": [{}] * 51}}, "groundingMetadata"),
        ({"groundingMetadata": {"steps": "x"}}, "groundingMetadata.steps"),
        ({"groundingMetadata": {"steps": [{"content": [7]}]}}, "groundingMetadata.steps.0.content.0"),
        (
            {"groundingMetadata": {"annotations": [{"type": "file_citation", "document_uri": 7}]}},
            "groundingMetadata.annotations.0.documentUri",
        ),
        ({"groundingMetadata": {"candidates": "x"}}, "groundingMetadata.candidates"),
        (
            {"groundingMetadata": {"candidates": [{}, {"groundingMetadata": "x"}]}},
            "groundingMetadata.candidates.1.groundingMetadata",
        ),
        (
            {"groundingMetadata": {"grounding_metadata": {"grounding_chunks": [7]}}},
            "groundingMetadata.groundingMetadata.groundingChunks.0",
        ),
        ({"sources": [{"fileSearchStore": 7}]}, "sources.0.fileSearchStore"),
        ({"sources": [{"document_name": {}}]}, "sources.0.documentName"),
    ],
)
def test_a_wrong_shape_is_refused_by_name(request_: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        sources(request_)
    assert refused.value.field == field


def test_fifty_sources_are_allowed() -> None:
    assert len(sources({"sources": ["s3://kb/x.md"] * 50})) == 50


def test_a_written_pointer_says_what_it_lacks() -> None:
    with pytest.raises(InvalidRequest, match="must be one of s3"):
        pointer_from({"source_type": "ftp"}, "pointer")
    with pytest.raises(InvalidRequest, match="s3_bucket and s3_key"):
        pointer_from({"source_type": "s3"}, "pointer")
    with pytest.raises(InvalidRequest, match="sharepoint_item_id or sharepoint_path"):
        pointer_from({"source_type": "sharepoint"}, "pointer")


NAMES = (
    "steps content annotations type candidates groundingMetadata groundingChunks retrievedContext"
    " customMetadata key stringValue uri title web source_type sourceType"
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["s3", "kb", "s3://kb/x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*NAMES.split(), "s3_bucket", "s3_key", "s3_endpoint"]), inner, max_size=5
        )
    ),
    max_leaves=20,
)


@given(name=st.sampled_from(["sources", "groundingMetadata"]), value=JSON)
def test_whatever_comes_is_resolved_or_refused(name: str, value: Any) -> None:
    """No other error for anything JSON can hold."""
    try:
        found = sources({name: value})
    except InvalidRequest:
        return
    for source in found:
        assert isinstance(source, KnowledgeSource)
        with contextlib.suppress(PointerRefused):
            resolve(source)
