"""Drives that are read with each caller's own token (Z-4): what one may see is never shown to another."""

import base64
import json
import time
from typing import Any

import pytest

from tests.attacks.keep import PLANTED, Keep
from tests.integration.driving import Answer, post
from tests.integration.test_access import jwt, role, without_times
from tests.integration.test_external_stores import DRIVE

pytestmark = pytest.mark.attacks


def token_of(name: str) -> str:
    """A token that says when it ends, so that what was had for it is kept as long."""
    claims = {"sub": name, "exp": int(time.time()) + 3_600}
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{middle}.{name}"


ANNA, BEN, EVE = map(token_of, ("anna", "ben", "eve"))
URI = f"sharepoint://{DRIVE}/plan.md"
MISSING = f"sharepoint://{DRIVE}/gone.md"


@pytest.fixture
def drive(keep: Keep) -> Keep:
    keep.wire(delegated=True)
    plan = keep.graph.put(DRIVE, "plan.md", f"---\nincludes: [part.md]\n---\n{PLANTED}".encode())
    part = keep.graph.put(DRIVE, "part.md", PLANTED.encode())
    own = keep.graph.put(DRIVE, "bens.md", b"---\nincludes: [part.md]\n---\nBen's.")
    keep.entra.users = {ANNA: {plan.id, part.id}, BEN: {own.id}, EVE: set()}
    keep.entra.app_reads = None  # the application itself may read everything
    return keep


def asked(
    token: str | None, *sources: Any, authorizer: Any = None, headers: dict[str, str] | None = None
) -> Answer:
    sent = {"authorization": f"Bearer {token}"} if token else {}
    answer = post("/v1/ground", {"sources": list(sources)}, authorizer or jwt(), sent | (headers or {}))
    assert answer.status == 200, answer.body
    return answer


def by_id(keep: Keep) -> dict[str, str]:
    items = keep.graph.drives[DRIVE].items.values()
    (found,) = [each.id for each in items if each.name == "plan.md"]
    return {"source_type": "sharepoint", "sharepoint_drive_id": DRIVE, "sharepoint_item_id": found}


def test_nothing_that_one_caller_had_read_is_kept_for_the_next(drive: Keep) -> None:
    """Tokens, items that were located, bodies: each in turn, by path, by id and as an include."""
    for _ in range(2):
        assert PLANTED in asked(ANNA, URI, by_id(drive)).body
        for token in (BEN, EVE):
            refused = asked(token, URI, by_id(drive), f"sharepoint://{DRIVE}/bens.md")
            assert PLANTED not in refused.body
            assert [each["code"] for each in refused.json["sources"][:2]] == ["not_found"] * 2
        own = asked(BEN, f"sharepoint://{DRIVE}/bens.md").json
        assert [each["text"][-6:] for each in own["allDocumentsForAttachment"]] == ["Ben's."]
        (bundle,) = own["compositionBundles"]
        assert [(each["reason"], each["code"]) for each in bundle["skipped"]] == [
            ("fetch_failed", "not_found")
        ]


@pytest.mark.parametrize("token", [EVE, "token-of-nobody", None], ids=["hers", "nobodys", "none"])
def test_what_is_not_theirs_is_not_there(drive: Keep, token: str | None) -> None:
    there, missing = asked(token, URI), asked(token, MISSING)
    assert without_times(there)[1].replace("plan.md", "gone.md") == without_times(missing)[1]
    assert [each["code"] for each in there.json["sources"]] == ["not_found"]


WITHOUT_A_TOKEN: dict[str, tuple[Any, dict[str, str]]] = {
    "IAM and somebody's token": (role("app"), {"authorization": f"Bearer {ANNA}"}),
    "IAM and a token in capitals": (role("app"), {"Authorization": f"BEARER {ANNA}"}),
    "a token elsewhere": (
        jwt(),
        {"x-forwarded-authorization": f"Bearer {ANNA}", "x-ms-token-aad-access-token": ANNA},
    ),
    "a token in a cookie": (jwt(), {"cookie": f"token={ANNA}"}),
    "another scheme": (jwt(), {"authorization": f"Basic {ANNA}"}),
    "no scheme": (jwt(), {"authorization": ANNA}),
    "an empty token": (jwt(), {"authorization": "Bearer "}),
    "an authorizer without claims": (
        {"iam": role("app")["iam"], "jwt": {}},
        {"authorization": f"Bearer {ANNA}"},
    ),
}


@pytest.mark.parametrize(("authorizer", "headers"), WITHOUT_A_TOKEN.values(), ids=WITHOUT_A_TOKEN.keys())
def test_without_a_token_that_the_platform_checked_nobody_is_asked(
    drive: Keep, authorizer: Any, headers: dict[str, str]
) -> None:
    """Nor does the application's own right stand in for the caller's."""
    answer = asked(None, URI, by_id(drive), authorizer=authorizer, headers=headers)
    assert PLANTED not in answer.body
    assert [each["code"] for each in answer.json["sources"]] == ["not_found"] * 2
    assert (drive.graph.requests, drive.graph.downloads.requests, drive.entra.posts) == ([], [], 0)


def test_two_tokens_in_one_header_are_no_token(drive: Keep) -> None:
    answer = asked(None, URI, headers={"authorization": f"Bearer {EVE}, Bearer {ANNA}"})
    assert PLANTED not in answer.body


def test_a_token_that_was_withdrawn_reads_nothing_more(drive: Keep) -> None:
    assert PLANTED in asked(ANNA, URI).body
    exchanges = drive.entra.posts
    drive.graph.grants = dict.fromkeys(drive.graph.grants, ())
    assert PLANTED not in asked(ANNA, URI).body
    assert drive.entra.posts == exchanges, "with the token that was kept"
