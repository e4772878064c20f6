"""Who is calling: what API Gateway's authorizer says, and nothing a client can write (Z-1, Z-3)."""

import re
from collections.abc import Mapping
from typing import Any, Final

from groundwire.roots import Caller

_ASSUMED_ROLE: Final = re.compile(r"arn:(aws[\w-]*):sts::(\d+):assumed-role/([^/]+)/.*")


def caller_from(request_context: Mapping[str, Any]) -> Caller | None:
    """The caller of an HTTP API request; None where no authorizer vouches for one.

    An assumed role counts as its role: the session's name is whatever the caller chose.
    """
    authorizer = request_context.get("authorizer") or {}
    if iam := authorizer.get("iam"):
        return Caller(_role(str(iam.get("userArn") or ""))) if iam.get("userArn") else None
    jwt = authorizer.get("jwt") or {}
    claims = jwt.get("claims") or {}
    if not claims.get("sub"):
        return None
    scopes = jwt.get("scopes") or _list(claims.get("scope") or claims.get("scp"))
    return Caller(
        f"jwt:{claims.get('iss', '')}#{claims['sub']}",
        frozenset(_list(claims.get("groups"))),
        frozenset(scopes),
    )


def _role(arn: str) -> str:
    match = _ASSUMED_ROLE.fullmatch(arn)
    return f"arn:{match[1]}:iam::{match[2]}:role/{match[3]}" if match else arn


def _list(claim: Any) -> list[str]:
    """A claim that was a list: API Gateway hands it over as `"[a b c]"`."""
    return str(claim or "").removeprefix("[").removesuffix("]").split()
