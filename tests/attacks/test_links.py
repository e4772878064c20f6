"""URLs that open a document to whoever holds them (G-7): what was allowed, that alone, and not for long.

What S3 would say of a URL is asked of tests/presigned.py: the emulators here take any signature.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import pytest

from groundwire.limits import DOWNLOAD_S
from tests.attacks.keep import PLANTED, Keep
from tests.cloud import Cloud
from tests.integration.driving import post, upload
from tests.integration.test_access import READER, role
from tests.integration.test_external_stores import DRIVE
from tests.presigned import refusal

pytestmark = pytest.mark.attacks


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """An envelope in which hardly anything stays inline."""
    monkeypatch.setattr("groundwire.delivery.RESPONSE_BYTES", 60_000)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "testing")
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)


def links(*sources: Any, authorizer: Any = ...) -> dict[str, dict[str, str]]:
    answer = post("/v1/ground", {"sources": list(sources)}, authorizer)
    documents = answer.json["allDocumentsForAttachment"]
    return {each["uri"]: each["downloadUrl"] for each in documents if "downloadUrl" in each}


def test_only_what_a_caller_may_read_is_given_a_url(cloud: Cloud) -> None:
    cloud.wire(cloud.root(), cloud.root(name="hidden", prefix="hidden", readers=(READER,)))
    body = PLANTED * 20_000
    upload(cloud, {"a.md": f"---\nincludes: [hidden/b.md]\n---\n{'x' * 100_000}", "hidden/b.md": body})
    allowed, hidden = cloud.uri("a.md"), cloud.uri("hidden/b.md")
    assert links(allowed, hidden, authorizer=role("app")).keys() == {allowed}
    assert links(allowed, hidden, authorizer=role("reader")).keys() == {allowed, hidden}
    answer = post("/v1/ground", {"sources": [hidden]}, role("app"))
    assert "X-Amz-Signature" not in answer.body


def test_a_url_opens_one_document_for_reading_and_ends(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "x" * 100_000, "b.md": PLANTED})
    (link,) = links(cloud.uri("a.md")).values()
    parts = urlsplit(link["url"])
    query = parse_qs(parts.query)
    assert refusal(link["url"], "GET", {}) is None

    def changed(path: str = parts.path, **values: str) -> str:
        pairs = {name: value for name, (value,) in query.items()} | values
        encoded = "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs.items())
        return urlunsplit(parts._replace(path=path, query=encoded))

    assert refusal(changed(), "GET", {}) is None
    for path in ("b.md", "a.md/../b.md", "%2e%2e/b.md", "", "A.md"):
        assert refusal(changed(f"/{cloud.bucket}/{path}"), "GET", {}) == "SignatureDoesNotMatch", path
    for method in ("PUT", "DELETE", "POST", "HEAD"):
        assert refusal(link["url"], method, {}) == "SignatureDoesNotMatch", method
    assert refusal(changed(**{"X-Amz-Expires": "604800"}), "GET", {}) == "SignatureDoesNotMatch"
    assert refusal(changed(versionId="x"), "GET", {}) == "SignatureDoesNotMatch"
    signed = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    seconds = int(query["X-Amz-Expires"][0])
    assert seconds <= DOWNLOAD_S
    ends = datetime.fromisoformat(link["expiresAt"])
    assert abs(ends - signed - timedelta(seconds=seconds)) <= timedelta(seconds=2), "it says so truly"


def test_what_is_laid_out_for_one_caller_is_found_by_no_other(keep: Keep) -> None:
    """The delivery bucket: another key each time, which nobody can guess from the document."""
    keep.store("a.md", b"x" * 100_000)
    keep.graph.put(DRIVE, "a.md", b"x" * 100_000)
    for uri in (f"gs://{keep.bucket}/a.md", f"sharepoint://{DRIVE}/a.md"):
        first, second = (urlsplit(links(uri)[uri]["url"]) for _ in range(2))
        assert first.path.startswith(f"/{keep.delivery}/")
        assert first.path != second.path
        assert "tempauth" not in first.query + second.query
        borrowed = urlunsplit(first._replace(path=second.path))
        assert refusal(borrowed, "GET", {}) == "SignatureDoesNotMatch"
