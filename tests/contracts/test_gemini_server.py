"""Our Gemini on loopback says what the documentation says, and its model what follows from its words."""

import base64
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from local.servers.gemini import KEY, GeminiServer

MODEL = "/v1beta/models/gemini-2.5-flash:generateContent"


class Wire:
    """Plain HTTP, so that no SDK stands between a test and the server."""

    def __init__(self, server: GeminiServer) -> None:
        self.server = server

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON, headers in lower case."""
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        url = path if path.startswith("http") else self.server.url + path
        sent = {"x-goog-api-key": KEY} if headers is None else headers
        request = urllib.request.Request(url, content, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                return reply.status, json.load(reply), {k.lower(): v for k, v in reply.headers.items()}
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)["error"]["status"], {}

    def put(self, path: str, body: Any, content: bytes) -> Any:
        """A resumable upload in two pieces; what its end answers."""
        start = {
            "x-goog-api-key": KEY,
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(content)),
            "X-Goog-Upload-Header-Content-Type": "text/plain",
        }
        _, _, begun = self.ask("POST", path, body, start)
        assert begun["x-goog-upload-status"] == "active"
        where = begun["x-goog-upload-url"]
        first = {"X-Goog-Upload-Command": "upload", "X-Goog-Upload-Offset": "0"}
        _, _, going = self.ask("POST", where, content[:3], first)
        last = {"X-Goog-Upload-Command": "upload, finalize", "X-Goog-Upload-Offset": "3"}
        status, answer, done = self.ask("POST", where, content[3:], last)
        assert (status, going["x-goog-upload-status"], done["x-goog-upload-status"]) == (
            200,
            "active",
            "final",
        )
        return answer

    def generate(self, *parts: dict[str, Any], **rest: Any) -> dict[str, Any]:
        status, answer, _ = self.ask("POST", MODEL, {"contents": [{"parts": list(parts)}], **rest})
        assert status == 200, answer
        candidate: dict[str, Any] = answer["candidates"][0]
        return candidate


@pytest.fixture
def wire(gemini_server: GeminiServer) -> Wire:
    return Wire(gemini_server)


@pytest.mark.parametrize("snake", [False, True], ids=["camelCase", "snake_case"])
def test_an_answer_is_grounded_in_what_shares_words_with_the_question(
    wire: Wire, gemini_server: GeminiServer, snake: bool
) -> None:
    store, other = gemini_server.add_store("handbook"), gemini_server.add_store("other")
    gemini_server.add_document(
        store,
        "Close the main valve.\n\nCall the plumber about the leaking boiler.",
        display_name="Water leak",
        metadata={"groundwire_id": "kb01", "floor": 3},
    )
    gemini_server.add_document(store, "A boiler is loud.")
    gemini_server.add_document(store, "Keys are handed over at noon.", display_name="Key handover")
    gemini_server.add_document(store, "leaking boiler", display_name="Not yet", state="PENDING")
    gemini_server.add_document(other, "leaking boiler", display_name="Elsewhere")
    search: dict[str, Any] = {"fileSearch": {"fileSearchStoreNames": [store]}}
    if snake:
        search = {"file_search": {"file_search_store_names": [store]}}
    said = wire.generate({"text": "What about a leaking boiler?"}, tools=[search])
    chunks = said["groundingMetadata"]["groundingChunks"]
    assert [chunk["retrievedContext"] for chunk in chunks] == [
        {
            "title": "Water leak",
            "text": "Call the plumber about the leaking boiler.",
            "fileSearchStore": store,
            "customMetadata": [
                {"key": "groundwire_id", "stringValue": "kb01"},
                {"key": "floor", "numericValue": 3},
            ],
        },
        {"text": "A boiler is loud.", "fileSearchStore": store},
    ]
    assert said["content"]["parts"][0]["text"] == "See Water leak, an unnamed document."


def test_nothing_found_is_an_answer_without_grounding(wire: Wire, gemini_server: GeminiServer) -> None:
    store = gemini_server.add_store("handbook")
    search = {"fileSearch": {"fileSearchStoreNames": [store]}}
    said = wire.generate({"text": "What about a leaking boiler?"}, tools=[search])
    assert "groundingMetadata" not in said


def test_without_a_search_the_model_says_what_it_was_given(wire: Wire) -> None:
    uploaded = wire.put("/upload/v1beta/files", {"file": {"display_name": "a"}}, b"Annual inspection\nmore")
    inline = base64.b64encode(b"%PDF-1.7\nmore").decode()
    said = wire.generate(
        {"text": "# Water leak\nmore"},
        {"inlineData": {"mimeType": "application/pdf", "data": inline}},
        {"file_data": {"file_uri": uploaded["file"]["uri"], "mime_type": "text/plain"}},
    )
    assert said["content"]["parts"][0]["text"].splitlines() == [
        "I was given:",
        "- text: # Water leak",
        "- application/pdf, 13 bytes: %PDF-1.7",
        "- text/plain, 22 bytes: Annual inspection",
    ]


@pytest.mark.parametrize(
    ("part", "refused"),
    [
        ({"fileData": {"fileUri": "https://x.example/v1beta/files/none"}}, (403, "PERMISSION_DENIED")),
        ({"inlineData": {"mimeType": "application/vnd.ms-excel", "data": ""}}, (400, "INVALID_ARGUMENT")),
        ({"inlineData": {"mimeType": "text/plain", "data": "!"}}, (400, "INVALID_ARGUMENT")),
    ],
    ids=["no-file", "office", "no-base64"],
)
def test_what_a_model_does_not_take(wire: Wire, part: dict[str, Any], refused: tuple[int, str]) -> None:
    assert wire.ask("POST", MODEL, {"contents": [{"parts": [part]}]})[:2] == refused


@pytest.mark.parametrize(
    ("method", "path", "headers", "refused"),
    [
        ("GET", "/v1beta/fileSearchStores", {}, (403, "PERMISSION_DENIED")),
        ("GET", "/v1beta/fileSearchStores", {"x-goog-api-key": "x"}, (400, "INVALID_ARGUMENT")),
        ("GET", "/v1/fileSearchStores", None, (404, "NOT_FOUND")),
        ("GET", "/v1beta/fileSearchStores/none/documents", None, (404, "NOT_FOUND")),
        ("GET", "/v1beta/fileSearchStores/kb/documents?pageSize=21", None, (400, "INVALID_ARGUMENT")),
        ("GET", "/v1beta/fileSearchStores/kb/documents?pageToken=x", None, (400, "INVALID_ARGUMENT")),
        ("DELETE", "/v1beta/fileSearchStores/kb", None, (400, "FAILED_PRECONDITION")),
        ("DELETE", "/v1beta/fileSearchStores/kb/documents/doc-000001", None, (400, "FAILED_PRECONDITION")),
        ("GET", "/v1beta/files/none", None, (403, "PERMISSION_DENIED")),
        ("GET", "/v1beta/fileSearchStores/kb/operations/none", None, (404, "NOT_FOUND")),
        ("POST", "/upload/v1beta/files?upload_id=none", {}, (400, "INVALID_ARGUMENT")),
    ],
)
def test_what_is_refused(
    wire: Wire, method: str, path: str, headers: dict[str, str] | None, refused: tuple[int, str]
) -> None:
    wire.server.add_document(wire.server.add_store("kb"), "content")
    assert wire.ask(method, path, headers=headers)[:2] == refused


@pytest.mark.parametrize("name", ["files/UPPER", "files/-a", "files/a-", "files/" + "a" * 41, "other/a"])
def test_names_that_no_file_can_have(wire: Wire, name: str) -> None:
    start = {
        "x-goog-api-key": KEY,
        "X-Goog-Upload-Protocol": "resumable",
        "X-Goog-Upload-Command": "start",
        "X-Goog-Upload-Header-Content-Type": "text/plain",
    }
    answer = wire.ask("POST", "/upload/v1beta/files", {"file": {"name": name}}, start)
    assert answer[:2] == (400, "INVALID_ARGUMENT")


def test_a_file_can_be_imported_and_its_operation_is_done_at_the_second_look(wire: Wire) -> None:
    _, store, _ = wire.ask("POST", "/v1beta/fileSearchStores", {"display_name": "Handbook"})
    file = wire.put("/upload/v1beta/files", {"file": {"displayName": "Water leak"}}, b"Close it.")["file"]
    path = f"/v1beta/{store['name']}:importFile"
    metadata = [{"key": "groundwire_id", "string_value": "kb01"}]
    _, operation, _ = wire.ask("POST", path, {"file_name": file["name"], "custom_metadata": metadata})
    looks = [wire.ask("GET", f"/v1beta/{operation['name']}")[1] for _ in range(2)]
    assert [look.get("done", False) for look in looks] == [False, True]
    document = wire.ask("GET", f"/v1beta/{looks[1]['response']['documentName']}")[1]
    assert (document["displayName"], document["state"]) == ("Water leak", "STATE_PENDING")
    assert document["customMetadata"] == [{"key": "groundwire_id", "stringValue": "kb01"}]
    assert wire.ask("DELETE", f"/v1beta/{file['name']}")[0] == 200
    assert wire.ask("DELETE", f"/v1beta/{store['name']}?force=true")[0] == 200
    assert wire.ask("GET", "/v1beta/fileSearchStores")[1] == {}


def test_requests_are_remembered_without_their_bodies(wire: Wire, gemini_server: GeminiServer) -> None:
    wire.generate({"text": "a secret"})
    seen = gemini_server.requests[0]
    assert (seen.method, seen.path, seen.query) == ("POST", MODEL, {})
    assert "secret" not in repr(gemini_server.requests)
