"""Cloud Storage, SharePoint and Gemini behind the real function: wired as deployed, over real protocols."""

import urllib.request
from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import quote
from uuid import uuid4

import httpx2
import pytest

import grounding.wiring
from groundwire.adapters.gemini import Gemini
from groundwire.adapters.graph import GraphClient
from groundwire.adapters.microsoft import GraphTokens, keyless
from groundwire.adapters.sharepoint import SharePointDocumentFetcher
from groundwire.adapters.sqs import LEARN
from groundwire.settings import GoogleSettings, MicrosoftSettings, StorageRootSettings
from local.servers.gemini import KEY, GeminiServer
from local.servers.graph import Entra, GraphServer
from tests.cloud import Cloud, session
from tests.contracts.cloud_storage import gcs_endpoint
from tests.contracts.token_servers import TokenServer, token_server
from tests.integration.driving import deliver, get, post, upload

__all__ = ["gcs_endpoint", "token_server"]

DRIVE = "b!kX4-Policies_1"
STORE = "fileSearchStores/handbook"
BY_TOKEN = {"jwt": {"claims": {"sub": "anna", "iss": "https://login.example"}, "scopes": ["kb"]}}
CONTEXT = {"userId": 7, "auditingId": 9}


class Closing(Protocol):
    """What has connections."""

    def close(self) -> None: ...


class World:
    """A cloud with a bucket in Google, a drive in SharePoint and a File Search store, all wired."""

    def __init__(self, cloud: Cloud, gcs: str, tokens: TokenServer) -> None:
        self.cloud = cloud
        self.gcs = gcs
        self.bucket = f"labs-{uuid4().hex[:12]}"
        self.graph = GraphServer().start()
        self.gemini = GeminiServer().start()
        self.gemini.add_store("handbook")
        self.entra = Entra(self.graph)
        httpx2.post(f"{gcs}/storage/v1/b?project=p", json={"name": self.bucket}).raise_for_status()
        self.delivery = cloud.new_bucket(f"{cloud.bucket}-delivery")
        self._secrets = session().client("secretsmanager", endpoint_url=cloud.endpoint)
        self.secret = f"gemini-{uuid4().hex[:12]}"
        self._secrets.create_secret(Name=self.secret, SecretString=f"{KEY}\n")
        self._tokens = tokens
        self.clients: list[Closing] = []
        """What the function keeps open as long as it lives."""
        self.wire()

    def wire(self, **of_the_drive: Any) -> None:
        self.cloud.wire(
            self.cloud.root(),
            StorageRootSettings(
                name="labs", source_type="gcs", bucket=self.bucket, endpoint=self.gcs, readers=("*",)
            ),
            StorageRootSettings(
                name="hr", source_type="sharepoint", bucket=DRIVE, readers=("*",), **of_the_drive
            ),
            google=GoogleSettings(audience="//iam.example/aws", token_url=self._tokens.url("/token")),
            microsoft=MicrosoftSettings(
                tenant_id="contoso", client_id="groundwire", keyless=True, endpoint=self.graph.endpoint
            ),
            gemini_key_secret=self.secret,
            gemini_endpoint=self.gemini.url,
            file_search_stores=(STORE,),
            delivery_bucket=self.delivery,
        )

    def store(self, name: str, content: bytes, mime_type: str = "application/octet-stream") -> str:
        """Uploads to Cloud Storage; the document's URI."""
        url = f"{self.gcs}/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={quote(name, safe='')}"
        httpx2.post(url, content=content, headers={"Content-Type": mime_type}).raise_for_status()
        return f"gs://{self.bucket}/{name}"

    def teach(self, *sources: Any) -> Any:
        """Asks until the index knows what the search sees; a fast store may be done before it is read."""
        result = ground(*sources)
        for _ in range(20):
            if self.learn():
                break
            result = ground(*sources)
        else:
            raise AssertionError("nothing is ever learned")
        return result

    def learn(self) -> list[str]:
        """Hands the indexer what the search told it; the kinds of messages there were."""
        messages = self.cloud.messages(self.cloud.queue)
        assert deliver(*(message["Body"] for message in messages)) == []
        for message in messages:
            self.cloud.sqs.delete_message(QueueUrl=self.cloud.queue, ReceiptHandle=message["ReceiptHandle"])
        return [LEARN if LEARN in message["Body"] else "other" for message in messages]

    def close(self) -> None:
        for client in (*self.clients, self._secrets):
            client.close()
        self.graph.stop()
        self.gemini.stop()


@pytest.fixture
def world(
    cloud: Cloud, gcs_endpoint: str, token_server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    made = World(cloud, gcs_endpoint, token_server)

    def sharepoint(microsoft: MicrosoftSettings, _: Any) -> SharePointDocumentFetcher:
        # Entra is https only, so that no server here can be it: its answers come by another way.
        credential = keyless(lambda: "vouched")
        tokens = GraphTokens(microsoft.tenant_id, microsoft.client_id, credential, transport=made.entra)
        client = GraphClient(tokens, endpoint=microsoft.endpoint, allow_http=True)
        made.clients.append(client)
        return SharePointDocumentFetcher(client)

    def gemini(*given: Any) -> Gemini:
        client = Gemini(*given)
        made.clients.append(client)
        return client

    monkeypatch.setattr(grounding.wiring, "_sharepoint", sharepoint)
    monkeypatch.setattr(grounding.wiring, "Gemini", gemini)
    yield made
    made.close()


def ground(*sources: Any, **overrides: Any) -> Any:
    answer = post("/v1/ground", {"sources": list(sources), "ctx": CONTEXT, "overrides": overrides})
    assert answer.status == 200, answer.body
    return answer.json


def uris(result: Any) -> list[str]:
    return [each["uri"] for each in result["allDocumentsForAttachment"]]


def test_includes_work_inside_cloud_storage_and_are_learned(world: World) -> None:
    root = world.store("a.md", b"---\nincludes: [sub/b.md, gone.md]\n---\nA", "text/markdown")
    world.store("sub/b.md", b"---\nincludes: [c.md]\n---\nB")
    world.store("sub/c.md", b"C")
    first = world.teach(root)
    assert uris(first) == [f"gs://{world.bucket}/{name}" for name in ("a.md", "sub/b.md", "sub/c.md")]
    (bundle,) = first["compositionBundles"]
    assert [(skip["reason"], skip["code"]) for skip in bundle["skipped"]] == [("fetch_failed", "not_found")]
    assert first["indexStale"] == []

    second = ground(root)
    assert second["bundleId"] == first["bundleId"]
    assert world.learn() == [], "it is known by now"
    known = get("/v1/documents", uri=root).json
    assert [include["raw"] for include in known["includes"]] == ["sub/b.md", "gone.md"]
    assert known["version"].isdigit()
    dependents = get("/v1/dependents", uri=f"gs://{world.bucket}/sub/b.md").json["dependents"]
    assert [each["uri"] for each in dependents] == [root]


def test_a_document_that_changes_in_cloud_storage_is_learned_anew(world: World) -> None:
    root = world.store("a.md", b"---\nincludes: [b.md]\n---\nA")
    world.store("b.md", b"B")
    world.teach(root)
    world.store("a.md", b"no more includes")
    result = world.teach(root)
    assert (uris(result), result["indexStale"]) == ([root], [root])
    assert get("/v1/documents", uri=root).json["includes"] == []
    assert get("/v1/dependents", uri=f"gs://{world.bucket}/b.md").json.get("dependents", []) == []


def test_includes_work_inside_sharepoint_by_id_and_by_path_in_any_letter_case(world: World) -> None:
    leave = world.graph.put(DRIVE, "HR/Leave Policy.md", b"---\nincludes: [TRAVEL.md]\n---\nLeave")
    world.graph.put(DRIVE, "HR/Travel.md", b"Travel")
    by_id = {
        "source_type": "sharepoint",
        "sharepoint_drive_id": DRIVE,
        "sharepoint_item_id": leave.id,
    }
    result = world.teach(by_id, f"sharepoint://{DRIVE}/hr/leave policy.MD")
    expected = [f"sharepoint://{DRIVE}/HR/Leave Policy.md", f"sharepoint://{DRIVE}/HR/Travel.md"]
    assert uris(result) == expected
    assert [source["uri"] for source in result["sources"]] == [expected[0]] * 2
    again = ground(by_id)
    assert (uris(again), again["bundleId"]) == (expected, result["bundleId"])
    assert world.learn() == []
    assert get("/v1/documents", uri=expected[0]).json["title"] is None


def test_a_drive_that_is_read_on_behalf_of_callers_teaches_the_index_nothing(world: World) -> None:
    world.wire(delegated=True)
    world.graph.put(DRIVE, "HR/Leave.md", b"---\nincludes: [Travel.md]\n---\nLeave")
    world.graph.put(DRIVE, "HR/Travel.md", b"Travel")
    world.entra.users["allowed-token"] = {DRIVE}
    world.entra.users["other-token"] = set()
    body = {"sources": [f"sharepoint://{DRIVE}/HR/Leave.md"]}

    def asked(token: str | None) -> Any:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return post("/v1/ground", body, authorizer=BY_TOKEN, headers=headers).json

    allowed = asked("allowed-token")
    assert len(uris(allowed)) == 2
    for token in ("other-token", None):
        refused = asked(token)
        assert uris(refused) == []
        assert [source["code"] for source in refused["sources"]] == ["not_found"]
    assert world.learn() == []
    assert get("/v1/documents", uri=f"sharepoint://{DRIVE}/HR/Leave.md").status == 404


def test_an_office_file_is_a_pdf_from_sharepoint_and_unsupported_elsewhere(world: World) -> None:
    world.graph.put(DRIVE, "Plan.docx", b"PK office")
    there = world.store("Plan.docx", b"PK office")
    result = ground(f"sharepoint://{DRIVE}/Plan.docx", there)
    pdf, office = result["allDocumentsForAttachment"]
    assert (pdf["mimeType"], pdf["findings"]) == ("application/pdf", [])
    assert [finding["code"] for finding in office["findings"]] == ["unsupported_mime"]
    assert office["geminiDocument"]["mimeType"].endswith("wordprocessingml.document")


def test_a_large_document_of_another_store_goes_out_by_the_delivery_bucket(world: World) -> None:
    body = "Prüfen.\n".encode() * 900_000
    uri = world.store("large.md", body)
    result = ground(uri)
    (document,) = result["allDocumentsForAttachment"]
    assert result["complete"]
    with urllib.request.urlopen(document["downloadUrl"]["url"]) as reply:
        assert reply.read() == body
    assert f"/{world.delivery}/" in document["downloadUrl"]["url"]


def test_sources_of_a_file_search_store_are_looked_up(world: World) -> None:
    upload(world.cloud, {"leak.md": "Close the valve.", "drain.md": "Open the drain."})

    def pointer(key: str) -> dict[str, str]:
        return {"source_type": "s3", "s3_bucket": world.cloud.bucket, "s3_key": key}

    for number in range(25):
        world.gemini.add_document(STORE, display_name=f"Part {number}", metadata={"author": "x"})
    world.gemini.add_document(STORE, display_name="Leak", metadata=pointer("leak.md"))
    named = world.gemini.add_document(STORE, display_name="Drain", metadata=pointer("drain.md"))
    chunks = {
        "groundingChunks": [
            {"retrievedContext": {"title": "Leak", "fileSearchStore": STORE, "text": "x"}},
            {"retrievedContext": {"title": None, "documentName": named, "text": "x"}},
            {"retrievedContext": {"title": "Part 3", "fileSearchStore": STORE, "text": "x"}},
        ]
    }
    asked: list[int] = []
    for _ in range(2):
        answer = post("/v1/ground", {"groundingMetadata": chunks})
        assert uris(answer.json) == [world.cloud.uri("leak.md"), world.cloud.uri("drain.md")]
        assert [source["code"] for source in answer.json["sources"]] == [None, None, "metadata_missing"]
        assert answer.json["lookupErrors"] == []
        asked.append(len(world.gemini.requests))
    assert asked[0] == asked[1] > 0, "the catalogue knows"


def test_without_gemini_the_rest_is_answered_and_it_is_said(world: World) -> None:
    upload(world.cloud, {"leak.md": "Close the valve."})
    world.gemini.stop()
    result = ground(world.cloud.uri("leak.md"), {"title": "Leak", "fileSearchStore": STORE})
    assert uris(result) == [world.cloud.uri("leak.md")]
    assert result["sources"][1]["code"] == "document_not_found"
    assert result["lookupErrors"] == ["listing: unavailable"]
    assert not result["complete"]
    world.gemini = GeminiServer().start()


def test_bodies_go_to_the_files_api_once_when_the_caller_wants_it(world: World) -> None:
    uri = world.store("plan.pdf", b"%PDF-1.7 a plan", "application/pdf")
    options = {"useFilesApi": "always"}
    first, second = (ground(uri, prepareDocumentOptions=options) for _ in range(2))
    (document,) = first["allDocumentsForAttachment"]
    reference = document["geminiFileReference"]
    assert reference == second["allDocumentsForAttachment"][0]["geminiFileReference"]
    assert reference["mimeType"] == "application/pdf"
    (file,) = world.gemini.files.values()
    assert (file.content, file.uri) == (b"%PDF-1.7 a plan", reference["fileUri"])
    assert not document.keys() & {"text", "geminiDocument", "downloadUrl"}


def test_one_store_that_is_away_costs_its_own_documents(world: World) -> None:
    upload(world.cloud, {"leak.md": "Close the valve."})
    world.graph.stop()
    result = ground(f"sharepoint://{DRIVE}/HR/Leave.md", world.cloud.uri("leak.md"))
    assert uris(result) == [world.cloud.uri("leak.md")]
    assert [source["code"] for source in result["sources"]] == ["unavailable", None]
    assert not result["complete"]
    world.graph = GraphServer().start()
