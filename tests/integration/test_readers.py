"""Whom a root's readers name (Z-1): roles, users, groups and scopes as API Gateway hands them over."""

from typing import Any

import pytest

from tests.captured import captured
from tests.cloud import Cloud
from tests.integration.driving import upload
from tests.integration.test_access import ARN, READER, iam, jwt, may_read, role

FOREIGN = "arn:aws:sts::444455556666:assumed-role/reader/session"
SEEN = {name: captured(name)["requestContext"]["authorizer"] for name in ("http_api_iam", "http_api_jwt")}
READERS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "anyone": ("*", role("app"), True),
    "anyone with a token": ("*", jwt(), True),
    "nobody": ("", role("app"), False),
    "the role of a session": (READER, role("reader"), True),
    "another role": (READER, role("app"), False),
    "a session named like the reader": (READER, role("app", "reader"), False),
    "a session named like the whole role": (READER, role("app", "role=reader"), False),
    "a role that begins like the reader": (READER, role("reader2"), False),
    "the same role in another account": (
        READER,
        iam("arn:aws:sts::444455556666:assumed-role/reader/s"),
        False,
    ),
    "a user": (f"{ARN}user/ada", iam(f"{ARN}user/ada"), True),
    "another user": (f"{ARN}user/ada", iam(f"{ARN}user/adam"), False),
    "a group": ("group:staff", jwt(groups="[staff]"), True),
    "one of several groups": ("group:staff", jwt(groups="[guests staff]"), True),
    "a group without brackets": ("group:staff", jwt(groups="staff"), True),
    "another group": ("group:staff", jwt(groups="[staffing]"), False),
    "no groups": ("group:staff", jwt(), False),
    "a subject named like a group": ("group:staff", jwt(sub="group:staff"), False),
    "a scope": ("scope:kb.read", jwt(["kb.read"]), True),
    "one of several scopes": ("scope:kb.read", jwt(["x", "kb.read"]), True),
    "a scope only in the claims": ("scope:kb.read", jwt(None, scope="x kb.read"), True),
    "a scope of Entra's": ("scope:kb.read", jwt(None, scp="kb.read x"), True),
    "another scope": ("scope:kb.read", jwt(["kb.readall"]), False),
    "a group named like a scope": ("scope:kb.read", jwt(groups="[kb.read]"), False),
    "a scope named like a group": ("group:staff", jwt(["staff"]), False),
    "a subject of this issuer": (
        "jwt:https://login.example.com#ada",
        jwt(),
        True,
    ),
    "the same subject of another issuer": (
        "jwt:https://login.example.com#ada",
        jwt(iss="https://evil.example.com"),
        False,
    ),
    "the captured IAM caller": (
        f"{ARN}role/app",
        captured("http_api_iam")["requestContext"]["authorizer"],
        True,
    ),
    "the captured JWT caller's group": (
        "group:77aa-everyone",
        SEEN["http_api_jwt"],
        True,
    ),
    "the captured JWT caller's scope": (
        "scope:kb.read",
        SEEN["http_api_jwt"],
        True,
    ),
}


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    """A root of its own for each reader, all in one bucket."""
    entries = sorted({reader for reader, _, _ in READERS.values()})
    roots = [
        shared_cloud.root(name=f"r{n}", prefix=f"r{n}", readers=(reader,) if reader else ())
        for n, reader in enumerate(entries)
    ]
    shared_cloud.wire(*roots)
    upload(shared_cloud, {f"r{n}/a.md": reader for n, reader in enumerate(entries)})
    return shared_cloud


@pytest.mark.parametrize(("reader", "caller", "allowed"), READERS.values(), ids=READERS.keys())
def test_whom_a_reader_entry_means(kb: Cloud, reader: str, caller: dict[str, Any], allowed: bool) -> None:
    number = sorted({each for each, _, _ in READERS.values()}).index(reader)
    assert may_read(kb, caller, f"r{number}/a.md") is allowed
