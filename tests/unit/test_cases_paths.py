"""cases/paths.yaml: from an include to a key."""

from typing import Any

import pytest

from groundwire.includes import declare, find
from groundwire.media_types import MARKDOWN
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.cases import cases


def _document(case: dict[str, Any]) -> bytes:
    """A document that declares the case's include, in YAML that cannot change it."""

    def quoted(text: str) -> str:
        return '"' + "".join(f"\\U{ord(char):08X}" for char in text) + '"'

    canonical = f"canonical_path: {quoted(case['canonical_path'])}\n" if "canonical_path" in case else ""
    return f"---\n{canonical}includes:\n  - {quoted(case['include'])}\n---\n".encode()


@pytest.mark.parametrize("case", cases("paths"))
def test_path(case: dict[str, Any]) -> None:
    source_type = case.get("source_type", "s3")
    location = Location(StorageRoot("kb", source_type, "kb", case["root_prefix"]), case["document"])
    content = _document(case)
    (include,) = declare(location, MARKDOWN, content, len(content)).includes
    target, code = include.key, include.code
    if target is not None and "keys" in case:
        # SharePoint's server does not mind letter case, does mind Unicode form, answers with the stored name.
        same = str.casefold if source_type == "sharepoint" else str
        names = {same(key): key for key in case["keys"]}
        target, code = find(target, lambda key: names.get(same(key)))
    expect = case["expect"]
    if "target" in expect:
        assert (target, None if code == "self_include" else code) == (expect["target"], expect.get("warning"))
    else:
        assert (code, target) == (expect["code"], None)
