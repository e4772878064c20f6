"""AWS Signature Version 4 for an HTTP API with IAM authorisation; botocore is imported with this module."""

import os
import re
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from groundwire.errors import ConfigurationError

_SERVICE: Final = "execute-api"
_HOST: Final = re.compile(rf"[a-z0-9-]+\.{_SERVICE}\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


class SigV4Signer:
    """Signs with a session's credentials, which it renews; safe to share between threads."""

    def __init__(self, host: str, region: str | None = None, session: Any = None) -> None:
        """`session`: boto3's or botocore's, else the usual chain of credentials.

        `region`: else the API's host name's, the session's or AWS_REGION. ConfigurationError without any.
        """
        self._session = session or Session()
        found = _HOST.fullmatch(host)
        named = region or (found[1] if found else None) or _configured_region(self._session)
        told = named or os.environ.get("AWS_REGION")  # AWS's other tools read it, botocore does not
        if not told:
            raise ConfigurationError(
                f"the region of {host} cannot be told from its name: set AWS_REGION, or IamAuth's region"
            )
        self._region: str = told
        self._lock = Lock()
        self._credentials: Any = None

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """`headers` with the signature of a request; the URL must be sent exactly as it is here."""
        request = AWSRequest(method, url, dict(headers), body)
        SigV4Auth(self._frozen(), _SERVICE, self._region).add_auth(request)
        return dict(request.headers.items())

    def _frozen(self) -> Any:
        with self._lock:
            try:
                self._credentials = self._credentials or self._session.get_credentials()
                if self._credentials is None:
                    raise ConfigurationError("no AWS credentials were found to sign requests with")
                return self._credentials.get_frozen_credentials()
            except BotoCoreError as error:
                raise ConfigurationError(f"AWS credentials cannot be had ({type(error).__name__})") from error


def _configured_region(session: Any) -> str | None:
    """botocore's sessions have it as a setting, boto3's as an attribute."""
    setting = getattr(session, "get_config_variable", None)
    found = setting("region") if setting else session.region_name
    return str(found) if found else None
