"""S3 and stores that speak its protocol: obstore for bodies, boto3 where obstore may not be trusted.

Keys that obstore would change, and failures that it cannot tell apart, go to boto3 once (obstore_rules.py).
A gzip-encoded object is not inflated: it is bytes of type application/gzip, to the indexer and to the search
alike.
"""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import boto3
import obstore
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.store import S3Store

from groundwire.adapters.obstore_rules import (
    Undecided,
    client_options,
    obstore_errors,
    obstore_may_ask,
    obstore_may_read,
    retry_config,
)
from groundwire.adapters.s3_urls import presigned
from groundwire.deadline import Deadline
from groundwire.delivery import DownloadUrl
from groundwire.documents import FetchedDocument
from groundwire.errors import (
    DocumentForbidden,
    DocumentNotFound,
    DocumentTooLarge,
    FetchError,
    Throttled,
    Unavailable,
)
from groundwire.limits import FETCH_WORKERS, STORE_TIMEOUT_S
from groundwire.pointers import Location
from groundwire.ports import ObjectHead
from groundwire.roots import StorageRoot

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_GZIP = "application/gzip"
_CREDENTIALS_FOR = timedelta(minutes=5)
_MISSING = frozenset({"NoSuchKey", "NoSuchVersion", "NoSuchBucket", "404"})
_DENIED = frozenset({"AccessDenied", "403", "AllAccessDisabled", "KMS.AccessDeniedException"})
_THROTTLED = frozenset({"SlowDown", "503", "Throttling", "ThrottlingException", "RequestLimitExceeded"})
_CHANGED = frozenset({"PreconditionFailed", "412"})
_WRONG_REGION = frozenset({"PermanentRedirect", "301", "AuthorizationHeaderMalformed"})


class S3DocumentFetcher:
    """Reads documents, and the first bytes of them; safe to share between threads."""

    def __init__(self, session: boto3.Session, endpoint: str | None = None) -> None:
        """`endpoint` is where AWS itself is, where a root names none; an emulator's, or None for AWS."""
        self._session = session
        self._endpoint = endpoint
        self._lock = Lock()
        self._store = cache(self._new_store)
        self._client = cache(self._new_client)

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        if obstore_may_ask(location):
            with contextlib.suppress(Undecided):
                return self._fetch_fast(location, max_bytes)
        return self._fetch_exact(location, deadline, max_bytes)

    def exists(self, location: Location, *, deadline: Deadline) -> bool:
        try:
            with _botocore_errors(location.uri):
                self._boto3(location.root).head_object(Bucket=location.root.bucket, Key=location.key)
        except DocumentNotFound:
            return False
        return True

    def head(self, location: Location, max_bytes: int) -> ObjectHead:
        """The first bytes and what the store says of the whole; an empty object has none."""
        if obstore_may_ask(location):
            with contextlib.suppress(Undecided):
                return self._head_fast(location, max_bytes)
        return self._head_exact(location, max_bytes)

    def copy(self, source: Location, destination: Location, version: str) -> str:
        """Copies the object of this version within its root, on the server; the copy's version."""
        root = source.root
        with _botocore_errors(source.uri):
            try:
                reply = self._boto3(root).copy_object(
                    Bucket=root.bucket,
                    Key=destination.key,
                    CopySource={"Bucket": root.bucket, "Key": source.key},
                    CopySourceIfMatch=version,
                    MetadataDirective="COPY",
                )
            except ClientError as error:
                if error.response["Error"]["Code"] in _CHANGED:
                    raise DocumentNotFound(source.uri, "the object was replaced meanwhile") from error
                raise
        return _etag(reply["CopyObjectResult"]["ETag"])

    def remove(self, location: Location, version: str) -> None:
        """Removes the object if this is still its version."""
        with _botocore_errors(location.uri):
            try:
                self._boto3(location.root).delete_object(
                    Bucket=location.root.bucket, Key=location.key, IfMatch=version
                )
            except ClientError as error:
                if error.response["Error"]["Code"] not in _CHANGED | _MISSING:
                    raise

    def sign(self, location: Location) -> DownloadUrl | None:
        """A presigned GET of the current object; None for another store, or a key that clients rewrite."""
        root = location.root
        if root.source_type != "s3" or not obstore_may_read(location.key):
            return None
        return presigned(self._session, self._boto3(root), root.bucket, location.key)

    def client(self, region: str | None) -> "S3Client":
        """A client for other objects of the deployment."""
        with self._lock:
            return self._client(region, self._endpoint, False)

    def _fetch_fast(self, location: Location, max_bytes: int) -> FetchedDocument:
        with obstore_errors(location.uri, STORE_TIMEOUT_S):
            result = obstore.get(self._obstore(location.root), location.key)
            _check_size(location, result.meta["size"], max_bytes)
            content = result.bytes().to_bytes()
            attributes = result.attributes
        encoding, stored = attributes.get("Content-Encoding"), attributes.get("Content-Type")
        return FetchedDocument(location, content, _etag(result.meta["e_tag"]), _media_type(encoding, stored))

    def _fetch_exact(self, location: Location, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        if deadline.passed():
            raise Unavailable(location.uri, "no time was left to ask the store again")
        with _botocore_errors(location.uri):
            reply = self._boto3(location.root).get_object(Bucket=location.root.bucket, Key=location.key)
            with contextlib.closing(reply["Body"]) as body:
                _check_size(location, reply["ContentLength"], max_bytes)
                content = body.read()
        mime_type = _media_type(reply.get("ContentEncoding"), reply.get("ContentType"))
        return FetchedDocument(location, content, _etag(reply["ETag"]), mime_type)

    def _head_fast(self, location: Location, max_bytes: int) -> ObjectHead:
        with obstore_errors(location.uri, STORE_TIMEOUT_S):
            store = self._obstore(location.root)
            result = obstore.get(store, location.key, options={"range": (0, max_bytes)})
            content = result.bytes().to_bytes()
            meta, attributes = result.meta, result.attributes
        return ObjectHead(
            content,
            meta["size"],
            _etag(meta["e_tag"]),
            meta["version"],
            _media_type(attributes.get("Content-Encoding"), attributes.get("Content-Type")),
        )

    def _head_exact(self, location: Location, max_bytes: int) -> ObjectHead:
        client = self._boto3(location.root)
        place: Any = {"Bucket": location.root.bucket, "Key": location.key}
        with _botocore_errors(location.uri):
            try:
                reply: Any = client.get_object(**place, Range=f"bytes=0-{max_bytes - 1}")
                # A store that knows no ranges answers with the whole, which is not read.
                with contextlib.closing(reply["Body"]) as body:
                    content = body.read(max_bytes)
                if len(content) < min(max_bytes, reply["ContentLength"]):
                    raise Unavailable(location.uri, "the answer was cut off")
                size = int(reply.get("ContentRange", f"/{reply['ContentLength']}").rsplit("/", 1)[1])
            except ClientError as error:
                if error.response["Error"]["Code"] != "InvalidRange":
                    raise
                reply, content, size = client.head_object(**place), b"", 0
        mime_type = _media_type(reply.get("ContentEncoding"), reply.get("ContentType"))
        version = reply.get("VersionId")
        return ObjectHead(content, size, _etag(reply["ETag"]), version, mime_type)

    # Clients and stores are made once per place; neither boto3's maker nor `cache` is safe from threads.

    def _obstore(self, root: StorageRoot) -> S3Store:
        with self._lock:
            return self._store(
                root.bucket, root.region, root.endpoint or self._endpoint, root.force_path_style
            )

    def _boto3(self, root: StorageRoot) -> "S3Client":
        with self._lock:
            return self._client(root.region, root.endpoint or self._endpoint, root.force_path_style)

    def _new_store(self, bucket: str, region: str | None, endpoint: str | None, path_style: bool) -> S3Store:
        options: dict[str, Any] = {"region": region} if region else {}
        if endpoint:
            # Virtual style with an own endpoint would drop the bucket from the request.
            options |= {"endpoint": endpoint, "virtual_hosted_style_request": False}
        else:
            options["virtual_hosted_style_request"] = not path_style
        return S3Store(
            bucket,
            **options,
            credential_provider=Boto3CredentialProvider(self._session, ttl=_CREDENTIALS_FOR),
            client_options=client_options(endpoint, STORE_TIMEOUT_S),
            retry_config=retry_config(STORE_TIMEOUT_S),
        )

    def _new_client(self, region: str | None, endpoint: str | None, path_style: bool) -> "S3Client":
        client = self._session.client(
            "s3",
            region_name=region,
            endpoint_url=endpoint,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path" if path_style or endpoint else "virtual"},
                connect_timeout=1,
                read_timeout=STORE_TIMEOUT_S,
                retries={"mode": "standard", "total_max_attempts": 2},
                max_pool_connections=FETCH_WORKERS,
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
        client.meta.events.register("before-call.s3", _stay)
        return client


def _stay(params: Any, **_: Any) -> None:
    """Tells botocore that it has followed a redirect: it would look for the region, and never stop."""
    params["context"].setdefault("s3_redirect", {})["redirected"] = True


@contextlib.contextmanager
def _botocore_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise _by_code(uri, error.response["Error"]["Code"]) from error
    except BotoCoreError as error:
        raise Unavailable(uri, f"the store does not answer ({type(error).__name__})") from error


def _by_code(uri: str, code: str) -> FetchError:
    if code in _MISSING:
        return DocumentNotFound(uri, "there is no such object")
    if code in _DENIED:
        return DocumentForbidden(uri, "the store denies access")
    if code == "InvalidObjectState":
        return Unavailable(uri, "the object is archived")
    if code in _THROTTLED:
        return Throttled(uri, f"the store is busy ({code})")
    if code in _WRONG_REGION:
        return Unavailable(uri, "the storage root is configured with the wrong region")
    return Unavailable(uri, f"the store answered {code}")


def _check_size(location: Location, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise DocumentTooLarge(location.uri, size, max_bytes)


def _etag(value: str | None) -> str:
    return (value or "").strip('"')


def _media_type(encoding: str | None, stored: str | None) -> str | None:
    return _GZIP if encoding and "gzip" in encoding.lower() else stored
