"""Presigned URLs, with the end that they really have: that of the credentials, where it is earlier."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from groundwire.deadline import Deadline
from groundwire.delivery import DownloadUrl
from groundwire.documents import PreparedDocument
from groundwire.errors import Unavailable
from groundwire.limits import DOWNLOAD_S

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_s3 import S3Client

_SHORTER: Final = (DOWNLOAD_S, DOWNLOAD_S // 2, 120, 60)
_NAME_CHARS = 120


def presigned(session: "boto3.Session", client: "S3Client", bucket: str, key: str) -> DownloadUrl:
    """A URL that gives the object to whoever holds it."""
    seconds = seconds_left(session.get_credentials())
    expires_at = datetime.now(UTC) + timedelta(seconds=seconds)
    url = client.generate_presigned_url(
        "get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=seconds
    )
    return DownloadUrl(url, expires_at)


def seconds_left(credentials: Any) -> int:
    """How long a URL signed now may be promised to work: ten minutes, unless the credentials end before."""
    ends_within = getattr(credentials, "refresh_needed", None)
    if ends_within is None:
        return DOWNLOAD_S  # they say nothing of an end
    credentials.get_frozen_credentials()  # renews those that are about to end
    return next((each for each in _SHORTER if not ends_within(refresh_in=each)), _SHORTER[-1])


class S3DeliveryShelf:
    """A DeliveryShelf in a bucket of its own, which is encrypted and forgets after a day."""

    def __init__(self, session: "boto3.Session", client: "S3Client", bucket: str) -> None:
        self._session = session
        self._client = client
        self._bucket = bucket

    def lay(self, document: PreparedDocument, *, deadline: Deadline) -> DownloadUrl:
        """A URL of the document's bytes; Unavailable where the bucket does not take them."""
        uri = document.uri
        if deadline.passed():
            raise Unavailable(uri, "no time was left to lay the document out")
        key = f"{uuid4().hex}/{document.sha256}"
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=document.content,
                ContentType=document.mime_type,
                ContentDisposition=f"attachment; filename*=UTF-8''{_name(document)}",
            )
            return presigned(self._session, self._client, self._bucket, key)
        except (BotoCoreError, ClientError) as error:
            raise Unavailable(
                uri, f"the delivery bucket does not take it ({type(error).__name__})"
            ) from error


def _name(document: PreparedDocument) -> str:
    return quote(document.display_name[:_NAME_CHARS], safe="")
