"""X-5 over HTTPS: who includes a document, and by which chain."""

import pytest

from tests.cloud import Cloud
from tests.integration.driving import get, upload

FILES: dict[str, str | bytes] = {
    "sops/heat.md": "---\nincludes: [../terms.md, sops.md]\n---\n",
    "sops/sops.md": "---\nincludes: [../policy.md, heat.md]\n---\n",
    "policy.md": "---\nincludes: [terms.md]\n---\n",
    "terms.md": "words",
}


def test_direct_and_transitive_with_the_chain(cloud: Cloud) -> None:
    upload(cloud, FILES)
    uri = cloud.uri("terms.md")
    direct = get("/v1/dependents", uri=uri).json["dependents"]
    assert [each["uri"] for each in direct] == [cloud.uri("policy.md"), cloud.uri("sops/heat.md")]
    found = get("/v1/dependents", uri=uri, transitive="true").json["dependents"]
    assert [(each["uri"], each["distance"]) for each in found] == [
        (cloud.uri("policy.md"), 1),
        (cloud.uri("sops/heat.md"), 1),
        (cloud.uri("sops/sops.md"), 2),
    ]
    assert found[2]["why"] == [cloud.uri(key) for key in ("sops/sops.md", "policy.md", "terms.md")]


def test_pages_are_the_whole(cloud: Cloud) -> None:
    upload(cloud, FILES)
    uri, cursor, seen = cloud.uri("terms.md"), None, []
    for _ in range(3):
        page = get(
            "/v1/dependents", uri=uri, transitive="true", limit="1", **({"cursor": cursor} if cursor else {})
        ).json
        seen += [each["uri"] for each in page["dependents"]]
        cursor = page["cursor"]
    assert cursor is None
    assert len(seen) == len(set(seen)) == 3


@pytest.mark.parametrize("cursor", ["", "rubbish", "1 s3://kb/a.md", "000001", "00000\u0661 s3://kb/a.md"])
def test_a_cursor_that_no_page_gave_is_no_end(cloud: Cloud, cursor: str) -> None:
    upload(cloud, FILES)
    answer = get("/v1/dependents", uri=cloud.uri("terms.md"), cursor=cursor)
    assert answer.status == 400
    assert [each["field"] for each in answer.json["errors"]] == ["cursor"]


def test_what_is_gone_still_has_dependents_and_what_never_was_has_none(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "---\nincludes: [gone.md]\n---\n"})
    found = get("/v1/dependents", uri=cloud.uri("gone.md"))
    assert [each["uri"] for each in found.json["dependents"]] == [cloud.uri("a.md")]
    assert get("/v1/dependents", uri=cloud.uri("never.md")).status == 404
