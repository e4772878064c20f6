"""An answer always fits (G-7): the largest bodies become URLs that work until it is small enough."""

import json
import urllib.request
from typing import Any

import pytest

from groundwire.limits import RESPONSE_BYTES
from tests.cloud import Cloud
from tests.integration.driving import Answer, get, post, upload

MB = 1024 * 1024
SIZES = {"a.md": 1 * MB, "b.md": 3 * MB, "c.md": 2 * MB, "d.md": 2 * MB}


def text(size: int, line: str = "Check the thermostat.\n") -> str:
    return (line * (size // len(line) + 1))[:size]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """An envelope of 200 KB, for what need not be shown at full size."""
    monkeypatch.setattr("groundwire.delivery.RESPONSE_BYTES", 200_000)
    return 200_000


def runtime_bytes(answer: Answer) -> int:
    """What the Lambda runtime sends for this answer: the body once more as a JSON string."""
    envelope = {"statusCode": answer.status, "headers": answer.headers, "body": answer.body}
    return len(json.dumps(envelope | {"isBase64Encoded": False}, ensure_ascii=False).encode())


def read(url: str) -> bytes:
    with urllib.request.urlopen(url) as reply:
        content: bytes = reply.read()
        return content


def moved(documents: list[dict[str, Any]]) -> list[str]:
    return [each["uri"].rsplit("/", 1)[1] for each in documents if "downloadUrl" in each]


def ground(cloud: Cloud, *keys: str) -> tuple[Answer, list[dict[str, Any]]]:
    answer = post("/v1/ground", {"sources": [cloud.uri(key) for key in keys]})
    assert answer.status == 200, answer.body[:500]
    return answer, answer.json["allDocumentsForAttachment"]


def test_the_largest_documents_become_urls_that_work(cloud: Cloud) -> None:
    upload(cloud, {key: text(size) for key, size in SIZES.items()})
    answer, documents = ground(cloud, *SIZES)
    assert runtime_bytes(answer) <= RESPONSE_BYTES
    assert moved(documents) == ["b.md"]
    for document, (key, size) in zip(documents, SIZES.items(), strict=True):
        if "downloadUrl" in document:
            assert read(document["downloadUrl"]["url"]) == text(size).encode()
            assert document["downloadUrl"]["expiresAt"]
            assert not document.keys() & {"text", "geminiDocument"}
        else:
            assert document["text"] == text(size), key
        assert document["sizeBytes"] == size
    assert answer.json["complete"] is True


def test_compose_fits_too(cloud: Cloud) -> None:
    root = "---\nincludes: [b.md, c.md, d.md]\n---\n"
    upload(cloud, {"a.md": root, "b.md": text(3 * MB), "c.md": text(2 * MB), "d.md": text(2 * MB)})
    overrides = {"compositionPolicy": {"maxIncludeBytes": 20 * MB}}
    answer = post("/v1/compose", {"uri": cloud.uri("a.md"), "overrides": overrides})
    assert runtime_bytes(answer) <= RESPONSE_BYTES
    assert moved([answer.json["root"], *answer.json["included"]]) == ["b.md"]


@pytest.mark.parametrize(
    "line",
    ['"quoted"\t\\ "code"\n', "\x01\x02\x03\n", "hyvää yötä, 日本語\n", "\U0001f4a9\n"],
    ids=["code", "control", "scripts", "emoji"],
)
def test_text_that_grows_on_its_way_fits(cloud: Cloud, small: int, line: str) -> None:
    content = text(30_000, line)
    files: dict[str, str | bytes] = {f"{n}.md": content for n in range(5)}
    upload(cloud, files)
    answer, documents = ground(cloud, *files)
    assert runtime_bytes(answer) <= small
    for document in documents:
        url = document.get("downloadUrl")
        assert (read(url["url"]).decode() if url else document["text"]) == content
    # No more was moved than had to be: one more would not have fitted.
    inline = [each["text"] for each in documents if "text" in each]
    if moved(documents):
        one = json.dumps(json.dumps(content, ensure_ascii=False), ensure_ascii=False)
        assert (len(inline) + 1) * len(one.encode()) > small - 20_000


def test_one_document_larger_than_any_answer(cloud: Cloud) -> None:
    cloud.put("a.bin", b"\x00" * (9 * MB))
    answer, (document,) = ground(cloud, "a.bin")
    assert runtime_bytes(answer) < 10_000
    assert read(document["downloadUrl"]["url"]) == b"\x00" * (9 * MB)


def test_a_document_over_25_mb_is_refused_by_its_size(cloud: Cloud) -> None:
    cloud.put("a.bin", b"\x00" * (25 * MB + 1))
    answer = post("/v1/compose", {"uri": cloud.uri("a.bin")})
    assert (answer.status, answer.json["code"]) == (422, "document_too_large")
    result = post("/v1/ground", {"sources": [cloud.uri("a.bin")]})
    assert [each["code"] for each in result.json["sources"]] == ["too_large"]


def test_a_key_that_no_url_can_carry_is_undelivered_and_says_so(cloud: Cloud, small: int) -> None:
    upload(cloud, {"x//a.md": text(small)})
    answer, (document,) = ground(cloud, "x//a.md")
    assert document["undelivered"] == "key_not_addressable"
    assert not document.keys() & {"text", "downloadUrl"}
    assert answer.json["complete"] is False


def test_frontmatter_that_repeats_itself_still_fits(cloud: Cloud) -> None:
    """A hundred includes that are one alias of 60 KB, in each of two documents, refused each by itself."""
    block = "---\nincludes:\n- &a '/" + "x" * 60_000 + "'\n" + "- *a\n" * 99 + "---\n"
    upload(cloud, {f"{n}.md": block for n in range(2)})
    answer, documents = ground(cloud, "0.md", "1.md")
    assert runtime_bytes(answer) <= RESPONSE_BYTES
    assert len(documents) == 2
    assert (answer.json["abridged"], answer.json["complete"]) == (True, False)
    assert {len(each["skipped"]) for each in answer.json["compositionBundles"]} == {100}


@pytest.mark.parametrize(
    "block",
    ['title: "' + "\\a" * 30_000 + '"', "\n".join(f"{n:x}: 1" for n in range(4_000)) * 2],
    ids=["a title as long as frontmatter", "thousands of findings"],
)
def test_what_an_author_makes_us_repeat_still_fits(cloud: Cloud, small: int, block: str) -> None:
    upload(cloud, {f"{n}.md": f"---\n{block}\n---\n" for n in range(2)})
    answer, documents = ground(cloud, "0.md", "1.md")
    assert runtime_bytes(answer) <= small
    assert len(documents) == 2


def test_what_a_caller_makes_us_repeat_still_fits(cloud: Cloud, small: int) -> None:
    upload(cloud, {"a.md": "text", "b.md": "text"})
    policy = {"traversableMimeTypes": [f"text/{n}" for n in range(20_000)]}
    sources = [
        {"source_type": "s3", "s3_bucket": cloud.bucket, "s3_key": key, "display_name": "x" * 50_000}
        for key in ("a.md", "b.md")
    ]
    answer = post("/v1/ground", {"sources": sources, "overrides": {"compositionPolicy": policy}})
    assert answer.status == 200
    assert runtime_bytes(answer) <= small
    assert all(each.keys() & {"text", "downloadUrl"} for each in answer.json["allDocumentsForAttachment"])


def test_a_dense_graph_of_long_names_still_fits(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.delivery.RESPONSE_BYTES", 40_000)
    keys = [f"{'f' * 950}/{n}.md" for n in range(6)]
    includes = "\n".join(f"- {n}.md" for n in range(6))
    upload(cloud, dict.fromkeys(keys, f"---\nincludes:\n{includes}\n---\n"))
    answer = get("/v1/graph", uri=cloud.uri(keys[0]), depth="2")
    assert answer.status == 200
    assert runtime_bytes(answer) <= 40_000
    assert len(answer.json["nodes"]) == 6
    assert answer.json["abridged"] is True
