"""Rules I-3 to I-7 and C-1 to C-3 beyond the worked cases: no entry leads out of its root."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.findings import CODES, verdict
from groundwire.includes import Declaration, declare, find, fold, near_keys
from groundwire.pointers import Location
from groundwire.roots import StorageRoot
from tests.reference import paths as reference

KB = StorageRoot("kb", "s3", "kb")
TEAM = replace(KB, name="team", prefix="kb/team")


def declared(
    *entries: str, key: str = "sops/a.md", root: StorageRoot = KB, canonical: str = ""
) -> Declaration:
    """What a document with these entries declares."""

    def quoted(text: str) -> str:
        return '"' + "".join(f"\\U{ord(char):08X}" for char in text) + '"'

    first = f"canonical_path: {quoted(canonical)}\n" if canonical else ""
    listed = "".join(f"  - {quoted(entry)}\n" for entry in entries)
    content = f"---\n{first}includes:\n{listed}---\n".encode()
    return declare(Location(root, key), "text/markdown", content, len(content))


def outcome(entry: str, key: str = "sops/a.md", root: StorageRoot = KB) -> str | None:
    """The target's key, or the code."""
    (include,) = declared(entry, key=key, root=root).includes
    return include.key or include.code


WRITTEN_PLAINLY = ["a", "b.md", ".", "..", "...", "", " ", "a b", "ä", "*", "~"]
WITH_PERCENT_SIGNS = ["%2e", "%2E%2e", "%252e", "%2f", "%5C", "%00", "%25"]
PARTS = st.sampled_from(WRITTEN_PLAINLY) | st.sampled_from(WITH_PERCENT_SIGNS)
PATHS = st.lists(PARTS, max_size=7).map("/".join) | st.text(st.characters(codec="utf-8"), max_size=12)
STARTS = st.sampled_from(["", "", "./", "/", "//", "C:", "https:", "s3:", "\\", "\u200b", "\t", "..", "~"])
BLANK = " \t\r\n"


@settings(max_examples=300)
@given(
    start=STARTS, path=PATHS, key=st.sampled_from(["a.md", "sops/a.md", "x/y/z/a.md"]), within=st.booleans()
)
def test_an_entry_leads_below_its_root_or_nowhere(start: str, path: str, key: str, within: bool) -> None:
    """As the reference has it, with and without a prefix."""
    entry = start + path
    root, lead = (TEAM, "kb/team/") if within else (KB, "")
    found = outcome(entry, lead + key, root) if entry.strip(BLANK) else "include_empty"
    try:
        expected: str | None = lead + reference.resolve(entry, key, lead.rstrip("/"))
    except reference.Refused as refused:
        expected = refused.code
    assert found == (expected if entry.strip(BLANK) else "include_empty")
    if found not in CODES:
        assert found
        segments = found.removeprefix(lead).split("/")
        assert found.startswith(lead)
        assert not {"", ".", ".."} & set(segments)
        assert len(found.encode()) <= 1_024


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("/a\\b", "include_absolute"),
        ("//host/../..", "include_absolute"),
        ("C:\\a", "include_url"),
        ("a:b", "include_url"),
        ("https:/\u200b", "include_url"),
        ("a\\\u200b", "include_backslash"),
        ("../../..\\a", "include_backslash"),
        ("../../\u202ea", "include_control_character"),
        ("../../..", "include_escapes_root"),
        ("../../%2e%2e/", "include_escapes_root"),
        ("%2e%2e/", "include_encoded_traversal"),
        ("%252e%252e/a", "include_encoded_traversal"),
        ("a%2fb//", "include_encoded_traversal"),
        ("b//", "include_is_directory"),
        ("b//..", "include_is_directory"),
        ("b//c", "include_empty_segment"),
        ("b//" + "x" * 1_100, "include_empty_segment"),
        ("x" * 1_020, "include_too_long"),
    ],
)
def test_the_first_refusal_that_holds_is_given(entry: str, code: str) -> None:
    """I-4: each of these meets a later one too, or stands at the edge of its own."""
    assert outcome(entry) == code


@pytest.mark.parametrize(("decodings", "refused"), [(1, True), (5, True), (6, False)])
def test_five_decodings_are_looked_through(decodings: int, refused: bool) -> None:
    entry = "%2e%2e/a.md".replace("%", "%" + "25" * (decodings - 1))
    assert (outcome(entry) == "include_encoded_traversal") == refused


@pytest.mark.parametrize("entry", ["rev%20A.md", "100%.md", "%zz.md", "a%2eb.md", "%61.md", "a%252eb"])
def test_other_percent_signs_are_literal(entry: str) -> None:
    assert outcome(entry) == f"sops/{entry}"


CONTROLS = "\x01\t\n\x0b\x1c\x7f\x85\x9f"
SEEN_BY_NOBODY = CONTROLS + "\u202a\u202e\u2066\u2069\u200b\u200d\u2060\ufeff\U000e0001\U000e007f"


@pytest.mark.parametrize("char", SEEN_BY_NOBODY, ids=ascii)
def test_characters_that_cannot_be_seen_are_named(char: str) -> None:
    found = declared(f"a{char}b.md", f"{char}{char}a")
    assert [each.code for each in found.findings] == ["include_control_character"] * 2
    assert f"U+{ord(char):04X}" in found.findings[0].message
    assert char not in found.findings[0].message


@pytest.mark.parametrize("char", "\u00a0\u00ad\u061c\u2028\u2065\u206a\u200e\u3000\uff0e·", ids=ascii)
def test_other_characters_are_literal(char: str) -> None:
    for name in (f"a{char}.md", char):
        assert outcome(name) == f"sops/{name}"


@pytest.mark.parametrize(("length", "too_long"), [(1_024, False), (1_025, True)])
@pytest.mark.parametrize("root", [KB, TEAM])
def test_a_key_is_measured_whole_and_in_utf_8(length: int, too_long: bool, root: StorageRoot) -> None:
    lead = f"{root.prefix}/" if root.prefix else ""
    space = length - len(lead) - len("sops/")
    name = "ä" * (space // 2) + "x" * (space % 2)
    found = outcome(name, f"{lead}sops/a.md", root)
    assert found == ("include_too_long" if too_long else f"{lead}sops/{name}")


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("../../x.md", "include_escapes_root"),
        ("../x.md", "kb/team/x.md"),
        ("../../team/x.md", "include_escapes_root"),
        ("../..", "include_escapes_root"),
        ("../x/../../y/x.md", "include_escapes_root"),
    ],
)
def test_a_prefix_is_the_top(entry: str, found: str) -> None:
    """At any point, even where the path comes back in."""
    assert outcome(entry, "kb/team/sops/a.md", TEAM) == found


def test_duplicates_are_told_by_the_resolved_key() -> None:
    """I-6: the first counts, and the later ones name its line."""
    found = declared("b.md", "./b.md", "x/../b.md", "a.md", "./a.md")
    assert [include.code for include in found.includes] == [
        None,
        "include_duplicate",
        "include_duplicate",
        "self_include",
        "include_duplicate",
    ]
    assert [include.counts for include in found.includes] == [True, False, False, True, False]
    assert [each.line for each in found.findings] == [4, 5, 6, 7]
    assert "line 3" in found.findings[0].message
    assert {each.severity for each in found.findings} == {"information"}
    assert verdict(found.findings) == "valid"


def test_a_refusal_twice_is_two_refusals() -> None:
    assert [include.code for include in declared("/x", "/x").includes] == ["include_absolute"] * 2


@pytest.mark.parametrize(
    ("canonical", "path", "target"),
    [
        ("guides/b.md", "guides/b.md", "guides/x.md"),
        ("./guides/../b.md", "b.md", "x.md"),
        ("sops/a.md", "sops/a.md", "sops/x.md"),
        ("/abs.md", None, "sops/x.md"),
        ("../b.md", None, "sops/x.md"),
        ("guides/", None, "sops/x.md"),
        (" ", " ", "x.md"),
        ("a//b", None, "sops/x.md"),
        ("%2e%2e/b", None, "sops/x.md"),
        ("s3://kb/b.md", None, "sops/x.md"),
    ],
)
def test_includes_resolve_from_a_valid_canonical_path(canonical: str, path: str | None, target: str) -> None:
    """C-1, C-2; in a root with a prefix, from there."""
    for root, lead in ((KB, ""), (TEAM, "kb/team/")):
        found = declared("x.md", key=f"{lead}sops/a.md", root=root, canonical=canonical)
        codes = [each.code for each in found.findings]
        assert (found.canonical_path, found.includes[0].key) == (path, lead + target)
        mismatch = ["canonical_path_mismatch"] if path != "sops/a.md" else []
        assert codes == (["canonical_path_invalid"] if path is None else mismatch)


def test_a_document_includes_itself_by_its_key_not_by_its_canonical_path() -> None:
    """I-7, C-2: it never changes which bytes a URI names."""
    found = declared("b.md", "../sops/a.md", canonical="guides/b.md")
    assert [(include.key, include.code) for include in found.includes] == [
        ("guides/b.md", None),
        ("sops/a.md", "self_include"),
    ]


def test_in_the_inbox_a_document_is_not_yet_at_its_place() -> None:
    """C-3."""
    assert declared("x.md", key="inbox/a.md", canonical="sops/a.md").findings == ()
    assert declared("x.md", key="kb/team/inbox/a.md", root=TEAM, canonical="sops/a.md").findings == ()
    other = declared("x.md", key="inboxes/a.md", canonical="sops/a.md")
    assert [each.code for each in other.findings] == ["canonical_path_mismatch"]


@pytest.mark.parametrize("mime_type", ["application/pdf", "application/json", "image/png", "text"])
def test_what_is_no_text_declares_nothing(mime_type: str) -> None:
    content = b"---\nincludes: 7\n---\n"
    assert declare(Location(KB, "a"), mime_type, content, len(content)) == Declaration()


def test_a_long_entry_is_quoted_in_part() -> None:
    found = declared("/" + "x" * 5_000)
    assert len(found.findings[0].message) < 300
    assert found.includes[0].raw == "/" + "x" * 5_000


def test_a_target_is_looked_for_as_written_then_in_other_forms() -> None:
    """I-5."""
    nfc, nfd = "l\u00e4.md", "la\u0308.md"
    for stored in ({nfc}, {nfd}, {nfc, nfd}):
        for written in (nfc, nfd):
            found = find(written, lambda key, stored=stored: key if key in stored else None)  # type: ignore[misc]
            exact = written in stored
            other = nfd if written == nfc else nfc
            assert found == ((written, None) if exact else (other, "unicode_form_differs"))
    assert find(nfc, lambda _: None) == (None, "target_missing")
    assert find("A.md", lambda key: key.lower()) == ("a.md", None)


@pytest.mark.parametrize(
    ("missing", "there", "difference"),
    [
        ("Terms.MD", "terms.md", "letter case"),
        ("la\u0308.md", "L\u00c4.md", "letter case"),
        ("terms.md#scope", "terms.md", "the #fragment"),
        ("terms.md?v=2", "Terms.md", "the ?query"),
        ("terms", "terms.md", "the extension .md"),
        ("terms.md", "terms", "the extension .md"),
        ("terms.MD", "TERMS", "the extension .md"),
    ],
)
def test_what_a_missing_target_may_have_meant(missing: str, there: str, difference: str) -> None:
    """I-5: for hints, never for identity."""
    assert dict(near_keys(missing))[fold(there)] == difference


def test_nothing_else_is_near() -> None:
    assert fold("term.md") not in dict(near_keys("terms.md"))
    assert fold("sops/terms.md") not in dict(near_keys("terms.md"))
