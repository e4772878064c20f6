"""Who somebody says that they are (Z-1, Z-3): nothing that a client can write makes a caller of them."""

import base64
import json
from typing import Any

import pytest

from tests.attacks.keep import PLANTED
from tests.captured import http_request
from tests.cloud import Cloud
from tests.integration.driving import get, post, send
from tests.integration.logs import writing
from tests.integration.test_access import READER, jwt, role, without_times
from tests.integration.test_uploads import ask

pytestmark = pytest.mark.attacks

OUTSIDERS = {"a role": role("app"), "a token": jwt(["other"], sub="mallory", groups="[guests]")}
SIGNED_BY_NOBODY = ".".join(
    base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
    for part in (
        {"alg": "none", "typ": "JWT"},
        {"sub": "ada", "groups": ["staff"], "scope": "kb.read", "iss": "https://login.example.com"},
        {},
    )
)
VOUCHED = {"authorizer": {"iam": {"userArn": READER}}, "accountId": "111122223333"}
HEADERS: dict[str, dict[str, str]] = {
    "a user by a proxy": {"x-forwarded-user": READER, "x-remote-user": READER, "remote-user": READER},
    "groups by a proxy": {
        "x-forwarded-groups": "staff",
        "x-groups": "staff",
        "x-auth-request-groups": "staff",
    },
    "scopes": {"x-scopes": "kb.read", "x-oauth-scopes": "kb.read", "x-ms-client-principal-name": READER},
    "a load balancer's claims": {"x-amzn-oidc-identity": READER, "x-amzn-oidc-data": SIGNED_BY_NOBODY},
    "a token that nobody signed": {"authorization": f"Bearer {SIGNED_BY_NOBODY}"},
    "a signature that nobody checked": {
        "authorization": f"AWS4-HMAC-SHA256 Credential={READER}/20260302/eu-north-1/execute-api/aws4_request"
    },
    "a session": {"x-amz-security-token": SIGNED_BY_NOBODY, "cookie": f"principal={READER}; groups=staff"},
    "a request context": {
        "x-amzn-request-context": json.dumps(VOUCHED),
        "x-apigateway-event": json.dumps(VOUCHED),
    },
    "our own words": {"x-groundwire-principal": READER, "x-groundwire-groups": "staff", "principal": READER},
    "another path": {
        "x-original-url": "/healthz",
        "x-rewrite-url": "/healthz",
        "x-http-method-override": "GET",
    },
    "another host": {"host": "localhost", "x-forwarded-for": "127.0.0.1", "forwarded": "for=127.0.0.1"},
}
BODIES: dict[str, dict[str, Any]] = {
    "somebody else's id": {"ctx": {"userId": READER, "auditingId": READER}},
    "an id like a group": {"ctx": {"userId": "group:staff", "auditingId": "scope:kb.read"}},
    "an id like anyone": {"ctx": {"userId": "*", "auditingId": "*"}},
    "an id like the process's own": {"ctx": {"userId": "in-process"}},
}
UNKNOWN: dict[str, dict[str, Any]] = {
    "groups": {"groups": ["staff"]},
    "groups in ctx": {"ctx": {"groups": ["staff"]}},
    "a principal in ctx": {"ctx": {"userId": 1, "principal": READER}},
    "a caller in ctx": {"ctx": {"caller": {"principal": READER}}},
    "a token in ctx": {"ctx": {"assertion": SIGNED_BY_NOBODY}},
    "readers": {"overrides": {"readers": ["*"]}},
    "roots": {"storageRoots": [{"name": "kb", "readers": ["*"]}]},
    "an authorizer": {"requestContext": VOUCHED},
}


@pytest.mark.parametrize("caller", OUTSIDERS.values(), ids=OUTSIDERS.keys())
@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS.keys())
def test_no_header_makes_a_caller(entitled: Cloud, headers: dict[str, str], caller: Any) -> None:
    uri = entitled.uri("a.md")
    for path, body in (("/v1/ground", {"sources": [uri]}), ("/v1/compose", {"uri": uri})):
        plain = post(path, body, caller)
        assert without_times(post(path, body, caller, headers)) == without_times(plain)
        assert PLANTED not in plain.body
    for path in ("/v1/documents", "/v1/graph", "/v1/dependents"):
        request = http_request("GET", path, query={"uri": uri}, headers=headers, authorizer=caller)
        assert send(request).status == 404
    assert post("/v1/validate", {"path": "a.md", "content": ""}, caller, headers).status == 400
    nobody = send(
        http_request("POST", "/v1/compose", json.dumps({"uri": uri}), headers=headers, authorizer=None)
    )
    assert nobody.status == 403


@pytest.mark.parametrize("caller", OUTSIDERS.values(), ids=OUTSIDERS.keys())
@pytest.mark.parametrize("more", BODIES.values(), ids=BODIES.keys())
def test_no_context_makes_a_caller(entitled: Cloud, more: dict[str, Any], caller: Any) -> None:
    for path, body in (
        ("/v1/ground", {"sources": [entitled.uri("a.md")]}),
        ("/v1/compose", {"uri": entitled.uri("a.md")}),
    ):
        assert without_times(post(path, body | more, caller)) == without_times(post(path, body, caller))


@pytest.mark.parametrize("more", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_no_field_makes_a_caller(entitled: Cloud, more: dict[str, Any]) -> None:
    for path, body in (
        ("/v1/ground", {"sources": [entitled.uri("a.md")]}),
        ("/v1/compose", {"uri": entitled.uri("a.md")}),
    ):
        assert post(path, body | more, role("app")).status == 400
    assert ask({"path": "a.md", **more}, role("app")).status == 400


def test_no_query_makes_a_caller(entitled: Cloud) -> None:
    query = {"principal": READER, "groups": "staff", "userId": READER, "X-Amz-Credential": READER}
    for name, value in query.items():
        answer = get("/v1/documents", role("app"), uri=entitled.uri("a.md"), **{name: value})
        assert answer.status == (404 if name.startswith("X-Amz-") else 400)
        assert PLANTED not in answer.body


def test_nobody_uploads_by_what_they_say(entitled: Cloud) -> None:
    for caller in OUTSIDERS.values():
        refused = ask({"path": "a.md", "root": "kb"}, caller)
        assert refused.status == 400
        assert [each["field"] for each in refused.json["errors"]] == ["root"]
        assert "X-Amz-Signature" not in refused.body


def test_debug_records_are_not_had_by_saying_who_one_is(entitled: Cloud) -> None:
    """P-3: for callers who are named for it, by the platform's word."""
    entitled.environment(GROUNDWIRE_DEBUG_CALLERS=json.dumps([READER, "group:staff"]))
    body = {"uri": entitled.uri("a.md"), "ctx": {"userId": READER}}
    with writing() as written:
        for headers in HEADERS.values():
            for caller in OUTSIDERS.values():
                post("/v1/compose", body, caller, headers | {"x-groundwire-debug": "*"})
        assert '"namespace"' not in written.text
        post("/v1/compose", body, role("reader"), {"x-groundwire-debug": "*"})
        assert '"namespace"' in written.text
