"""Presigned URLs end when they say, and the shelf gives out what its documents' own stores cannot."""

import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.session import get_session

from groundwire.adapters.s3_urls import S3DeliveryShelf, presigned, seconds_left
from groundwire.deadline import Deadline
from groundwire.documents import FetchedDocument, PreparedDocument
from groundwire.errors import Unavailable
from groundwire.fetching import prepare
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.cloud import REGION, Cloud, session

DRIVE = StorageRoot("policies", "sharepoint", "b!drive")


def ending_in(seconds: float, renewed: float) -> RefreshableCredentials:
    """Credentials that end so soon; renewed ones would end later."""

    def made(seconds: float) -> dict[str, Any]:
        expires = datetime.now(UTC) + timedelta(seconds=seconds)
        return {
            "access_key": "testing",
            "secret_key": "testing",
            "token": "the-token",
            "expiry_time": expires.isoformat(),
        }

    return RefreshableCredentials.create_from_metadata(made(seconds), lambda: made(renewed), "test")


@pytest.mark.parametrize(
    ("ends", "renewed", "seconds"),
    [(7200, 7200, 600), (120, 7200, 600), (610, 500, 300), (310, 310, 300), (200, 200, 120), (90, 90, 60)],
)
def test_a_url_is_never_promised_for_longer_than_its_credentials(
    ends: float, renewed: float, seconds: int
) -> None:
    assert seconds_left(ending_in(ends, renewed)) == seconds


def test_credentials_without_an_end_promise_the_whole_time() -> None:
    assert seconds_left(session().get_credentials()) == 600


def test_the_url_itself_has_the_end_that_is_told() -> None:
    inner: Any = get_session()
    inner._credentials = ending_in(200, 200)
    short = boto3.Session(botocore_session=inner, region_name=REGION)
    url = presigned(short, short.client("s3"), "kb", "a.md")
    assert parse_qs(urlsplit(url.url).query)["X-Amz-Expires"] == ["120"]
    assert url.expires_at <= datetime.now(UTC) + timedelta(seconds=120)


def policy(content: bytes = "Löschen\r\n".encode(), name: str = "Löschen; a/b.md") -> PreparedDocument:
    fetched = FetchedDocument(Location(DRIVE, f"HR/{name}"), content, "c:1", "text/markdown")
    return prepare(fetched)


def test_a_document_that_is_laid_out_can_be_read_by_its_url(cloud: Cloud) -> None:
    shelf = S3DeliveryShelf(session(), cloud.s3, cloud.bucket)
    first, second = (shelf.lay(policy(), deadline=Deadline.after(5)) for _ in range(2))
    with urllib.request.urlopen(first.url) as reply:
        assert reply.read() == "Löschen\r\n".encode()
        assert reply.headers["Content-Type"] == "text/markdown"
        assert reply.headers["Content-Disposition"] == "attachment; filename*=UTF-8''b.md"
    assert first.url.partition("?")[0] != second.url.partition("?")[0], "nobody's URL says what another has"
    assert first.expires_at > datetime.now(UTC)


def _refusing(*_: Any) -> Any:
    raise ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "PutObject")


def _silent(*_: Any) -> Any:
    raise EndpointConnectionError(endpoint_url="http://nowhere")


@pytest.mark.parametrize("call", [_refusing, _silent])
def test_a_shelf_that_takes_nothing_is_unavailable(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any]
) -> None:
    client: Any = cloud.s3
    monkeypatch.setattr(client, "_make_api_call", call)
    with pytest.raises(Unavailable):
        S3DeliveryShelf(session(), client, cloud.bucket).lay(policy(), deadline=Deadline.after(5))


def test_nothing_is_laid_out_when_no_time_is_left(cloud: Cloud) -> None:
    with pytest.raises(Unavailable, match="no time"):
        S3DeliveryShelf(session(), cloud.s3, cloud.bucket).lay(policy(), deadline=Deadline.after(-1))
