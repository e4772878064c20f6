"""Presigned uploads to S3: whatever was agreed on is signed, so that the store refuses anything else."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from groundwire.adapters.s3_urls import seconds_left
from groundwire.errors import Unavailable
from groundwire.pointers import Location
from groundwire.uploading import UploadTerms, UploadUrl

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3UploadSigner:
    """Signs uploads with the function's own credentials; nothing is asked of S3."""

    def __init__(self, session: boto3.Session, endpoint: str | None = None) -> None:
        """`endpoint` is where AWS itself is, where a root names none; an emulator's, or None for AWS."""
        self._session = session
        self._endpoint = endpoint
        self._client = cache(self._new_client)

    def sign(self, location: Location, terms: UploadTerms) -> UploadUrl:
        """A URL for this key and these terms, which ends with the credentials where they end sooner.

        A client adds Content-Length by itself: it is signed too where a size was agreed on. Unavailable
        without credentials.
        """
        root = location.root
        signed: dict[str, Any] = {
            "Bucket": root.bucket,
            "Key": location.key,
            "ContentType": terms.content_type,
        }
        headers = {"Content-Type": terms.content_type}
        if terms.size_bytes is not None:
            signed["ContentLength"] = terms.size_bytes
        if terms.sha256 is not None:
            checksum = b64encode(bytes.fromhex(terms.sha256)).decode()
            signed["ChecksumSHA256"] = headers["x-amz-checksum-sha256"] = checksum
        try:
            seconds = seconds_left(self._session.get_credentials())
            expires_at = datetime.now(UTC) + timedelta(seconds=seconds)
            client = self._client(root.region, root.endpoint or self._endpoint, root.force_path_style)
            url = client.generate_presigned_url("put_object", Params=signed, ExpiresIn=seconds)
        except BotoCoreError as error:
            raise Unavailable(location.uri, f"no upload can be signed ({type(error).__name__})") from error
        return UploadUrl(url, headers, expires_at)

    def _new_client(self, region: str | None, endpoint: str | None, path_style: bool) -> "S3Client":
        return self._session.client(
            "s3",
            region_name=region,
            endpoint_url=endpoint,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path" if path_style or endpoint else "virtual"},
                request_checksum_calculation="when_required",
            ),
        )
