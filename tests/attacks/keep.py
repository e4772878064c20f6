"""What is attacked: documents that callers may read, and beside them others that nobody may, all planted.

Whatever an attack brings back, or makes a store be asked for, is seen here.
"""

import http.server
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

import grounding.wiring
from groundwire.adapters.gemini import Gemini
from groundwire.adapters.graph import GraphClient
from groundwire.adapters.microsoft import GraphTokens, keyless
from groundwire.adapters.sharepoint import SharePointDocumentFetcher
from groundwire.settings import GoogleSettings, MicrosoftSettings, StorageRootSettings
from local.servers.loopback import Answer, LoopbackServer, Request
from tests.cloud import Cloud
from tests.contracts.token_servers import TokenServer
from tests.integration.driving import index, upload
from tests.integration.gateway import Gateway
from tests.integration.test_access import READER
from tests.integration.test_external_stores import DRIVE, STORE, World

PLANTED = "planted-9001"
"""Stands in every document that no attack may bring back."""


def corpus(name: str) -> dict[str, dict[str, Any]]:
    """The rows of `<name>.yaml` by what each attacks with."""
    rows: dict[str, dict[str, Any]] = yaml.safe_load(
        Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    )
    return rows


class Canary(LoopbackServer):
    """A host that nobody may ask; it would answer anything with a planted document."""

    def answer(self, request: Request) -> Answer:
        stored = {
            "ETag": '"1"',
            "Last-Modified": "Mon, 02 Mar 2026 08:15:00 GMT",
            "Content-Type": "text/markdown",
            "Connection": "close",
        }
        return 200, PLANTED.encode(), stored


class Watched(Gateway):
    """Passes every call on to the cloud, and remembers which objects were asked for."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.asked: list[str] = []
        """Buckets and keys, decoded once."""

    def _trouble(self, request: http.server.BaseHTTPRequestHandler, body: bytes) -> Any:
        if "X-Amz-Target" not in request.headers:  # as all others than S3 send
            self.asked.append(unquote(request.path.partition("?")[0]).removeprefix("/"))
        return super()._trouble(request, body)


INSIDE = ("kb/here.md", "kb/sops/here.md")
OUTSIDE = ("plan.md", "kb_secret/plan.md", "kb-old/plan.md", "other/plan.md", "KB/plan.md")
INNER = "kb/inner/plan.md"


class Walls:
    """The root `kb` over `kb/`, and `inner` nested in it, whose one reader never asks."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.watched = Watched(cloud.endpoint)
        self.foreign = cloud.new_bucket(f"{cloud.bucket}-foreign")
        self.roots = (
            cloud.root(prefix="kb", writers=("*",)),
            cloud.root(name="inner", prefix="kb/inner", readers=(READER,), writers=(READER,)),
        )
        cloud.wire(*self.roots)
        cloud.environment(AWS_ENDPOINT_URL=self.watched.endpoint)
        for key in (*OUTSIDE, INNER):
            cloud.put(key, f"---\ntitle: {PLANTED}\n---\n{PLANTED} {key}")
        cloud.s3.put_object(Bucket=self.foreign, Key="plan.md", Body=PLANTED.encode())
        for key in INSIDE:
            cloud.put(key, "Here.")
        index(cloud, *INSIDE, INNER)

    def check(self) -> None:
        """No object was asked for but those of the root `kb` itself, since the last check."""
        ours = f"{self.cloud.bucket}/kb/"
        strayed = [
            each
            for each in self.watched.asked
            if not each.startswith(ours) or each.startswith(f"{ours}inner/")
        ]
        self.watched.asked.clear()
        assert strayed == []

    def stored(self) -> dict[str, bytes]:
        """What lies where nobody may write."""
        s3, bucket = self.cloud.s3, self.cloud.bucket
        keys = [key for key in self._keys() if not key.startswith("kb/") or key.startswith("kb/inner/")]
        return {key: s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}

    def restore(self) -> None:
        """Removes what an attack was let to put into the root."""
        for key in set(self._keys()) - {*INSIDE, *OUTSIDE, INNER}:
            self.cloud.delete(key)
        self.watched.asked.clear()

    def _keys(self) -> list[str]:
        return [each["Key"] for each in self.cloud.s3.list_objects_v2(Bucket=self.cloud.bucket)["Contents"]]


@pytest.fixture(scope="module")
def walls(shared_cloud: Cloud) -> Iterator[Walls]:
    """For all tests of a module, which leave it as it is."""
    made = Walls(shared_cloud)
    yield made
    made.watched.close()


SECRET_FOLDER = "HR/Secret"


class Keep(World):
    """Roots in S3, Cloud Storage and SharePoint, each with another one nested in it for one reader."""

    def wire(self, **of_the_drive: Any) -> None:
        """Wires the functions; `of_the_drive` are settings of both roots there."""
        hidden: dict[str, Any] = {"readers": (READER,)}
        drive = {"source_type": "sharepoint", "bucket": DRIVE} | of_the_drive
        bucket = {"source_type": "gcs", "bucket": self.bucket, "endpoint": self.gcs}
        self.cloud.wire(
            self.cloud.root(),
            self.cloud.root(name="hidden", prefix="hidden", **hidden),
            StorageRootSettings(name="labs", readers=("*",), **bucket),
            StorageRootSettings(name="labs-hidden", prefix="hidden", **bucket, **hidden),
            StorageRootSettings(name="hr", readers=("*",), **drive),
            StorageRootSettings(name="hr-hidden", prefix=SECRET_FOLDER, **drive, **hidden),
            google=GoogleSettings(audience="//iam.example/aws", token_url=self._tokens.url("/token")),
            microsoft=MicrosoftSettings(
                tenant_id="contoso", client_id="groundwire", keyless=True, endpoint=self.graph.endpoint
            ),
            gemini_key_secret=self.secret,
            gemini_endpoint=self.gemini.url,
            file_search_stores=(STORE,),
            delivery_bucket=self.delivery,
        )

    def catalogued(self, metadata: Mapping[str, Any], title: str | None = None) -> dict[str, Any]:
        """A source that names a File Search document with this metadata, which its author wrote.

        By its title, where it has one, or else by its resource name.
        """
        name = self.gemini.add_document(STORE, display_name=title, metadata=metadata)
        return {"title": title, "fileSearchStore": STORE} if title else {"documentName": name}


def _kept(cloud: Cloud, gcs: str, patch: pytest.MonkeyPatch) -> Iterator[Keep]:
    tokens = TokenServer()
    open_clients: list[GraphClient | Gemini] = []
    made = Keep(cloud, gcs, tokens)
    wired_gemini = grounding.wiring._gemini

    def gemini(*arguments: Any) -> Gemini | None:
        if client := wired_gemini(*arguments):
            open_clients.append(client)
        return client

    def sharepoint(microsoft: MicrosoftSettings, _: Any) -> SharePointDocumentFetcher:
        # Entra is https only, so that no server here can be it: its answers come by another way.
        credential = keyless(lambda: "vouched")
        own = GraphTokens(microsoft.tenant_id, microsoft.client_id, credential, transport=made.entra)
        open_clients.append(graph := GraphClient(own, endpoint=microsoft.endpoint, allow_http=True))
        return SharePointDocumentFetcher(graph)

    patch.setattr(grounding.wiring, "_gemini", gemini)
    patch.setattr(grounding.wiring, "_sharepoint", sharepoint)
    yield made
    for client in open_clients:
        client.close()
    made.close()
    tokens.close()


@pytest.fixture
def keep(cloud: Cloud, gcs_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keep]:
    """For one test."""
    yield from _kept(cloud, gcs_endpoint, monkeypatch)


@pytest.fixture(scope="module")
def outside(shared_cloud: Cloud, gcs_endpoint: str) -> Iterator[Keep]:
    """For all tests of a module, which only add to it."""
    with pytest.MonkeyPatch.context() as patch:
        yield from _kept(shared_cloud, gcs_endpoint, patch)


@pytest.fixture(scope="module")
def entitled(shared_cloud: Cloud) -> Cloud:
    """One planted document, for one role, one group and one scope alone."""
    readers = (READER, "group:staff", "scope:kb.read")
    shared_cloud.wire(shared_cloud.root(readers=readers, writers=readers))
    upload(shared_cloud, {"a.md": f"---\ntitle: {PLANTED}\n---\n{PLANTED}"})
    return shared_cloud
