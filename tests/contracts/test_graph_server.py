"""The Graph server that the adapter is tested on does as the documentation says, adapter or not."""

from typing import Any

import httpx2
import pytest

from local.servers.graph import GraphServer, pdf_of
from tests.contracts.drives import DRIVE

FOLDERS = "Shared Docs/Büro #1"


@pytest.fixture
def server(graph_server: GraphServer) -> GraphServer:
    graph_server.grants = {"all": None, "some": {DRIVE}, "none": set()}
    return graph_server


def get(server: GraphServer, path: str, token: str = "all") -> httpx2.Response:
    url = f"{server.endpoint}/drives/{DRIVE}{path}"
    return httpx2.get(url, headers={"Authorization": f"Bearer {token}"})


def test_an_item_says_where_it_is_percent_encoded_and_what_was_selected(server: GraphServer) -> None:
    item = server.put(DRIVE, f"{FOLDERS}/Ä.md", b"text", "text/markdown")
    by_id: dict[str, Any] = get(server, f"/items/{item.id}").json()
    assert by_id["parentReference"]["path"] == f"/drives/{DRIVE}/root:/Shared%20Docs/B%C3%BCro%20%231"
    assert (by_id["name"], by_id["size"], by_id["file"]) == ("Ä.md", 4, {"mimeType": "text/markdown"})
    assert get(server, "/root:/shared%20docs/B%C3%BCRO%20%231/%C3%A4.MD").json() == by_id
    assert set(get(server, f"/items/{item.id}?$select=id,name").json()) == {"@odata.context", "id", "name"}


def test_moving_changes_the_etag_and_uploading_the_ctag(server: GraphServer) -> None:
    item = server.put(DRIVE, "a.md", b"one")
    first = get(server, f"/items/{item.id}").json()
    server.move(item, "b/c.md")
    moved = get(server, f"/items/{item.id}").json()
    assert (moved["cTag"], moved["name"]) == (first["cTag"], "c.md")
    assert moved["eTag"] != first["eTag"]
    assert server.put(DRIVE, "B/C.md", b"two") is item
    assert get(server, "/root:/b/c.md").json()["cTag"] != first["cTag"]


def test_a_content_is_elsewhere_and_shows_itself_to_no_token(server: GraphServer) -> None:
    server.put(DRIVE, "a.md", b"0123456789", "text/markdown")
    url = get(server, "/root:/a.md:/content").headers["location"]
    assert url.startswith(server.downloads.url)
    whole = httpx2.get(url)
    assert (whole.status_code, whole.content) == (200, b"0123456789")
    assert httpx2.get(url, headers={"Authorization": "Bearer all"}).status_code == 401
    assert httpx2.get(url + "x").status_code == 401
    part = httpx2.get(url, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    assert httpx2.get(url, headers={"Range": "bytes=8-"}).content == b"89"
    assert httpx2.get(url, headers={"Range": "bytes=10-"}).status_code == 416


def test_some_types_become_pdf(server: GraphServer) -> None:
    server.put(DRIVE, "a.docx", b"words")
    server.put(DRIVE, "a.md", b"text")
    url = get(server, "/root:/a.docx:/content?format=pdf").headers["location"]
    assert httpx2.get(url).content == pdf_of(b"words")
    assert get(server, "/root:/a.md:/content?format=pdf").status_code == 406
    assert pdf_of(b"words") != pdf_of(b"other")


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/root:/a.md", "unknown", 401),
        ("/root:/a.md", "none", 403),
        ("/root:/a.md", "some", 200),
        ("/root:/b.md", "some", 404),
        ("/items/nowhere", "all", 404),
        ("/root:/folder", "all", 200),
        ("/root:/folder:/content", "all", 400),
        ("/root:/folder/%2e%2e/a.md", "all", 200),
        ("/root:/a.md?x=1#y", "all", 200),
        ("/root:/a.md:/children", "all", 400),
    ],
)
def test_what_it_refuses(server: GraphServer, path: str, token: str, status: int) -> None:
    server.put(DRIVE, "a.md", b"text")
    server.folder(DRIVE, "folder")
    answer = get(server, path, token)
    assert answer.status_code == status
    assert ("error" in answer.json()) is (status != 200)


@pytest.mark.parametrize("name", ["a?b", "a:b", 'a"b', "a*b", "a<b", "a|b", "a\\b", ""])
def test_it_takes_no_name_that_sharepoint_would_not(server: GraphServer, name: str) -> None:
    with pytest.raises(ValueError, match="SharePoint"):
        server.put(DRIVE, name, b"")
