"""Grounding and composing over HTTP: every right request, and answers that no index changes (G, B-9)."""

import base64
import json
from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

import pytest

from groundwire.adapters.sqs import REPAIR
from groundwire.prefetch import Prefetch
from tests.cloud import Cloud
from tests.integration.driving import deliver, get, post, upload

PDF = b"%PDF-1.7\n\xff\xfe"
FILES: dict[str, str | bytes] = {
    "sops/no-heat.md": "---\ntitle: No heat\nincludes: [../terms.md, ../duty.md, gone.md]\n---\nCheck.\n",
    "terms.md": "---\ntitle: Terms\nincludes: [deep/er.md]\n---\nWords: lämpö, 熱.\n",
    "duty.md": "---\nincludes: [sops/no-heat.md]\n---\nAda.\n",
    "deep/er.md": "---\nincludes: [est.md]\n---\nDeeper.\n",
    "deep/est.md": "Deepest.\n",
    "plan.pdf": PDF,
    "+%20 é.md": "Odd.\n",
}


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    upload(shared_cloud, FILES)
    return shared_cloud


def pointer(cloud: Cloud, key: str, **more: Any) -> dict[str, Any]:
    return {"source_type": "s3", "s3_bucket": cloud.bucket, "s3_key": key, **more}


def ground(body: dict[str, Any]) -> dict[str, Any]:
    answer = post("/v1/ground", body)
    assert answer.status == 200, answer.body
    assert answer.content_type == "application/json"
    result: dict[str, Any] = answer.json
    return result


def compose(body: dict[str, Any]) -> dict[str, Any]:
    answer = post("/v1/compose", body)
    assert answer.status == 200, answer.body
    result: dict[str, Any] = answer.json
    return result


def keys(cloud: Cloud, documents: list[dict[str, Any]]) -> list[str]:
    return [each["uri"].removeprefix(f"s3://{cloud.bucket}/") for each in documents]


def pairs(values: dict[str, Any], text: str = "stringValue") -> list[dict[str, Any]]:
    return [{"key": key, text: value} for key, value in values.items()]


SOURCES: dict[str, Callable[[Cloud], Any]] = {
    "a URI": lambda kb: kb.uri("terms.md"),
    "a source with a URI": lambda kb: {"uri": kb.uri("terms.md"), "title": "Terms"},
    "a pointer": lambda kb: pointer(kb, "terms.md"),
    "a pointer in camelCase": lambda kb: {
        "sourceType": "s3",
        "s3Bucket": kb.bucket,
        "s3Key": "terms.md",
        "displayName": "T",
    },
    "a pointer with its region": lambda kb: pointer(kb, "terms.md", s3_region="eu-north-1"),
    "metadata": lambda kb: {"customMetadata": pairs(pointer(kb, "terms.md"))},
    "metadata in snake_case": lambda kb: {"custom_metadata": pairs(pointer(kb, "terms.md"), "string_value")},
    "metadata as an object": lambda kb: {"customMetadata": pointer(kb, "terms.md")},
    "metadata before the URI": lambda kb: {
        "uri": "https://generativelanguage.googleapis.com/x",
        "customMetadata": pairs(pointer(kb, "terms.md")),
    },
    "the URI where metadata is incomplete": lambda kb: {
        "uri": kb.uri("terms.md"),
        "customMetadata": pairs({"source_type": "s3", "s3_bucket": kb.bucket}),
    },
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_each_form_of_a_source_leads_to_its_document(kb: Cloud, source: Callable[[Cloud], Any]) -> None:
    result = ground({"sources": [source(kb)], "overrides": {"compositionPolicy": None}})
    assert keys(kb, result["allDocumentsForAttachment"]) == ["terms.md"]
    assert result["sources"] == [
        {"index": 0, "status": "resolved", "uri": kb.uri("terms.md"), "code": None, "detail": None}
    ]


@pytest.mark.parametrize(
    ("metadata", "chunks", "context"),
    [
        ("groundingMetadata", "groundingChunks", "retrievedContext"),
        ("grounding_metadata", "grounding_chunks", "retrieved_context"),
    ],
)
def test_grounding_metadata_as_it_came(kb: Cloud, metadata: str, chunks: str, context: str) -> None:
    chunk = {
        context: {
            "title": "No heat",
            "text": "Check.",
            "uri": None,
            "customMetadata": pairs(pointer(kb, "terms.md")),
        }
    }
    body = {
        metadata: {
            chunks: [chunk, chunk, {"web": {"uri": "https://example.com"}}],
            "groundingSupports": [{"segment": {"text": "x"}, "groundingChunkIndices": [0]}],
            "webSearchQueries": [],
        },
        "ctx": {"userId": 123, "auditingId": "a-1"},
    }
    result = ground(body)
    assert keys(kb, result["allDocumentsForAttachment"]) == ["terms.md", "deep/er.md", "deep/est.md"]
    assert [each["code"] for each in result["sources"]] == [None, None, "web_source"]
    assert result["complete"] is True


@pytest.mark.parametrize(
    "body", [{"sources": []}, {"groundingMetadata": {}}, {"groundingMetadata": {"x": 1}}]
)
def test_no_sources_is_an_empty_answer(kb: Cloud, body: dict[str, Any]) -> None:
    result = ground(body)
    assert (result["allDocumentsForAttachment"], result["sources"]) == ([], [])
    assert result["complete"] is True


def test_a_document_says_all_that_is_known_of_it(kb: Cloud) -> None:
    result = ground({"sources": [pointer(kb, "terms.md", display_name="Glossary")]})
    (prepared,) = result["preparedDocuments"]
    (attached, *_) = result["allDocumentsForAttachment"]
    text = str(FILES["terms.md"])
    assert attached["text"] == text
    assert attached | {"text": None} == prepared | {"text": None}
    assert "text" not in prepared, "a body stands once"
    assert (prepared["displayName"], prepared["mimeType"]) == ("Glossary", "text/markdown")
    assert prepared["sizeBytes"] == len(text.encode())
    assert result["pointers"][0]["s3_key"] == "terms.md"
    assert result["timings"].keys() >= {"resolveMs", "fetchMs", "composeMs", "totalMs"}
    assert len(result["bundleId"]) == 64


def test_what_is_no_text_comes_as_bytes(kb: Cloud) -> None:
    (document,) = ground({"sources": [kb.uri("plan.pdf")]})["allDocumentsForAttachment"]
    assert document["geminiDocument"]["mimeType"] == "application/pdf"
    assert base64.b64decode(document["geminiDocument"]["data"], validate=True) == PDF


def test_overrides_are_heard_in_both_spellings(kb: Cloud) -> None:
    camel = {"compositionPolicy": {"maxDepth": 1}, "maxDocuments": 1, "allowedSourceTypes": ["s3"]}
    snake = {"composition_policy": {"max_depth": 1}, "max_documents": 1, "allowed_source_types": ["s3"]}
    sources = [kb.uri("terms.md"), kb.uri("duty.md")]
    results = [ground({"sources": sources, "overrides": each}) for each in (camel, snake)]
    for result in results:
        assert keys(kb, result["allDocumentsForAttachment"]) == ["terms.md", "deep/er.md"]
        assert [each["code"] for each in result["sources"]] == [None, "over_max_documents"]
        assert result["compositionBundles"][0]["policy"]["maxDepth"] == 1
        assert result["complete"] is False
    assert results[0]["bundleId"] == results[1]["bundleId"]


def test_no_policy_no_includes(kb: Cloud) -> None:
    result = ground({"sources": [kb.uri("terms.md")], "overrides": {"compositionPolicy": None}})
    assert result["compositionBundles"] is None
    assert keys(kb, result["allDocumentsForAttachment"]) == ["terms.md"]
    assert result["complete"] is False, "what it includes is not in the answer"


def test_a_source_type_that_is_not_allowed(kb: Cloud) -> None:
    result = ground({"sources": [kb.uri("terms.md")], "overrides": {"allowedSourceTypes": ["gcs"]}})
    assert [each["code"] for each in result["sources"]] == ["source_type_not_allowed"]


def test_text_is_handed_over_as_bytes_where_that_is_asked(kb: Cloud) -> None:
    overrides = {"prepareDocumentOptions": {"forceContentType": "attachment"}}
    (document, *_) = ground({"sources": [kb.uri("terms.md")], "overrides": overrides})[
        "allDocumentsForAttachment"
    ]
    assert base64.b64decode(document["geminiDocument"]["data"]).decode() == FILES["terms.md"]


def test_five_documents_where_nobody_says_how_many(kb: Cloud) -> None:
    sources = [kb.uri(key) for key in [*FILES, "gone.md"]]
    codes = [each["code"] for each in ground({"sources": sources})["sources"]]
    assert codes == [None] * 5 + ["over_max_documents"] * 3


def test_compose_by_uri_and_by_pointer_is_the_same(kb: Cloud) -> None:
    by_uri = compose({"uri": kb.uri("sops/no-heat.md")})
    by_pointer = compose({"pointer": pointer(kb, "sops/no-heat.md")})
    assert keys(kb, [by_uri["root"], *by_uri["included"]]) == [
        "sops/no-heat.md",
        "terms.md",
        "duty.md",
        "deep/er.md",
    ]
    assert [(each["relativePath"], each["reason"], each["code"]) for each in by_uri["skipped"]] == [
        ("gone.md", "fetch_failed", "not_found"),
        ("sops/no-heat.md", "cycle", "ancestor"),
        ("est.md", "depth_exceeded", None),
    ]
    assert (by_uri["complete"], by_uri["aborted"]) == (False, False)
    assert by_pointer["bundleId"] == by_uri["bundleId"]
    assert by_pointer["edges"] == by_uri["edges"]


def test_compose_reads_an_odd_key_as_it_is(kb: Cloud) -> None:
    assert compose({"uri": kb.uri("+%20 é.md")})["root"]["text"] == "Odd.\n"
    assert get("/v1/documents", uri=kb.uri("+%20 é.md")).json["uri"] == kb.uri("+%20 é.md")


def test_an_aborted_search_says_so(kb: Cloud) -> None:
    overrides = {"compositionPolicy": {"onFetchError": "abort"}}
    bundle = compose({"uri": kb.uri("sops/no-heat.md"), "overrides": overrides})
    assert (bundle["aborted"], bundle["complete"]) == (True, False)


def test_other_scripts_are_not_escaped(kb: Cloud) -> None:
    assert "lämpö, 熱" in post("/v1/compose", {"uri": kb.uri("terms.md")}).body


# -- no index changes an answer -----------------------------------------------------------------


@pytest.fixture
def index_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is read before any document: what it says is reported only where it was read in time."""
    fetch_roots = Prefetch.fetch_roots

    def late(self: Prefetch, *arguments: Any) -> Any:
        wait([self._plan] if self._plan else [])
        return fetch_roots(self, *arguments)

    monkeypatch.setattr(Prefetch, "fetch_roots", late)


def answers(cloud: Cloud) -> list[Any]:
    """What is answered, without what may differ: how long it took, and what is said of the index."""
    ground_body = {"sources": [cloud.uri("sops/no-heat.md"), cloud.uri("terms.md")]}
    found = [ground(ground_body), compose({"uri": cloud.uri("sops/no-heat.md")})]
    for each in found:
        each.pop("timings", None)
        each.pop("indexStale", None)
    return found


def repaired(cloud: Cloud) -> list[str]:
    """The keys that the grounding function asked the indexer to look at, and the queue is empty again."""
    messages = [each for each in cloud.messages(cloud.queue) if REPAIR in each["Body"]]
    for each in messages:
        cloud.sqs.delete_message(QueueUrl=cloud.queue, ReceiptHandle=each["ReceiptHandle"])
    return sorted({doc["key"] for each in messages for doc in json.loads(each["Body"])["documents"]})


def put_all(cloud: Cloud) -> None:
    for key, content in FILES.items():
        cloud.put(key, content)


@pytest.mark.usefixtures("index_first")
def test_a_fresh_an_empty_a_stale_and_no_index_give_one_answer(cloud: Cloud) -> None:
    put_all(cloud)
    empty = answers(cloud)
    assert "sops/no-heat.md" in repaired(cloud)

    upload(cloud, FILES)
    assert answers(cloud) == empty
    assert repaired(cloud) == []
    assert ground({"sources": [cloud.uri("terms.md")]})["indexStale"] == []

    upload(cloud, {"sops/no-heat.md": "---\nincludes: [deep/est.md]\n---\n", "deep/er.md": "Nothing.\n"})
    put_all(cloud)
    assert answers(cloud) == empty
    assert repaired(cloud) == ["deep/er.md", "sops/no-heat.md"]

    cloud.environment(AWS_ENDPOINT_URL_DYNAMODB="http://127.0.0.1:1")
    assert answers(cloud) == empty
    assert repaired(cloud) == []
    for path in ("/v1/documents", "/v1/graph"):
        answer = get(path, uri=cloud.uri("terms.md"))
        assert (answer.status, answer.content_type) == (503, "application/problem+json")
        assert answer.headers["Retry-After"]

    cloud.environment(AWS_ENDPOINT_URL_DYNAMODB=cloud.endpoint, GROUNDWIRE_TABLE="no-such-table")
    assert answers(cloud) == empty


@pytest.mark.usefixtures("index_first")
def test_a_repair_that_is_asked_for_mends_the_index(cloud: Cloud) -> None:
    put_all(cloud)
    uri = cloud.uri("deep/est.md")
    assert ground({"sources": [uri]})["indexStale"] == [uri]
    (message,) = cloud.messages(cloud.queue)
    assert deliver(message["Body"]) == []
    assert ground({"sources": [uri]})["indexStale"] == []


def test_an_answer_is_given_even_where_no_repair_can_be_asked_for(cloud: Cloud) -> None:
    put_all(cloud)
    cloud.environment(GROUNDWIRE_INDEX_QUEUE_URL=cloud.queue + "-gone")
    assert ground({"sources": [cloud.uri("terms.md")]})["complete"] is True


@pytest.mark.usefixtures("index_first")
def test_a_node_of_an_old_version_is_reported(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "one"})
    cloud.put("a.md", "two")
    result = ground({"sources": [cloud.uri("a.md")]})
    assert result["indexStale"] == [cloud.uri("a.md")]
    assert result["allDocumentsForAttachment"][0]["text"] == "two"


@pytest.mark.usefixtures("index_first")
def test_frontmatter_that_repeats_itself_is_not_stale_for_ever(cloud: Cloud) -> None:
    """A node holds the beginning of what was written; an answer is compared with that."""
    upload(cloud, {"a.md": "---\nincludes:\n- &a '" + "x" * 3_000 + "'\n" + "- *a\n" * 50 + "---\n"})
    assert ground({"sources": [cloud.uri("a.md")]})["indexStale"] == []
