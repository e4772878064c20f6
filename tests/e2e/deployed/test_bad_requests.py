"""Whatever a caller sends is answered by the API, as problem details that name what is wrong."""

from typing import Any

import pytest

from tests.e2e.deployed.stack import Stack

_CHUNKS: dict[str, Any] = {"groundingMetadata": {"groundingChunks": []}}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"groundingMetadata": "text"}, "groundingMetadata", id="wrong type"),
        pytest.param({**_CHUNKS, "surprise": 1}, "surprise", id="unknown field"),
        pytest.param(
            {**_CHUNKS, "overrides": {"compositionPolicy": {"maxDepth": -1}}},
            "overrides.compositionPolicy.maxDepth",
            id="negative depth",
        ),
        pytest.param(
            {**_CHUNKS, "overrides": {"maxDocuments": "5"}}, "overrides.maxDocuments", id="text for a number"
        ),
    ],
)
def test_bad_input_is_a_problem_that_names_the_field(stack: Stack, body: dict[str, Any], field: str) -> None:
    answer = stack.api.post("/v1/ground", body)
    assert (answer.status, answer.content_type) == (400, "application/problem+json")
    assert field in [error["field"] for error in answer.json()["errors"]]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[]", b"null"])
def test_a_body_that_is_no_object_is_a_problem(stack: Stack, body: bytes) -> None:
    answer = stack.api.post("/v1/ground", body)
    assert (answer.status, answer.content_type) == (400, "application/problem+json")


def test_a_document_nobody_uploaded_is_not_found(stack: Stack, folder: str) -> None:
    answers = [
        stack.asked(f"{folder}/none.md"),
        stack.api.get("/v1/graph", uri=stack.uri(f"{folder}/none.md")),
        stack.api.post("/v1/compose", {"uri": stack.uri(f"{folder}/none.md")}),
        stack.api.get("/v1/documents", uri="s3://somebody-elses-bucket/a.md"),
    ]
    assert [answer.status for answer in answers] == [404] * 4
    assert {answer.content_type for answer in answers} == {"application/problem+json"}


@pytest.mark.parametrize("uri", ["", "no-uri", "https://example.com/a.md", "s3://"])
def test_what_is_no_document_s_uri_is_refused(stack: Stack, uri: str) -> None:
    answer = stack.api.get("/v1/documents", uri=uri)
    assert (answer.status, answer.content_type) == (400, "application/problem+json")
