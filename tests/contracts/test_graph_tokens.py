"""Tokens for Graph: one request however many ask, a caller's own for that caller only, none in any text."""

import base64
import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from time import time
from typing import Any

import jwt
import pytest
from botocore.stub import Stubber
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from groundwire.adapters.microsoft import (
    GraphTokens,
    caller_key,
    certificate,
    keyless,
    web_identity,
)
from groundwire.deadline import Deadline
from groundwire.errors import DocumentForbidden, FetchError, Unavailable
from groundwire.limits import DELEGATED_TOKEN_MARGIN_S, DELEGATED_TOKENS
from local.servers.graph import Entra, TokenAnswer
from tests.cloud import REGION, session
from tests.contracts.drives import tokens
from tests.fakes import HandClock

SOON = Deadline.after(24 * 3600)
URI = "sharepoint://b!1/a.md"


def assertion(name: str, expires: float) -> str:
    """A caller's own token, as far as anybody here reads it."""
    parts = ({"alg": "none"}, {"sub": name, "exp": expires})
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts)
        + "."
    )


def token(source: GraphTokens, own: str | None = None, deadline: Deadline = SOON) -> str:
    return source.token(own, uri=URI, deadline=deadline)


# -- the application's -------------------------------------------------------------------------


def test_eight_cold_threads_cost_one_request() -> None:
    entra = Entra()
    source = tokens(entra)
    barrier = threading.Barrier(8)

    def ask() -> str:
        barrier.wait(30)
        return token(source)

    with ThreadPoolExecutor(8) as pool:
        found = {each.result() for each in [pool.submit(ask) for _ in range(8)]}
    assert (len(found), entra.posts, entra.gets) == (1, 1, 1)


def test_nothing_is_asked_for_before_a_token_is_wanted() -> None:
    entra = Entra()
    read: list[str] = []
    source = GraphTokens("contoso", "groundwire", lambda: read.append("credential") or {}, transport=entra)  # type: ignore[func-returns-value]
    assert (entra.gets, entra.posts, read) == (0, 0, [])
    with pytest.raises(Unavailable):
        token(source)
    assert read == ["credential"]


def test_who_waits_for_another_ones_request_waits_no_longer_than_the_deadline() -> None:
    entra = Entra()
    source = tokens(entra)
    asked, answer = threading.Event(), threading.Event()

    def slow() -> TokenAnswer:
        asked.set()
        answer.wait(30)
        return TokenAnswer(200, json.dumps({"access_token": "late", "expires_in": 3600}))

    entra.script.append(slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(token, source)
        assert asked.wait(30)
        with pytest.raises(Unavailable, match="in time"):
            token(source, deadline=Deadline.after(0.05))
        answer.set()
        assert first.result() == "late"


def test_a_refused_token_is_replaced_unless_it_was_already() -> None:
    entra = Entra()
    source = tokens(entra)
    first = token(source)
    source.refuse(None, first, uri=URI, deadline=SOON)
    second = token(source)
    source.refuse(None, first, uri=URI, deadline=SOON)
    assert (token(source), entra.posts) == (second, 2)
    assert second != first


@pytest.mark.parametrize(
    "answer",
    [
        TokenAnswer(400, '{"error": "invalid_client", "error_description": "secret words"}'),
        TokenAnswer(401, '{"error": "unauthorized_client"}'),
        TokenAnswer(429, '{"error": "too_many"}', {"Retry-After": "1"}),
        TokenAnswer(503, "{}"),
        TokenAnswer(503, "secret words, not JSON"),
        TokenAnswer(200, "secret words, not JSON"),
        TokenAnswer(200, "{}"),
    ],
)
def test_a_token_that_cannot_be_had_is_unavailable(
    answer: TokenAnswer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    entra = Entra()
    entra.script.append(answer)
    with pytest.raises(Unavailable) as caught:
        token(tokens(entra))
    assert (caught.value.uri, caught.value.code) == (URI, "unavailable")
    assert "secret words" not in str(caught.value) + caplog.text


def test_an_authority_that_cannot_be_reached_is_unavailable_and_asked_again() -> None:
    entra = Entra()
    source = tokens(entra)
    discovery, entra.get = entra.get, lambda url, **_: TokenAnswer(400, "{}")  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        token(source)
    entra.get = discovery  # type: ignore[method-assign]
    assert token(source)


def test_without_a_transport_httpx2_asks_and_no_further_than_the_deadline() -> None:
    """Tests may reach this machine only, so the real authority is one that nobody answers for."""
    source = GraphTokens("contoso", "groundwire", keyless(lambda: "vouched"), authority="https://127.0.0.1:1")
    with pytest.raises(Unavailable, match="authority does not answer"):
        token(source)
    with pytest.raises(Unavailable):
        token(source, deadline=Deadline.after(0))


# -- what it proves itself with ----------------------------------------------------------------


def self_signed() -> tuple[str, str]:
    """A private key and its certificate, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "groundwire")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private.decode(), made.public_bytes(pem).decode()


def with_secret(text: str) -> tuple[Any, Stubber]:
    client = session().client("secretsmanager", region_name=REGION)
    stubber = Stubber(client)
    stubber.add_response("get_secret_value", {"SecretString": text}, {"SecretId": "graph"})
    stubber.activate()
    return client, stubber


def test_a_certificate_signs_for_the_application() -> None:
    private_key, public = self_signed()
    client, _ = with_secret(json.dumps({"private_key": private_key, "public_certificate": public}))
    entra = Entra()
    source = GraphTokens("contoso", "groundwire", certificate(client, "graph"), transport=entra)
    assert token(source)
    (signed,) = entra.client_assertions
    header = jwt.get_unverified_header(signed)
    assert (header["alg"], len(header["x5c"])) == ("PS256", 1)
    key = x509.load_pem_x509_certificate(public.encode()).public_key()
    audience = "https://login.microsoftonline.com/contoso/oauth2/v2.0/token"
    claims = jwt.decode(signed, key, algorithms=["PS256"], audience=audience)  # type: ignore[arg-type]
    assert claims["iss"] == claims["sub"] == "groundwire"


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN secret words",
        "[]",
        '{"private_key": "secret words"}',
        '{"private_key": "secret words", "public_certificate": "secret words"}',
    ],
)
def test_a_secret_that_holds_no_certificate_is_not_quoted(text: str) -> None:
    client, _ = with_secret(text)
    with pytest.raises(Unavailable) as caught:
        token(GraphTokens("contoso", "groundwire", certificate(client, "graph"), transport=Entra()))
    error: BaseException | None = caught.value
    while error:
        assert "secret words" not in str(error)
        error = error.__cause__


def test_a_secret_that_cannot_be_read_is_unavailable() -> None:
    client, stubber = with_secret("{}")
    stubber.add_client_error("get_secret_value", "AccessDeniedException")
    client.get_secret_value(SecretId="graph")
    with pytest.raises(Unavailable, match="AccessDeniedException") as caught:
        token(GraphTokens("contoso", "groundwire", certificate(client, "graph"), transport=Entra()))
    assert caught.value.uri == URI


def test_a_federated_application_is_vouched_for_afresh_each_time() -> None:
    sts = session().client("sts", region_name=REGION)
    asked = {"Audience": ["api://AzureADTokenExchange"], "SigningAlgorithm": "RS256", "DurationSeconds": 300}
    entra = Entra()
    with Stubber(sts) as stubber:
        for name in ("first", "second"):
            vouched = {"WebIdentityToken": name, "Expiration": datetime.now(UTC)}
            stubber.add_response("get_web_identity_token", vouched, asked)
        source = GraphTokens("contoso", "groundwire", keyless(web_identity(sts)), transport=entra)
        source.refuse(None, token(source), uri=URI, deadline=SOON)
        token(source)
        stubber.add_client_error("get_web_identity_token", "OutboundWebIdentityFederationDisabled")
        source.refuse(None, token(source), uri=URI, deadline=SOON)
        with pytest.raises(Unavailable, match="OutboundWebIdentityFederationDisabled"):
            token(source)
    assert entra.client_assertions == ["first", "second"]


# -- a caller's own ----------------------------------------------------------------------------


class Delegation:
    def __init__(self, lifetime: float = 3600.0, expires_in: int = 3600) -> None:
        self.clock = HandClock()
        self.clock.now = time()
        self.entra = Entra()
        self.entra.expires_in = expires_in
        self.anna, self.ben = (assertion(name, self.clock.now + lifetime) for name in ("anna", "ben"))
        self.entra.users = {self.anna: {"a"}, self.ben: {"b"}}
        self.source = tokens(self.entra, clock=self.clock)


def test_a_callers_token_is_exchanged_once_and_is_that_callers_only() -> None:
    each = Delegation()
    anna, ben = token(each.source, each.anna), token(each.source, each.ben)
    assert (token(each.source, each.anna), token(each.source, each.ben)) == (anna, ben)
    assert each.entra.posts == 2
    assert len({anna, ben, token(each.source)}) == 3


@pytest.mark.parametrize(
    ("lifetime", "expires_in", "usable"),
    [(9000.0, 3600, 3600 - DELEGATED_TOKEN_MARGIN_S), (600.0, 3600, 600.0), (9000.0, 200, 0.0)],
)
def test_an_exchanged_token_is_used_until_shortly_before_it_or_the_callers_own_ends(
    lifetime: float, expires_in: int, usable: float
) -> None:
    each = Delegation(lifetime, expires_in)
    first = token(each.source, each.anna)
    each.clock.turn(usable - 1)
    assert (token(each.source, each.anna) == first) is (usable > 0)
    each.clock.turn(2)
    assert token(each.source, each.anna) != first


@pytest.mark.parametrize("opaque", ["opaque", "a.b.c", "a.e30.c", "a.W10.c", "a.eyJleHAiOiJ4In0.c"])
def test_a_token_that_does_not_say_when_it_ends_is_exchanged_each_time(opaque: str) -> None:
    each = Delegation()
    each.entra.users[opaque] = {"a"}
    assert token(each.source, opaque) != token(each.source, opaque)
    assert each.entra.posts == 2


def test_a_refused_delegated_token_is_exchanged_again() -> None:
    each = Delegation()
    first, ben = token(each.source, each.anna), token(each.source, each.ben)
    each.source.refuse(each.anna, first, uri=URI, deadline=SOON)
    assert token(each.source, each.anna) != first
    assert token(each.source, each.ben) == ben


def test_a_caller_whom_the_authority_refuses_is_forbidden() -> None:
    """An application that is refused is a failure instead: nothing a caller can mend."""
    each = Delegation()
    with pytest.raises(DocumentForbidden):
        token(each.source, assertion("mallory", time() + 60))
    each.entra.script.append(TokenAnswer(400, '{"error": "invalid_grant"}'))
    with pytest.raises(Unavailable):
        token(each.source)
    each.entra.script.append(TokenAnswer(400, '{"error": "invalid_client"}'))
    with pytest.raises(FetchError) as caught:
        token(each.source, each.anna)
    assert type(caught.value) is Unavailable


def test_so_many_callers_are_remembered_and_no_more() -> None:
    each = Delegation()
    many = [assertion(str(number), each.clock.now + 3600) for number in range(DELEGATED_TOKENS)]
    each.entra.users = {own: {"a"} for own in (*many, each.anna)}
    for own in (*many, many[0], each.anna, many[0]):
        token(each.source, own)
    assert each.entra.posts == DELEGATED_TOKENS + 1
    token(each.source, many[1])  # the one that was longest not asked for
    assert each.entra.posts == DELEGATED_TOKENS + 2
    assert len(each.source._delegated) == DELEGATED_TOKENS


def test_msal_keeps_no_callers_token() -> None:
    """It would never read it, and never let go of it."""
    each = Delegation()
    app, anna = token(each.source), token(each.source, each.anna)
    assert each.source._made is not None
    kept = str(each.source._made.token_cache._cache)
    assert app in kept
    assert anna not in kept


def test_one_callers_answer_is_never_given_to_another() -> None:
    """msal keeps any answer with Retry-After, and gives it to whoever asks next."""
    each = Delegation()
    of_anna = {"access_token": "of anna", "expires_in": 3600}
    each.entra.script.append(TokenAnswer(200, json.dumps(of_anna), {"Retry-After": "60"}))
    assert token(each.source, each.anna) == "of anna"
    assert token(each.source, each.ben) != "of anna"


def test_tokens_stand_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    each = Delegation()
    secrets = [token(each.source), token(each.source, each.anna), each.anna, "vouched"]
    with pytest.raises(DocumentForbidden) as caught:
        token(each.source, "a-callers-own-token")
    assert not [s for s in (*secrets, "a-callers-own-token") if s in caplog.text + str(caught.value)]
    assert each.anna not in caller_key(each.anna)
