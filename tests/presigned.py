"""What S3 asks of a presigned request, by its documentation and not by botocore's code."""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit

SECRET = "testing"


def refusal(url: str, method: str, headers: Mapping[str, str], body: bytes = b"") -> str | None:
    """Why S3 would refuse the request, or None; HTTP adds the host and the body's length."""
    parts = urlsplit(url)
    sent = {name.lower(): value.strip() for name, value in headers.items()}
    sent |= {"host": parts.netloc, "content-length": str(len(body))}
    query = dict(parse_qsl(parts.query, strict_parsing=True))
    signature = query.pop("X-Amz-Signature")
    signed = query["X-Amz-SignedHeaders"].split(";")
    unsigned = [name for name in sent if name.startswith("x-amz-") and name not in signed]
    if unsigned:
        return f"AccessDenied: not signed: {', '.join(unsigned)}"
    canonical = [
        method,
        parts.path,
        "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(query.items())),
        *(f"{name}:{sent.get(name, '')}" for name in signed),
        "",
        ";".join(signed),
        "UNSIGNED-PAYLOAD",
    ]
    _, day, region, service, terminator = query["X-Amz-Credential"].split("/")
    key = f"AWS4{SECRET}".encode()
    for each in (day, region, service, terminator):
        key = hmac.digest(key, each.encode(), hashlib.sha256)
    request = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    scope = "/".join((day, region, service, terminator))
    text = "\n".join((query["X-Amz-Algorithm"], query["X-Amz-Date"], scope, request))
    if hmac.digest(key, text.encode(), hashlib.sha256).hex() != signature:
        return "SignatureDoesNotMatch"
    checksum = sent.get("x-amz-checksum-sha256")
    if checksum and checksum != b64encode(hashlib.sha256(body).digest()).decode():
        return "BadDigest"
    return None
