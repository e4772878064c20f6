"""From an upload to a signed HTTPS answer, through the stack as it is deployed."""

import hashlib

import pytest
from botocore.credentials import Credentials

from local.api import Api
from tests.e2e.deployed.stack import Stack, eventually


def _document(*includes: str, body: str = "Text.") -> str:
    entries = "".join(f"  - {include}\n" for include in includes)
    return f"---\nincludes:\n{entries}---\n{body}\n" if includes else f"{body}\n"


def test_an_uploaded_document_is_answered_with_the_documents_it_includes(stack: Stack, folder: str) -> None:
    texts = {
        f"{folder}/sops/leak.md": _document(
            "../shared/terms.md", "../shared/calls.md", body="Close the valve."
        ),
        f"{folder}/shared/calls.md": _document("./terms.md", body="Whom to call, ü and 漢字."),
        f"{folder}/shared/terms.md": _document(body="Words."),
    }
    stack.put_and_wait(texts)

    answer = stack.ground(f"{folder}/sops/leak.md")

    attached = [
        stack.uri(f"{folder}/{key}") for key in ("sops/leak.md", "shared/terms.md", "shared/calls.md")
    ]
    assert [document["uri"] for document in answer["allDocumentsForAttachment"]] == attached
    assert [document["text"] for document in answer["allDocumentsForAttachment"]] == [
        texts[uri.split("/", 3)[3]] for uri in attached
    ]
    assert [document["sha256"] for document in answer["allDocumentsForAttachment"]] == [
        hashlib.sha256(texts[uri.split("/", 3)[3]].encode()).hexdigest() for uri in attached
    ]
    (bundle,) = answer["compositionBundles"]
    assert [(skip["relativePath"], skip["reason"], skip["code"]) for skip in bundle["skipped"]] == [
        ("./terms.md", "cycle", "diamond")
    ]
    assert answer["complete"] is True
    assert answer["indexStale"] == []
    assert [source["status"] for source in answer["sources"]] == ["resolved"]


def test_a_verdict_names_the_line_of_an_include_that_cannot_be(stack: Stack, folder: str) -> None:
    stack.put({f"{folder}/a.md": "---\ntitle: A\nincludes:\n  - /absolute.md\n---\n"})
    document = stack.indexed(f"{folder}/a.md")
    assert document["verdict"] == "invalid"
    assert [(found["code"], found["line"]) for found in document["findings"]] == [("include_absolute", 4)]


def test_an_extension_says_what_a_generic_type_does_not(stack: Stack, folder: str) -> None:
    key = f"{folder}/a.md"
    stack.s3.put_object(
        Bucket=stack.deployment.bucket,
        Key=key,
        Body=_document("./b.md").encode(),
        ContentType="application/octet-stream",
    )
    stack.put_and_wait({f"{folder}/b.md": "B\n"})
    assert stack.indexed(key)["mimeType"] == "text/markdown"
    assert len(stack.ground(key)["allDocumentsForAttachment"]) == 2


def test_an_overwritten_document_is_answered_as_it_now_is(stack: Stack, folder: str) -> None:
    key = f"{folder}/a.md"
    stack.put_and_wait({key: _document("./old.md"), f"{folder}/old.md": "Old\n", f"{folder}/new.md": "New\n"})
    before = stack.indexed(key)["version"]

    stack.put({key: _document("./new.md")})
    eventually(lambda: stack.indexed(key)["version"], lambda version: version != before)

    (bundle,) = stack.ground(key)["compositionBundles"]
    assert [document["uri"] for document in bundle["included"]] == [stack.uri(f"{folder}/new.md")]


def test_a_deleted_document_is_gone_from_index_and_answer(stack: Stack, folder: str) -> None:
    key, part = f"{folder}/a.md", f"{folder}/b.md"
    stack.put_and_wait({key: _document("./b.md"), part: "B\n"})

    stack.s3.delete_object(Bucket=stack.deployment.bucket, Key=part)
    answer = stack.gone(part)

    assert (answer.content_type, answer.json()["status"]) == ("application/problem+json", 404)
    grounded = stack.ground(key)
    assert grounded["complete"] is False
    (bundle,) = grounded["compositionBundles"]
    assert [(skip["relativePath"], skip["reason"], skip["code"]) for skip in bundle["skipped"]] == [
        ("./b.md", "fetch_failed", "not_found")
    ]

    stack.s3.delete_object(Bucket=stack.deployment.bucket, Key=key)
    stack.gone(key)
    grounded = stack.ground(key)
    assert grounded["allDocumentsForAttachment"] == []
    assert [(source["status"], source["code"]) for source in grounded["sources"]] == [
        ("resolved", "not_found")
    ]


_STRANGERS = {
    "unsigned": None,
    "an unknown key": Credentials("AKIAIOSFODNN7EXAMPLE", "secret"),
}


@pytest.mark.parametrize("stranger", _STRANGERS)
@pytest.mark.parametrize("path", ["/v1/documents", "/v1/graph"])
def test_strangers_are_refused_a_document(stack: Stack, stranger: str, path: str) -> None:
    api = Api(stack.emulator, stack.deployment.api_id, _STRANGERS[stranger])
    assert api.get(path, uri=stack.uri("a.md")).status == 403


@pytest.mark.parametrize("stranger", _STRANGERS)
@pytest.mark.parametrize("path", ["/v1/ground", "/v1/compose"])
def test_strangers_are_refused_an_answer(stack: Stack, stranger: str, path: str) -> None:
    api = Api(stack.emulator, stack.deployment.api_id, _STRANGERS[stranger])
    assert api.post(path, {"uri": stack.uri("a.md")}).status == 403


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/docs"])
def test_health_and_description_are_open(stack: Stack, path: str) -> None:
    assert Api(stack.emulator, stack.deployment.api_id, None).get(path).status == 200
