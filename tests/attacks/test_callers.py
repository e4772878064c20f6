"""Callers whose names come close to a reader's (Z-1): an entry of `readers` is met whole, or not at all."""

from typing import Any

import pytest

from tests.attacks.keep import PLANTED
from tests.cloud import Cloud
from tests.integration.driving import get, post
from tests.integration.test_access import READER, iam, jwt
from tests.integration.test_uploads import ask

pytestmark = pytest.mark.attacks

ROLE = "arn:aws:sts::111122223333:assumed-role"
CLOSE: dict[str, dict[str, Any]] = {
    "a role of another account": iam("arn:aws:sts::999999999999:assumed-role/reader/s"),
    "a role of another partition": iam("arn:aws-cn:sts::111122223333:assumed-role/reader/s"),
    "a session called like the role": iam(f"{ROLE}/app/reader"),
    "a session with a path": iam(f"{ROLE}/app/x/role/reader"),
    "a role with the reader's as its end": iam(f"{ROLE}/x-reader/s"),
    "a role with the reader's as its beginning": iam(f"{ROLE}/reader2/s"),
    "a role in capitals": iam(READER.upper()),
    "a role and a line end": iam(f"{READER}\n"),
    "a federated user": iam("arn:aws:sts::111122223333:federated-user/reader"),
    "a user of the role's name": iam("arn:aws:iam::111122223333:user/reader"),
    "the account's root": iam("arn:aws:iam::111122223333:root"),
    "no role at all": iam(f"{ROLE}//s"),
    "an assumed role that is an entry of its own": iam(f"{ROLE}/reader"),
    "a subject that is the role": jwt([], sub=READER),
    "an issuer that is the role": jwt([], iss=READER),
    "a subject that is anybody": jwt([], sub="*", iss=""),
    "a group called as the entry is": jwt([], groups="[group:staff]"),
    "a group in capitals": jwt([], groups="[Staff]"),
    "a group with more behind it": jwt([], groups="[staff.guests staff-guests]"),
    "a group in quotes": jwt([], groups='["staff"]'),
    "a group as a list's text": jwt([], groups="['staff']"),
    "groups by a comma": jwt([], groups="[guests,staff]"),
    "a group called anybody": jwt([], groups="*"),
    "a scope in place of a group": jwt(["staff"]),
    "a group in place of a scope": jwt([], groups="[kb.read]"),
    "a scope called as the entry is": jwt(["scope:kb.read"]),
    "a wider scope": jwt(["kb", "kb.", "kb.*", "kb.read.all"]),
    "a scope in a claim beside those that count": jwt(["other"], scope="kb.read", scp="kb.read"),
    "groups under other names": jwt(
        [], **{"cognito:groups": "[staff]", "roles": "[staff]", "group": "staff"}
    ),
    "a role beside a token": iam("arn:aws:iam::111122223333:user/app") | jwt(["kb.read"], groups="[staff]"),
}
NOBODY: dict[str, dict[str, Any]] = {
    "a Lambda authorizer's word": {"lambda": {"userArn": READER, "sub": "ada", "groups": "[staff]"}},
    "a role without a name": {"iam": {"userId": READER, "caller": READER, "accountId": "111122223333"}},
    "a token without a subject": {"jwt": {"claims": {"groups": "[staff]"}, "scopes": ["kb.read"]}},
    "a token without claims": {"jwt": {"scopes": ["kb.read"]}},
    "an authorizer of the older payload": {
        "claims": {"sub": "ada", "groups": "[staff]"},
        "principalId": READER,
    },
}


@pytest.mark.parametrize("caller", CLOSE.values(), ids=CLOSE.keys())
def test_who_is_almost_a_reader_is_none(entitled: Cloud, caller: dict[str, Any]) -> None:
    uri = entitled.uri("a.md")
    answers = [post("/v1/compose", {"uri": uri}, caller), post("/v1/ground", {"sources": [uri]}, caller)]
    answers += [get(path, caller, uri=uri) for path in ("/v1/documents", "/v1/graph", "/v1/dependents")]
    assert [each.status for each in answers] == [404, 200, 404, 404, 404]
    answers += [post("/v1/validate", {"path": "a.md", "content": ""}, caller), ask({"path": "a.md"}, caller)]
    assert [each.status for each in answers[5:]] == [400, 400]
    assert PLANTED not in str(answers)
    assert "X-Amz-Signature" not in str(answers)


@pytest.mark.parametrize("caller", NOBODY.values(), ids=NOBODY.keys())
def test_who_is_not_vouched_for_is_nobody(entitled: Cloud, caller: dict[str, Any]) -> None:
    assert post("/v1/compose", {"uri": entitled.uri("a.md")}, caller).status == 403
    assert ask({"path": "a.md"}, caller).status == 403
