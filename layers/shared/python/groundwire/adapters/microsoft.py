"""Tokens for Microsoft Graph (Z-4): the application's own, or on behalf of the caller who brought one.

msal is imported when the first token is wanted. It neither locks (a cold cache costs one request a
thread) nor reads its cache for delegated tokens: both are done here. No token is ever logged.
"""

import base64
import binascii
import hashlib
import json
import logging
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from groundwire.deadline import Deadline
from groundwire.errors import DocumentForbidden, Unavailable
from groundwire.limits import DELEGATED_TOKEN_MARGIN_S, DELEGATED_TOKENS, STORE_TIMEOUT_S

if TYPE_CHECKING:
    import msal  # type: ignore[import-untyped]

AUTHORITY = "https://login.microsoftonline.com"
_SCOPES = ["https://graph.microsoft.com/.default"]
_EXCHANGE_AUDIENCE = "api://AzureADTokenExchange"
_REFUSED = frozenset({"invalid_grant", "interaction_required", "consent_required", "login_required"})

Credential = Mapping[str, Any]
"""How the application proves who it is, as msal takes it."""


class TokenTransport(Protocol):
    """An HTTP client as msal takes one; its answers have `status_code`, `text` and `headers`."""

    def get(self, url: str, **kwargs: Any) -> Any: ...
    def post(self, url: str, **kwargs: Any) -> Any: ...
    def close(self) -> None: ...


def certificate(secrets: Any, secret_id: str) -> Callable[[], Credential]:
    """The credential in a Secrets Manager secret, read when it is first wanted.

    The secret is JSON: `{"private_key": PEM, "public_certificate": PEM}`. `secrets` is boto3's client.
    """

    def credential() -> Credential:
        with _aws_errors(secret_id):
            text = secrets.get_secret_value(SecretId=secret_id)["SecretString"]
        try:
            values = json.loads(text)
            return {name: values[name] for name in ("private_key", "public_certificate")}
        except (ValueError, TypeError, KeyError):
            what = "the secret must be JSON with private_key and public_certificate"
            raise Unavailable(secret_id, what) from None  # the text of the error would quote the secret

    return credential


def keyless(client_assertion: Callable[[], str]) -> Callable[[], Credential]:
    """The credential of a federated application; `client_assertion` gives a fresh one, or Unavailable."""
    return lambda: {"client_assertion": client_assertion}


def web_identity(sts: Any, audience: str = _EXCHANGE_AUDIENCE) -> Callable[[], str]:
    """For `keyless`: what this function's role is vouched for by AWS itself; `sts` is boto3's client."""

    def client_assertion() -> str:
        with _aws_errors("sts"):
            reply = sts.get_web_identity_token(
                Audience=[audience], SigningAlgorithm="RS256", DurationSeconds=300
            )
        return str(reply["WebIdentityToken"])

    return client_assertion


class GraphTokens:
    """Access tokens for Graph; safe to share between threads."""

    def __init__(
        self,
        tenant_id: str,
        client_id: str,
        credential: Callable[[], Credential],
        *,
        transport: TokenTransport | None = None,
        authority: str = AUTHORITY,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives seconds since the epoch, which tokens count in."""
        self._client_id = client_id
        self._authority = f"{authority}/{tenant_id}"
        self._credential = credential
        self._transport = transport
        self._clock = clock
        self._lock = Lock()
        self._deadline = Deadline(0.0)
        self._made: msal.ConfidentialClientApplication | None = None
        self._app_token = ""
        self._delegated: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def token(self, assertion: str | None, *, uri: str, deadline: Deadline) -> str:
        """The application's token, or where `assertion` is a caller's own token, one on their behalf.

        Unavailable where there is none to be had in time, DocumentForbidden where the caller's token is
        refused; `uri` is of the document it is for.
        """
        with self._turn(uri, deadline):
            if assertion is None:
                self._app_token = self._acquired(uri, None)["access_token"]
                return self._app_token
            return self._on_behalf_of(assertion, uri)

    def refuse(self, assertion: str | None, token: str, *, uri: str, deadline: Deadline) -> None:
        """Graph did not take the token: the next one is a new one, unless there is one already."""
        with self._turn(uri, deadline):
            if assertion is not None:
                key = caller_key(assertion)
                if self._delegated.get(key, ("", 0.0))[0] == token:
                    del self._delegated[key]
            elif self._made and self._app_token == token:
                self._made.remove_tokens_for_client()

    @contextmanager
    def _turn(self, uri: str, deadline: Deadline) -> Iterator[None]:
        """One at a time: whoever waits finds the token that the first one fetched."""
        if not self._lock.acquire(timeout=deadline.left()):
            raise Unavailable(uri, "no token was had in time")
        try:
            self._deadline = deadline
            yield
        finally:
            self._lock.release()

    def _on_behalf_of(self, assertion: str, uri: str) -> str:
        key, now = caller_key(assertion), self._clock()
        token, expires = self._delegated.get(key, ("", 0.0))
        if now < expires:
            self._delegated.move_to_end(key)
            return token
        answer = self._acquired(uri, assertion)
        usable = float(answer.get("expires_in") or 0.0) - DELEGATED_TOKEN_MARGIN_S
        self._delegated[key] = (answer["access_token"], min(now + usable, _expiry(assertion)))
        self._delegated.move_to_end(key)
        while len(self._delegated) > DELEGATED_TOKENS:
            self._delegated.popitem(last=False)
        return str(answer["access_token"])

    def _acquired(self, uri: str, assertion: str | None) -> dict[str, Any]:
        import jwt
        import msal

        try:
            app = self._application()
            if assertion is None:
                answer = app.acquire_token_for_client(_SCOPES)
            else:
                answer = app.acquire_token_on_behalf_of(assertion, _SCOPES)
        except Unavailable as error:
            raise Unavailable(uri, error.detail) from error
        except (msal.exceptions.MsalError, jwt.PyJWTError, ValueError, RuntimeError) as error:
            # From None: these texts quote what was sent and what came.
            raise Unavailable(uri, f"no token was had ({type(error).__name__})") from None
        if "access_token" in answer:
            return dict(answer)
        code = str(answer.get("error"))
        if assertion is not None and code in _REFUSED:
            raise DocumentForbidden(uri, f"the caller's token is refused ({code})")
        raise Unavailable(uri, f"no token was had ({code})")

    def _application(self) -> "msal.ConfidentialClientApplication":
        """Made once, since that asks the authority for its configuration."""
        if self._made is None:
            import msal

            class AppTokens(msal.TokenCache):  # type: ignore[misc]
                """Keeps the application's tokens only: msal never reads the delegated ones it would keep."""

                def add(self, event: dict[str, Any], **kwargs: Any) -> Any:
                    if event.get("grant_type") == "client_credentials":
                        return super().add(event, **kwargs)
                    return None

            transport = self._transport or _Transport(lambda: self._deadline)
            self._made = msal.ConfidentialClientApplication(
                self._client_id,
                client_credential=self._credential(),
                authority=self._authority,
                instance_discovery=False,
                token_cache=AppTokens(),
                http_client=_Guarded(transport),
            )
        return self._made


def caller_key(assertion: str) -> str:
    """What a caller's own token is known by, wherever something is kept for that caller."""
    return hashlib.sha256(assertion.encode()).hexdigest()


def _expiry(assertion: str) -> float:
    """When the token ends, in seconds since the epoch; long ago where it does not say.

    It is not verified: Entra does that at each exchange, and the platform did before.
    """
    try:
        payload = assertion.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return 0.0


class _Guarded:
    """What msal must not see of an answer, because it would keep or log it."""

    def __init__(self, transport: TokenTransport) -> None:
        self._transport = transport

    def get(self, url: str, **kwargs: Any) -> Any:
        return self._transport.get(url, **kwargs)

    def post(self, url: str, **kwargs: Any) -> Any:
        answer = self._transport.post(url, **kwargs)
        try:
            json.loads(answer.text)
        except ValueError:
            # msal would log the text.
            raise Unavailable(url, f"the authority answered {answer.status_code} without JSON") from None
        if answer.status_code < 400:
            # Answers with Retry-After are kept by msal and given to whoever asks next, callers included.
            return _Answer(answer.status_code, answer.text)
        return answer

    def close(self) -> None:
        self._transport.close()


class _Answer:
    def __init__(self, status_code: int, text: str) -> None:
        self.status_code = status_code
        self.text = text
        self.headers: dict[str, str] = {}


class _Transport:
    """httpx2 as msal takes it, under the deadline of whoever asks."""

    def __init__(self, deadline: Callable[[], Deadline]) -> None:
        import httpx2

        silence()
        self._deadline = deadline
        self._client = httpx2.Client(verify=trust_store())

    def get(self, url: str, **kwargs: Any) -> Any:
        return self._send("GET", url, **kwargs)

    def post(self, url: str, **kwargs: Any) -> Any:
        return self._send("POST", url, **kwargs)

    def close(self) -> None:
        self._client.close()

    def _send(
        self, method: str, url: str, *, params: Any = None, data: Any = None, headers: Any = None, **_: Any
    ) -> Any:
        import httpx2

        seconds = min(STORE_TIMEOUT_S, self._deadline().left())
        if seconds <= 0:
            raise Unavailable(url, "no time was left to ask for a token")
        try:
            return self._client.request(
                method, url, params=params, data=data, headers=headers, timeout=seconds
            )
        except httpx2.HTTPError as error:
            what = f"the authority does not answer ({type(error).__name__})"
            raise Unavailable(url, what) from error


@cache
def trust_store() -> ssl.SSLContext:
    """Read once for all clients: each would spend 30 ms of a cold start on one of its own."""
    import httpx2

    return httpx2.create_ssl_context()


def silence() -> None:
    """httpx2 logs every URL and httpcore2 every header: pre-authenticated URLs and tokens among them."""
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def _aws_errors(what: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise Unavailable(what, f"AWS answered {error.response['Error']['Code']}") from error
    except BotoCoreError as error:
        raise Unavailable(what, f"AWS does not answer ({type(error).__name__})") from error
