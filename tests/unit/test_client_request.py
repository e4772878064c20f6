"""What a search gives an application becomes a request that the API reads the same way (G-1)."""

from typing import Any

import pytest

from groundwire.client_request import compose_request, ground_request, overrides
from groundwire.errors import InvalidRequest
from groundwire.fetching import PrepareDocumentOptions
from groundwire.pointers import S3DocumentPointer, SharePointDocumentPointer
from groundwire.policy import CompositionPolicy
from groundwire.resolution import KnowledgeSource, sources

POINTER = {"source_type": "s3", "s3_bucket": "kb", "s3_key": "a.md"}
CHUNK = {"retrievedContext": {"title": "A", "customMetadata": [{"key": "a", "stringValue": "b"}]}}
CITED = {"type": "file_citation", "document_uri": "fileSearchStores/s/documents/d", "file_name": "A"}
METADATA = {"groundingChunks": [CHUNK], "groundingSupports": [{"groundingChunkIndices": [0]}]}


class Dumps:
    """As google-genai's objects do it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def model_dump(self, **options: Any) -> Any:
        assert options == {"mode": "json", "by_alias": True, "exclude_none": True}
        return self._value


CHUNKS = {"groundingMetadata": {"groundingChunks": [CHUNK]}}


@pytest.mark.parametrize(
    ("found", "request_"),
    [
        (None, {"groundingMetadata": {}}),
        ({}, {"groundingMetadata": {}}),
        ([], {"sources": []}),
        (METADATA, {"groundingMetadata": METADATA}),
        (Dumps(METADATA), {"groundingMetadata": METADATA}),
        ({"grounding_chunks": [CHUNK]}, {"groundingMetadata": {"grounding_chunks": [CHUNK]}}),
        ({"webSearchQueries": ["x"]}, {"groundingMetadata": {"webSearchQueries": ["x"]}}),
        ({"candidates": [{"groundingMetadata": METADATA}]}, CHUNKS),
        ({"candidates": [{"grounding_metadata": {"grounding_chunks": [CHUNK]}}, {}]}, CHUNKS),
        (Dumps({"candidates": [{"groundingMetadata": METADATA}], "modelVersion": "m"}), CHUNKS),
        ({"candidates": [{"groundingMetadata": None}]}, {"groundingMetadata": {"groundingChunks": []}}),
        ({"content": {}, "groundingMetadata": METADATA}, CHUNKS),
        (Dumps({"content": {}, "finishReason": "STOP"}), {"groundingMetadata": {"groundingChunks": []}}),
        (
            [{"documentUri": "fileSearchStores/s/documents/d"}, {"fileName": "A"}, CITED],
            {"sources": [{"documentUri": "fileSearchStores/s/documents/d"}, {"fileName": "A"}, CITED]},
        ),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, {"groundingMetadata": {"groundingChunks": []}}),
        ([CHUNK], CHUNKS),
        ((Dumps(CHUNK),), CHUNKS),
        (Dumps(CHUNK), CHUNKS),
        ({"annotations": [CITED]}, {"groundingMetadata": {"annotations": [CITED]}}),
        (
            Dumps({"id": "1", "status": "completed"}),
            {"groundingMetadata": {"id": "1", "status": "completed"}},
        ),
        ("s3://kb/a.md", {"sources": ["s3://kb/a.md"]}),
        (["s3://kb/a.md", POINTER], {"sources": ["s3://kb/a.md", POINTER]}),
        (POINTER, {"sources": [POINTER]}),
        (S3DocumentPointer(s3_bucket="kb", s3_key="a.md"), {"sources": [POINTER]}),
        (
            [SharePointDocumentPointer(sharepoint_drive_id="d", sharepoint_path="a.md", display_name="A")],
            {
                "sources": [
                    {
                        "source_type": "sharepoint",
                        "sharepoint_drive_id": "d",
                        "sharepoint_path": "a.md",
                        "display_name": "A",
                    }
                ]
            },
        ),
        ({"customMetadata": POINTER}, {"sources": [{"customMetadata": POINTER}]}),
        (
            [KnowledgeSource(title="A", file_search_store="fileSearchStores/s", custom_metadata={"a": "b"})],
            {
                "sources": [
                    {"title": "A", "custom_metadata": {"a": "b"}, "file_search_store": "fileSearchStores/s"}
                ]
            },
        ),
    ],
)
def test_each_form_becomes_a_request_that_the_api_takes(found: Any, request_: dict[str, Any]) -> None:
    assert ground_request(found) == request_
    sources(request_)


def test_a_source_comes_back_as_it_was() -> None:
    source = KnowledgeSource(
        uri="u",
        title="A",
        custom_metadata={"a": "b"},
        file_search_store="fileSearchStores/s",
        document_name="fileSearchStores/s/documents/d",
        text="cut",
    )
    pointed = KnowledgeSource(pointer=S3DocumentPointer(s3_bucket="kb", s3_key="a.md"))
    assert sources(ground_request([source, pointed])) == [source, pointed]


@pytest.mark.parametrize(
    "found",
    [
        {"x": 1},
        {"message": "no"},
        [{"x": 1}],
        [None],
        [7],
        7,
        b"s3://kb/a.md",
        object(),
        [CHUNK, "s3://kb/a.md"],
        {"candidates": [7]},
        CompositionPolicy(),
        [KnowledgeSource(is_web=True)],
        [["s3://kb/a.md"]],
    ],
)
def test_what_no_search_returns_is_no_search_that_found_nothing(found: Any) -> None:
    with pytest.raises(InvalidRequest):
        ground_request(found)


def test_one_document() -> None:
    assert compose_request("s3://kb/a.md") == {"uri": "s3://kb/a.md"}
    assert compose_request(S3DocumentPointer(s3_bucket="kb", s3_key="a.md")) == {"pointer": POINTER}
    assert compose_request(POINTER) == {"pointer": POINTER}
    for wrong in ({"uri": "s3://kb/a.md"}, ["s3://kb/a.md"], None):
        with pytest.raises(InvalidRequest):
            compose_request(wrong)  # type: ignore[arg-type]


def test_what_is_not_said_is_left_to_the_service() -> None:
    assert overrides() == {}
    assert overrides(composition_policy="off") == {"compositionPolicy": None}
    assert overrides(composition_policy=CompositionPolicy(max_depth=1))["compositionPolicy"]["maxDepth"] == 1
    assert overrides(prepare=PrepareDocumentOptions(use_files_api="auto")) == {
        "prepareDocumentOptions": {"forceContentType": None, "useFilesApi": "auto"}
    }
    with pytest.raises(InvalidRequest, match="off"):
        overrides(composition_policy="none")
