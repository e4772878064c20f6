"""An upload on the deployed stack: judged before it is sent, put by a URL, indexed soon after."""

import urllib.error
import urllib.request

import pytest

from tests.e2e.deployed.stack import Json, Stack


def ticket(stack: Stack, path: str, content: bytes) -> Json:
    answer = stack.api.post(
        "/v1/uploads", {"path": path, "contentType": "text/markdown", "sizeBytes": len(content)}
    )
    assert answer.status == 200, answer.body
    return answer.json()


def put(stack: Stack, signed: Json, content: bytes) -> int:
    request = urllib.request.Request(
        signed["url"], data=content, method=signed["method"], headers=signed["headers"]
    )
    with urllib.request.urlopen(request, context=stack.emulator.tls()) as reply:
        status: int = reply.status
        return status


def test_a_document_is_judged_uploaded_and_indexed(stack: Stack, folder: str) -> None:
    path, content = f"{folder}/sop.md", b"---\ntitle: Uploaded\nincludes: [gone.md]\n---\n"
    found = stack.api.post("/v1/validate", {"path": path, "content": content.decode()}).json()
    assert [each["code"] for each in found["findings"]] == ["target_missing"]

    signed = ticket(stack, path, content)
    assert signed["uri"] == stack.uri(path)
    assert put(stack, signed, content) == 200
    indexed = stack.indexed(path)
    assert (indexed["title"], indexed["verdict"]) == ("Uploaded", found["verdict"])


def test_a_url_is_for_the_content_that_was_announced(stack: Stack, folder: str) -> None:
    signed = ticket(stack, f"{folder}/sop.md", b"as announced")
    with pytest.raises(urllib.error.HTTPError) as refused:
        put(stack, signed, b"something else, and longer")
    with refused.value as answer:
        assert answer.code == 403
    assert stack.asked(f"{folder}/sop.md").status == 404
