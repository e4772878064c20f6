"""SharePoint's contents: where a redirect may lead, how large a body may be, what becomes PDF, what fails."""

import gzip
import logging

import pytest

from groundwire.adapters.graph import GraphClient
from groundwire.deadline import Deadline
from groundwire.errors import (
    DocumentForbidden,
    DocumentNotFound,
    DocumentTooLarge,
    FetchError,
    KeyNotAddressable,
    Unavailable,
    UnsupportedMime,
)
from groundwire.pointers import SharePointDocumentPointer
from groundwire.roots import StorageRoots
from local.servers.graph import failure, pdf_of
from local.servers.loopback import On
from tests.contracts.drives import DRIVE, Drive, tokens

SOON = Deadline.after(24 * 3600)


def fetched(drive: Drive, key: str, max_bytes: int = 10_000) -> bytes:
    return drive.store.fetch(drive.location(key), deadline=SOON, max_bytes=max_bytes).content


# -- contents ----------------------------------------------------------------------------------


def test_the_download_host_sees_no_token_and_no_cookie(drive: Drive) -> None:
    """It answers 401 to whoever shows a token (facts), and 200 was seen."""
    cookie = {"Set-Cookie": "FedAuth=of-another-caller; Path=/"}
    drive.server.downloads.script.append((200, b"first", cookie))
    drive.put("a.md", b"text")
    assert fetched(drive, "a.md") == b"first"
    heads = watched(drive)
    assert fetched(drive, "a.md") == b"text"
    assert not {"authorization", "cookie"} & set(heads)
    assert "Groundwire" not in heads["user-agent"]


def watched(drive: Drive) -> dict[str, str]:
    """The headers of the last request at the download host, by name in lower case."""
    heads: dict[str, str] = {}
    answer = drive.server.downloads.answer
    drive.server.downloads.answer = lambda request: (  # type: ignore[method-assign]
        heads.update({name.lower(): value for name, value in request.headers.items()}) or answer(request)
    )
    return heads


def test_pre_authenticated_urls_and_tokens_stand_in_no_log_and_no_error(
    drive: Drive, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    drive.put("a.md", b"text")
    fetched(drive, "a.md")
    texts = [caplog.text]
    for behaviour in ("reset", (500, b"", {}), (302, b"", {"Location": "/elsewhere"}), (401, b"", {})):
        drive.server.downloads.script = [behaviour] * 3
        with pytest.raises(FetchError) as caught:
            fetched(drive, "a.md")
        texts += [str(caught.value), repr(caught.value.__cause__)]
    texts.append(caplog.text)
    secrets = [*drive.server.downloads.tempauths, *drive.server.grants, "vouched"]
    assert len(secrets) == 7
    assert not [each for each in secrets if any(each in text for text in texts)]


@pytest.mark.parametrize(
    "leads_to",
    [
        "ftp://{host}/x?tempauth=1",
        "file:///etc/passwd",
        "//{host}/x",
        "http:///x",
        "/relative",
        "",
        "http://user:pass@{host}/x",
        "http://[::1/x",
        "javascript:alert(1)",
    ],
)
def test_only_a_plain_url_is_followed(drive: Drive, leads_to: str) -> None:
    drive.put("a.md", b"text")
    host = drive.server.downloads.url.removeprefix("http://")
    drive.server.script.append(On("/content", (302, b"", {"Location": leads_to.format(host=host)})))
    with pytest.raises(Unavailable, match="does not redirect"):
        fetched(drive, "a.md")
    assert drive.server.downloads.requests == []


def test_an_unencrypted_download_is_followed_on_this_machine_only(drive: Drive) -> None:
    """`allow_http` is a constructor's flag: without it neither Graph nor its redirects may be http."""
    with pytest.raises(ValueError, match="https"):
        GraphClient(tokens(drive.entra), endpoint="http://graph.example/v1.0")
    strict = GraphClient(tokens(drive.entra), endpoint=drive.server.endpoint, allow_http=True)
    strict._schemes = {"https"}
    drive.store._graph = strict
    drive.put("a.md", b"text")
    with pytest.raises(Unavailable, match="does not redirect"):
        fetched(drive, "a.md")
    assert drive.server.downloads.requests == []
    strict.close()


def test_a_second_redirect_is_not_followed(drive: Drive) -> None:
    drive.put("a.md", b"text")
    drive.server.downloads.script.append((302, b"", {"Location": drive.server.downloads.url + "/x"}))
    with pytest.raises(Unavailable):
        fetched(drive, "a.md")
    assert len(drive.server.downloads.requests) == 1


def test_a_content_that_is_not_redirected_to_is_refused(drive: Drive) -> None:
    drive.put("a.md", b"text")
    elsewhere = drive.server.downloads.offer(b"other", "text/markdown")
    drive.server.script.append(On("/content", (200, b"text", {"Location": elsewhere})))
    with pytest.raises(Unavailable, match="does not redirect"):
        fetched(drive, "a.md")


# -- sizes -------------------------------------------------------------------------------------


def test_a_document_that_is_too_large_is_not_downloaded(drive: Drive) -> None:
    drive.put("a.md", b"x" * 11)
    with pytest.raises(DocumentTooLarge) as caught:
        fetched(drive, "A.md", 10)
    assert (caught.value.size_bytes, caught.value.uri) == (11, f"sharepoint://{DRIVE}/a.md")
    assert not any("content" in path for path in drive.asked)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_body_larger_than_the_metadata_says_is_cut_off(drive: Drive, coding: str) -> None:
    """Whether its own header tells the size, or a compressed one hides it."""
    body = b"x" * 1_000_000
    item = drive.upload("a.md", body)
    item.reported_size = 10
    if coding == "gzip":
        packed = gzip.compress(body)
        drive.server.downloads.script.append((200, packed, {"Content-Encoding": "gzip"}))
        assert len(packed) < 2_000
    with pytest.raises(DocumentTooLarge) as caught:
        fetched(drive, "a.md", 2_000)
    assert caught.value.size_bytes > 2_000


def test_a_body_that_says_itself_that_it_is_too_large_is_not_waited_for(drive: Drive) -> None:
    location = drive.put("a.md", b"text")
    drive.store.fetch(location, deadline=SOON, max_bytes=10)
    drive.server.downloads.script.append("drip")
    with pytest.raises(DocumentTooLarge) as caught:
        drive.store.fetch(location, deadline=Deadline.after(5), max_bytes=999)
    assert caught.value.size_bytes == 1_000


def test_a_body_of_another_size_than_the_metadata_says_is_the_document(drive: Drive) -> None:
    """SharePoint writes properties into some files as it hands them out."""
    item = drive.upload("a.md", b"text")
    item.reported_size = 3
    assert fetched(drive, "a.md") == b"text"


# -- types -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "stored", "expected"),
    [
        ("a.md", "application/octet-stream", "text/markdown"),
        ("a.txt", "application/octet-stream", "text/plain"),
        ("a.csv", "application/vnd.ms-excel", "text/csv"),
        ("A.MD", None, "text/markdown"),
        ("a.dwg", "image/vnd.dwg", "image/vnd.dwg"),
        ("plan.2024", "image/png", "image/png"),
        ("noext", None, None),
    ],
)
def test_the_type_is_by_extension_or_else_the_servers(
    drive: Drive, name: str, stored: str | None, expected: str | None
) -> None:
    item = drive.upload(name, b"text")
    item.facets["file"] = {"mimeType": stored} if stored else {}
    found = drive.store.fetch(drive.location(name), deadline=SOON, max_bytes=10)
    assert found.stored_mime_type == expected


@pytest.mark.parametrize("name", ["Brief.DOCX", "a.xlsx", "b.pptx", "c.rtf", "d.odt"])
def test_an_office_file_arrives_as_pdf_under_its_own_name_and_version(drive: Drive, name: str) -> None:
    """G-6."""
    location = drive.put(name, b"words" * 1_000)
    found = drive.store.fetch(location, deadline=SOON, max_bytes=1_000)
    assert (found.content, found.stored_mime_type) == (pdf_of(b"words" * 1_000), "application/pdf")
    assert found.location == location
    pointer = SharePointDocumentPointer(sharepoint_drive_id=DRIVE, sharepoint_path=name)
    located = drive.store.locate(pointer, StorageRoots([drive.root]), deadline=SOON)
    assert drive.store.fetch(located, deadline=SOON, max_bytes=1_000).version == found.version


def test_a_pdf_over_the_limit_is_too_large(drive: Drive) -> None:
    drive.put("a.docx", b"w")
    with pytest.raises(DocumentTooLarge) as caught:
        fetched(drive, "a.docx", 100)
    assert caught.value.size_bytes == len(pdf_of(b"w"))


@pytest.mark.parametrize("status", [406, 415])
def test_a_refused_conversion_is_an_unsupported_type(drive: Drive, status: int) -> None:
    drive.put("a.docx", b"words")
    drive.server.script.append(On("/content", failure(status, "notSupported")))
    with pytest.raises(UnsupportedMime) as caught:
        fetched(drive, "a.docx")
    assert caught.value.code == "unsupported_mime"


def test_csv_is_text_and_not_converted(drive: Drive) -> None:
    drive.put("a.csv", b"a,b", "application/vnd.ms-excel")
    assert fetched(drive, "a.csv") == b"a,b"


# -- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (404, DocumentNotFound),
        (410, DocumentNotFound),
        (403, DocumentForbidden),
        (400, KeyNotAddressable),
        (409, Unavailable),
        (423, Unavailable),
    ],
)
def test_a_refusal_is_decided_by_its_status_and_not_repeated(
    drive: Drive, status: int, kind: type[FetchError]
) -> None:
    drive.put("a.md", b"text")
    drive.server.script.append(failure(status, "someCode"))
    with pytest.raises(kind, match="someCode") as caught:
        fetched(drive, "a.md")
    assert type(caught.value) is kind
    assert len(drive.asked) == 1


def test_what_the_application_may_not_read_is_forbidden(drive: Drive) -> None:
    drive.entra.app_reads = {"b!Other"}
    drive.put("a.md", b"text")
    with pytest.raises(DocumentForbidden):
        fetched(drive, "a.md")
    with pytest.raises(DocumentForbidden):
        drive.store.exists(drive.location("a.md"), deadline=SOON)


@pytest.mark.parametrize("body", [b"[]", b'{"id": "1", "name": "a.md", "file": {}}', b"<html>", b"{}"])
def test_an_answer_that_makes_no_sense_is_a_failure_of_the_store(drive: Drive, body: bytes) -> None:
    drive.server.script.append((200, body, {}))
    with pytest.raises(Unavailable):
        fetched(drive, "a.md")
