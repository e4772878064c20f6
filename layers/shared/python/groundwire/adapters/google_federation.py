"""Google access tokens for the function's own AWS role, without any key (workload identity federation).

google-auth by itself looks for AWS credentials in variables that do not exist under SnapStart; botocore knows
every place they can be in, and renews them.
"""

import json
from datetime import UTC
from functools import partial
from typing import Any

import botocore.session
from botocore.exceptions import BotoCoreError
from google.auth import aws
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request

from groundwire.adapters.access_tokens import AccessToken, NoToken
from groundwire.limits import TOKEN_TIMEOUT_S

_READ_ONLY = "https://www.googleapis.com/auth/devstorage.read_only"


class RoleCredentials(aws.AwsSecurityCredentialsSupplier):
    """The function's own AWS credentials, wherever the platform keeps them."""

    def __init__(self, session: botocore.session.Session, region: str) -> None:
        self._session, self._region = session, region

    def get_aws_security_credentials(self, context: Any, request: Any) -> aws.AwsSecurityCredentials:
        credentials = self._session.get_credentials()
        if credentials is None:
            raise NoToken("the function has no AWS credentials")
        frozen = credentials.get_frozen_credentials()
        return aws.AwsSecurityCredentials(frozen.access_key or "", frozen.secret_key or "", frozen.token)

    def get_aws_region(self, context: Any, request: Any) -> str:
        return self._region


class RoleFederation:
    """Exchanges the role's credentials for a token that may read Cloud Storage, and nothing else."""

    def __init__(
        self,
        audience: str,
        region: str,
        *,
        impersonation_url: str | None = None,
        token_url: str = "https://sts.googleapis.com/v1/token",  # noqa: S107 - an address
    ) -> None:
        """`audience` is the provider's resource name, with its leading slashes; `region` is this function's.

        `impersonation_url` names a service account to become, where the role itself has no access.
        """
        # A session of its own: boto3's is being used by other threads, and is not made for that.
        self._supplier = RoleCredentials(botocore.session.Session(), region)
        self._options: dict[str, Any] = {
            "audience": audience,
            "token_url": token_url,
            "service_account_impersonation_url": impersonation_url,
        }
        # What is sent vouches for this function's role: it goes where it was configured to, and nowhere else.
        self._request = partial(Request(), timeout=TOKEN_TIMEOUT_S, allow_redirects=False)

    def __call__(self) -> AccessToken:
        """A new token; NoToken where AWS or Google gave none."""
        credentials = aws.Credentials(  # type: ignore[no-untyped-call]
            subject_token_type="urn:ietf:params:aws:token-type:aws4_request",  # noqa: S106 - a type
            aws_security_credentials_supplier=self._supplier,
            scopes=[_READ_ONLY],
            **self._options,
        )
        try:
            credentials.refresh(self._request)  # type: ignore[no-untyped-call]
        except (GoogleAuthError, BotoCoreError, ValueError, TypeError) as error:
            # The last two are google-auth's for an answer that is no token response. And not `from error`:
            # who logs the whole chain would log what Google answered.
            raise NoToken(_cause(error)) from None
        if not credentials.token or not credentials.expiry:
            raise NoToken("the answer holds no token")
        return AccessToken(credentials.token, credentials.expiry.replace(tzinfo=UTC))


def _cause(error: Exception) -> str:
    """The names of what went wrong and OAuth's code: the answer's own text may hold what we sent."""
    names = [type(error).__name__]
    inner = error.__cause__ or error.__context__
    if inner:
        names.append(type(inner).__name__)
    code = _oauth_code(error)
    return " ".join([*names, *([code] if code else [])])


def _oauth_code(error: Exception) -> str | None:
    """`invalid_grant` and its like, from the answer that google-auth keeps beside its message."""
    try:
        code = json.loads(error.args[1])["error"]
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    # The service account's endpoint answers with an object, as all of Google's APIs but this one.
    code = code.get("status") if isinstance(code, dict) else code
    return code if isinstance(code, str) and code.replace("_", "").isalpha() and len(code) < 40 else None
