"""cases/frontmatter.yaml: what a document declares, by its own path and bytes."""

import base64
from typing import Any

import pytest

from groundwire import frontmatter
from groundwire.includes import declare
from groundwire.media_types import media_type
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.cases import cases

UNREADABLE = {"encoding_unsupported", "frontmatter_too_large", "frontmatter_unterminated", "yaml_error"}


@pytest.mark.parametrize("case", cases("frontmatter"))
def test_frontmatter(case: dict[str, Any]) -> None:
    content = (
        base64.b64decode(case["content_base64"]) if "content_base64" in case else case["content"].encode()
    )
    location = Location(StorageRoot("kb", "s3", "kb"), case["path"])
    declared = declare(location, media_type(None, case["path"]), content, len(content))
    entries = frontmatter.parse(content, len(content)).entries
    expect = case["expect"]
    assert declared.title == expect.get("title")
    assert declared.canonical_path == expect.get("canonical_path")
    if "includes" in expect:
        assert [entry.raw for entry in entries if entry.code is None] == expect["includes"]
    codes = {each.code for each in declared.findings}
    if "findings" in expect:
        assert sorted(codes) == expect["findings"]
    if "frontmatter_valid" in expect:
        assert (not codes & UNREADABLE) == expect["frontmatter_valid"]
