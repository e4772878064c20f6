"""Rules F-1 to F-9, I-1 and I-2 in the corners that the worked cases leave out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.findings import CODES, Finding
from groundwire.frontmatter import Frontmatter, parse
from groundwire.includes import declare
from groundwire.limits import HEAD_BYTES
from tests.unit.graphs import at

ENDS = pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])


def read(text: str | bytes) -> Frontmatter:
    content = text.encode() if isinstance(text, str) else text
    return parse(content, len(content))


def block(*lines: str, end: str = "\n") -> Frontmatter:
    return read(end.join(("---", *lines, "---", "")))


def codes(found: Frontmatter) -> list[str]:
    return [each.code for each in found.findings]


def only(found: Frontmatter) -> Finding:
    (finding,) = found.findings
    return finding


def raws(found: Frontmatter) -> list[str | None]:
    return [entry.raw for entry in found.entries if entry.code is None]


def sized(end: str, closed_at: int, bom: bytes = b"", closing: str = "---") -> bytes:
    """A document whose closing line, with its end, ends exactly at byte `closed_at`."""
    head = bom + f"---{end}title: T{end}#".encode()
    tail = f"{end}{closing}{end}".encode()
    return head + b"x" * (closed_at - len(head) - len(tail)) + tail


# -- F-4: 65,536 bytes, to the byte ---------------------------------------------------------------


@ENDS
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
@pytest.mark.parametrize("body", [b"", b"body", b"\n"], ids=["whole", "longer", "blank"])
def test_a_block_of_exactly_the_limit_is_read(end: str, bom: bytes, body: bytes) -> None:
    """A byte order mark, both fences and the closing line's end are counted."""
    found = read(sized(end, HEAD_BYTES, bom) + (b"body" if end == "\r" and body == b"\n" else body))
    assert (found.title, codes(found)) == ("T", [])


@ENDS
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_a_block_one_byte_over_the_limit_is_too_large(end: str, bom: bytes) -> None:
    for body in (b"", b"body"):
        found = read(sized(end, HEAD_BYTES + 1, bom) + body)
        assert (found.title, codes(found), only(found).line) == (None, ["frontmatter_too_large"], 1)


@ENDS
def test_a_file_that_ends_in_its_closing_line_needs_no_line_end(end: str) -> None:
    whole = sized(end, HEAD_BYTES + len(end)).removesuffix(end.encode())
    assert len(whole) == HEAD_BYTES
    assert read(whole).title == "T"
    assert codes(read(sized(end, HEAD_BYTES + len(end) + 1).removesuffix(end.encode()))) == [
        "frontmatter_too_large"
    ]


def test_the_second_half_of_a_line_end_is_part_of_it() -> None:
    """`---\\r` fits and its `\\n` does not: the closing line ends beyond the limit."""
    content = sized("\r\n", HEAD_BYTES + 1) + b"body"
    assert content[HEAD_BYTES - 1 : HEAD_BYTES + 1] == b"\r\n"
    assert codes(read(content)) == ["frontmatter_too_large"]


@pytest.mark.parametrize("extra", [0, 1])
def test_without_a_closing_line_it_is_the_size_that_decides(extra: int) -> None:
    code = "frontmatter_too_large" if extra else "frontmatter_unterminated"
    content = b"---\ntitle: T\n#" + b"x" * (HEAD_BYTES - 14 + extra)
    assert len(content) == HEAD_BYTES + extra
    found = read(content)
    assert (codes(found), found.title, only(found).loses_includes) == ([code], None, True)


@pytest.mark.parametrize(
    "text", ["---", "---\n", "---\r\n", "--- \t\n", "\ufeff---", "---\n# a\n----\n", "---\n ---\n"]
)
def test_a_block_that_is_never_closed(text: str) -> None:
    assert codes(read(text)) == ["frontmatter_unterminated"]


# -- F-1: encoding --------------------------------------------------------------------------------


def test_a_head_that_ends_inside_a_character_is_no_fault() -> None:
    """Of a first line longer than the head, and of a block."""
    for shift in range(3):
        assert codes(read("x" * shift + "語" * HEAD_BYTES)) == []
        text = "---\n#" + "x" * shift + "語" * HEAD_BYTES + "\n---\n"
        assert codes(read(text)) == ["frontmatter_too_large"]


def test_bytes_that_are_wrong_before_the_head_ends_are_a_fault() -> None:
    assert codes(read(b"\xff" + "語".encode() * HEAD_BYTES)) == ["encoding_unsupported"]
    assert codes(read("語".encode() * 10 + b"\xe8")) == ["encoding_unsupported"]


@ENDS
def test_bad_bytes_are_on_a_line(end: str) -> None:
    found = read(f"---{end}a: b{end}title: ".encode() + b"caf\xe9" + f"{end}---{end}".encode())
    assert (only(found).code, only(found).line, found.title) == ("encoding_unsupported", 3, None)


@pytest.mark.parametrize(
    "content",
    [b"---\ntitle: T\n---\n\xff\xfe", b"# A page\n\xff", b"", b"\xef\xbb\xbf# A page", b"\n---\xff\n"],
)
def test_bad_bytes_in_the_body_alone_do_not_matter(content: bytes) -> None:
    assert codes(read(content)) == []


@pytest.mark.parametrize(
    "content", [b"\xff\xfe-\x00-\x00-\x00", b"caf\xe9\n", b"\xef\xbb\xbf\xef\xbb\n", b"\xed\xa0\x80\n"]
)
def test_a_first_line_that_is_not_utf_8_is_judged(content: bytes) -> None:
    assert codes(read(content)) == ["encoding_unsupported"]


def test_one_byte_order_mark_is_dropped_and_not_a_second() -> None:
    assert read("\ufeff---\ntitle: T\n---\n").title == "T"
    assert read("\ufeff\ufeff---\ntitle: T\n---\n") == Frontmatter()


# -- F-2: line ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029"], ids=["NEL", "LS", "PS"])
def test_characters_that_libyaml_takes_for_line_ends_are_text(char: str) -> None:
    """In values, keys, entries and messages, and in what lines and columns count."""
    lines = (f"title: x{char}---{char}", f"k{char}: 1", f"k{char}: 2", "includes:", f"  - a{char}b.md")
    found = block(*lines)
    assert (found.title, raws(found)) == (f"x{char}---{char}", [f"a{char}b.md"])
    assert only(found).line == 4
    assert repr(f"k{char}") in only(found).message
    assert block(f"title: {char}", "includes: 7").findings[0].line == 3


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029"], ids=["NEL", "LS", "PS"])
def test_errors_behind_such_characters_stand_where_the_author_sees_them(char: str) -> None:
    """And a fence does not close after one."""
    found = only(block("a: b", f"title: {char}x{char} @ : : y"))
    assert (found.code, found.line) == ("yaml_error", 3)
    assert block(f"title: a{char}---", "b: c").title == f"a{char}---"


def test_stand_ins_do_not_meet_the_authors_own_private_characters() -> None:
    private = "".join(map(chr, range(0xF0000, 0xF0010)))
    assert block(f"title: {private}\u2028{private}").title == f"{private}\u2028{private}"


@pytest.mark.parametrize("start", [0xE000, 0xF0000], ids=hex)
def test_no_author_can_use_up_the_stand_ins(start: int) -> None:
    """Not with all 6,400 of the basic plane, nor with as many of another as a block can hold."""
    private = "".join(map(chr, range(start, start + (6_400 if start == 0xE000 else 16_000))))
    assert block(f"title: {private}\u2028\u2029\x85").title == f"{private}\u2028\u2029\x85"


@pytest.mark.parametrize("char", ["\x0c", "\x0b", "\x00", "\x1c", "\x7f", "\ufffe"])
def test_characters_that_yaml_refuses_have_a_place(char: str) -> None:
    found = only(block("a: b", f"title: x{char}y"))
    assert (found.code, found.line, found.column) == ("yaml_error", 3, 9)
    assert f"U+{ord(char):04X}" in found.message


@ENDS
def test_findings_have_the_lines_and_columns_of_the_file(end: str) -> None:
    found = block("# note", "title: 7", "includes:", "  - 12", "    # more", "  - ''", "title2: x", end=end)
    assert [(each.code, each.line, each.column) for each in found.findings] == [
        ("title_not_string", 3, 8),
        ("include_not_string", 5, 5),
        ("include_empty", 7, 5),
    ]
    error = only(block("title: T", "includes:", "  - a: b: c", end=end))
    assert (error.code, error.line, error.column) == ("yaml_error", 4, 9)


def test_lines_may_end_in_every_way_in_one_file() -> None:
    found = read("---\r\ntitle: 7\rcanonical_path: 8\nincludes: 9\r\n--- \t\r")
    assert [(each.code, each.line) for each in found.findings] == [
        ("title_not_string", 2),
        ("canonical_path_invalid", 3),
        ("includes_not_list", 4),
    ]


# -- F-3: fences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "opening",
    ["----", "---yaml:", "+++", "{", " ---", "--", "—", "--- #", "---\x0b", "---\x85", "-- -", "--- a b"],
)
def test_other_first_lines_open_nothing(opening: str) -> None:
    assert read(f"{opening}\ntitle: T\n---\n") == Frontmatter()


@pytest.mark.parametrize("opening", ["---yaml", "--- yaml", "---js", "---\tjson5 ", "--- c++", "---x"])
def test_a_language_tag_is_named(opening: str) -> None:
    found = only(read(f"{opening}\nincludes: [a.md]\n---\n"))
    assert (found.code, found.severity, found.line, found.loses_includes) == (
        "frontmatter_language_unsupported",
        "warning",
        1,
        True,
    )


@pytest.mark.parametrize("closing", ["---", "...", "--- ", "...\t", "--- \t "])
@pytest.mark.parametrize("opening", ["---", "--- ", "---\t"])
def test_fences_may_have_blanks_behind_them(opening: str, closing: str) -> None:
    assert read(f"{opening}\ntitle: T\n{closing}\nincludes: [a.md]\n---\n") == Frontmatter(title="T")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n---\n", 2),
        (" \t\r\n\r---\n", 3),
        ("<!-- a\nb -->\n\n---\n", 4),
        ("<!-- a --> <!-- b -->\n--- \n", 2),
        ("\ufeff\n---\n", 2),
        ("\n---", 2),
        ("<!-->-->\n---\n", 2),
    ],
)
def test_a_fence_after_blank_lines_and_comments_is_late(text: str, line: int) -> None:
    found = only(read(text))
    assert (found.code, found.severity, found.line, found.loses_includes) == (
        "frontmatter_not_first",
        "warning",
        line,
        False,
    )


@pytest.mark.parametrize(
    "text", ["x\n---\n", "<!-- a\n---\n", "<!-- a --> x\n---\n", "\n----\n", "\n\n", "", "<!-- -->\nx\n---\n"]
)
def test_a_fence_after_text_is_a_rule(text: str) -> None:
    assert read(text) == Frontmatter()


@pytest.mark.parametrize("lines", [(), ("",), ("# only a comment",), ("  ", "#", "")])
def test_an_empty_block_is_valid(lines: tuple[str, ...]) -> None:
    assert block(*lines) == Frontmatter()


@pytest.mark.parametrize("line", ["A paragraph.", "- a", "[a, b]", "'x'", "7", "!tag x", "~", "&a [*a]"])
def test_a_rule_followed_by_text_is_body(line: str) -> None:
    """F-6."""
    found = only(block(line))
    assert (found.code, found.severity, found.line) == ("frontmatter_not_mapping", "warning", 1)
    assert not found.loses_includes


# -- F-5: composed, never constructed -------------------------------------------------------------


def test_an_alias_is_the_node_it_names() -> None:
    found = block("title: &t a.md", "includes: [*t, &n 7, *n, b.md]")
    assert (found.title, raws(found)) == ("a.md", ["a.md", "b.md"])
    assert [(entry.index, entry.code) for entry in found.entries] == [
        (0, None),
        (1, "include_not_string"),
        (2, "include_not_string"),
        (3, None),
    ]


def test_a_list_that_holds_itself_is_not_walked() -> None:
    found = block("includes: &a [*a, b.md]")
    assert ([entry.code for entry in found.entries], raws(found)) == (["include_not_string", None], ["b.md"])
    assert codes(block("includes: &a", "  b: *a")) == ["includes_not_list"]
    assert block("other: &a [*a]", "title: T").title == "T"


def test_a_list_of_lists_of_aliases_is_not_expanded() -> None:
    """The bomb of nine times nine."""
    lines = ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    found = block(*lines, "includes: *a29", "title: T")
    assert (found.title, [entry.code for entry in found.entries]) == ("T", ["include_not_string"] * 9)


@pytest.mark.parametrize("written", ["!!int a.md", "!x a.md", "!!binary YQ==", "!<tag:x> a.md"])
def test_an_entry_whose_tag_is_not_string_is_not_a_string(written: str) -> None:
    assert codes(block(f"includes: [{written}]")) == ["include_not_string"]


@pytest.mark.parametrize("written", ["!!str a.md", '!!str "a.md"', "'a.md'", "&x a.md"])
def test_a_string_by_its_tag_or_quotes_is_one(written: str) -> None:
    assert raws(block(f"includes: [{written}]")) == ["a.md"]


@pytest.mark.parametrize("tag", ["!!set", "!x", "!!python/object/apply:os.system", "!!omap", "!!seq"])
def test_a_tag_on_a_list_or_mapping_is_ignored(tag: str) -> None:
    assert raws(block(f"includes: {tag} [a.md]")) == ["a.md"]
    assert read(f"---\n{tag} {{title: T, includes: [a.md]}}\n---\n").title == "T"


OLD = "no on YES y 2024-01-01 2024-13-45 12:30:45 0b1 1_000 0o8 0xg + . nil NuLL tRUE 1e .e1 +. -.INf << ="
CORE = "true False TRUE 12 -12 +7 007 1.5 -.5 5. 1e3 1.5E-7 0o17 0xFf .inf -.Inf +.INF .nan .NaN"


@pytest.mark.parametrize("plain", OLD.split())
def test_what_yaml_1_1_took_for_something_else_is_text(plain: str) -> None:
    found = block(f"title: {plain}", f"includes: [{plain}, '{plain}']")
    assert (found.title, raws(found), codes(found)) == (plain, [plain, plain], [])


@pytest.mark.parametrize("plain", CORE.split())
def test_what_the_core_schema_takes_for_something_else_is_no_text(plain: str) -> None:
    found = block(f"title: {plain}", f"includes: [{plain}, '{plain}']", f"canonical_path: {plain}")
    assert (found.title, raws(found), found.canonical_path) == (None, [plain], None)
    assert codes(found) == ["title_not_string", "canonical_path_invalid", "include_not_string"]


@pytest.mark.parametrize("null", ["null", "Null", "NULL", "~", ""])
def test_null_is_absent_where_it_may_be(null: str) -> None:
    """C-1, I-1, I-2; a title that is null is no text."""
    found = block(f"title: {null}", f"canonical_path: {null}", f"includes: {null}")
    assert (found.canonical_path, found.entries) == (None, ())
    assert codes(found) == ["title_not_string"]
    entries = block("includes:", "  - a.md", f"  - {null}").entries
    assert [entry.code for entry in entries] == [None, "include_empty"]


def test_a_merge_key_merges_nothing() -> None:
    found = block("base: &b {title: T, includes: [a.md]}", "<<: *b")
    assert found == Frontmatter()


@pytest.mark.parametrize("depth", [900, 5_000, 30_000])
def test_deep_nesting_is_an_error_or_nothing(depth: int) -> None:
    found = block("deep: " + "[" * depth + "]" * depth, "title: T")
    assert (found.title, codes(found)) in [("T", []), (None, ["yaml_error"])]


# -- F-7: what may be meant -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("\ttitle: T", "begins with a tab"),
        ("  \ttitle: T", "begins with a tab"),
        ("title: Leak: first steps", "holds a colon and a space"),
        ("title: Leak:", "holds a colon and a space"),
        ("title: *.md", "begins with *"),
        ("title: @home", "begins with @"),
        ("title: `code`", "begins with `"),
        ("title: %d", "begins with %"),
        ("title: {{ name }} x", "begins with {{"),
        ("title: 'a' b", "put values with special characters between quotes"),
    ],
)
def test_a_hint_says_what_was_meant(line: str, hint: str) -> None:
    """The block's includes are lost, and the finding says so."""
    found = block("includes:", "  - a.md", line)
    assert (found.entries, found.title, only(found).loses_includes) == ((), None, True)
    assert (only(found).code, only(found).line) == ("yaml_error", 4)
    assert hint in only(found).hint


@pytest.mark.parametrize(
    ("entry", "hint"),
    [
        ("*.md", "*"),
        ("@a.md", "@"),
        ("[a.md, @b.md]", "@"),
        ("[a.md, `b.md`]", "`"),
        ("\ta.md", "tab"),
        ("`a.md`", "`"),
        ("%a.md", "%"),
        ("a: b: c", "colon"),
    ],
)
def test_a_hint_for_an_entry(entry: str, hint: str) -> None:
    found = only(block("includes:", f"  - {entry}"))
    assert (found.code, found.line) == ("yaml_error", 3)
    assert hint in found.hint


def test_a_message_shows_the_authors_characters() -> None:
    found = only(block("title: \u2028 @", "x: @\u2028"))
    assert "\U000f0000" not in found.message + found.hint


# -- F-8, F-9: keys -------------------------------------------------------------------------------


def test_a_key_that_stands_thrice_is_reported_twice_and_counts_never() -> None:
    found = block("title: A", "x: 1", "title: B", "includes: [a.md]", "title: C")
    assert (found.title, raws(found)) == (None, ["a.md"])
    assert [(each.code, each.line, each.loses_includes) for each in found.findings] == [
        ("yaml_duplicate_key", 4, False),
        ("yaml_duplicate_key", 6, False),
    ]
    assert "lines 2 and 4" in found.findings[0].message
    assert "lines 2 and 6" in found.findings[1].message


@pytest.mark.parametrize(
    "second", ["includes: [b.md]", '"includes": [b.md]', "includes:", "? includes\n: [b.md]"]
)
def test_includes_that_stand_twice_are_none(second: str) -> None:
    found = block("includes: [a.md]", second, "title: T")
    assert (raws(found), found.title) == ([], "T")
    assert (only(found).code, only(found).loses_includes) == ("yaml_duplicate_key", True)


def test_keys_that_are_no_text_are_left_alone() -> None:
    found = block("? [title]", ": T", "? {includes: 1}", ": [a.md]", "7: x", "~: y", "title: T")
    assert found == Frontmatter(title="T")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("Includes", "includes"),
        ("include", "includes"),
        ("INCLUDE", "includes"),
        ("canonicalPath", "canonical_path"),
        ("canonical-path", "canonical_path"),
        ("canonical path", "canonical_path"),
        ("CanonicalPath", "canonical_path"),
        ("Title", "title"),
        ("titles", "title"),
    ],
)
def test_a_key_that_nearly_is_one_is_a_warning(key: str, meant: str) -> None:
    found = only(block(f"{key}: [a.md]"))
    assert (found.code, found.severity, found.line) == ("unknown_key_near_miss", "warning", 2)
    assert repr(meant) in found.message


@pytest.mark.parametrize(
    "key", ["author", "tags", "subtitle", "included", "path", "canonical", "includes_from", "7"]
)
def test_other_keys_are_left_alone(key: str) -> None:
    assert block(f"{key}: [a.md]", "title: T") == Frontmatter(title="T")


# -- I-1, I-2: entries ----------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["", " null", " ~", ' ""', " ''", " []", " |\n"])
def test_no_includes(value: str) -> None:
    assert (block(f"includes:{value}").entries, codes(block(f"includes:{value}"))) == ((), [])


@pytest.mark.parametrize("value", ["a.md", "7", "{a: b}", "true", "' '", "!!null a", "!x ~"])
def test_includes_that_are_no_list(value: str) -> None:
    found = block(f"includes: {value}")
    assert (found.entries, only(found).code, only(found).loses_includes) == ((), "includes_not_list", True)


@pytest.mark.parametrize("entry", ["''", "' '", '"\\t"', "~", "", "null", '"\\n \\r"'])
def test_an_entry_of_nothing_is_skipped_with_a_warning(entry: str) -> None:
    found = block("includes:", "  - a.md", f"  - {entry}", "  - b.md")
    assert ([e.code for e in found.entries], raws(found)) == ([None, "include_empty", None], ["a.md", "b.md"])
    assert (only(found).severity, only(found).line, only(found).loses_includes) == ("warning", 4, False)
    assert "2" in only(found).message


@pytest.mark.parametrize("entry", ["7", "true", "[a.md]", "{a: b}", "1.5", "!x a.md", "[]"])
def test_an_entry_that_is_no_string_is_skipped_with_an_error(entry: str) -> None:
    found = block("includes:", "  - a.md", f"  - {entry}")
    assert (only(found).code, only(found).line, only(found).loses_includes) == ("include_not_string", 4, True)
    assert found.entries[1].index == 1


@pytest.mark.parametrize(("count", "too_many"), [(100, False), (101, True), (5_000, True)])
def test_the_first_hundred_entries_count_as_written(count: int, too_many: bool) -> None:
    """Those that are no strings or empty are among them."""
    entries = ["7", "''", *(f"{n}.md" for n in range(count - 2))]
    found = block("includes:", *(f"  - {entry}" for entry in entries))
    assert len(found.entries) == 100
    assert raws(found) == [f"{n}.md" for n in range(98)]
    assert codes(found) == ["too_many_includes"] * too_many + ["include_not_string", "include_empty"]
    if too_many:
        assert (found.findings[0].line, found.findings[0].loses_includes) == (103, True)


# -- any bytes ------------------------------------------------------------------------------------

WORDS = r"--- ... title: includes: - [ ] { : &a *a !x ' \ # | > % <!-- --> canonical_path: ../x.md 7 ~ ä"
BLANKS = ("  - a.md", '"', "\n", "\r", "\r\n", "\t", "\0", "\ufeff", "\u2028", "\U000f0000", " ")
PIECES = st.sampled_from([word.encode() for word in (*WORDS.split(" "), *BLANKS)])
DOCUMENTS = st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join)


@given(start=st.sampled_from([b"", b"---\n", b"\xef\xbb\xbf---\r\n", b"---\r"]), content=DOCUMENTS)
def test_any_bytes_are_read(start: bytes, content: bytes) -> None:
    """No error escapes, every code is in the table, and places are in the file."""
    content = start + content
    found = read(content)
    lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
    for each in found.findings:
        assert each.code in CODES
        assert each.message
        assert 1 <= (each.line or 1) <= lines
        assert (each.column or 1) >= 1
    assert all(entry.raw is not None or entry.code for entry in found.entries)


@settings(max_examples=25)
@given(start=DOCUMENTS, end=DOCUMENTS, size=st.integers(HEAD_BYTES - 60, HEAD_BYTES + 60))
def test_the_head_and_the_whole_document_say_the_same(start: bytes, end: bytes, size: int) -> None:
    """X-3: what the indexer reads of it, and what the fetcher has."""
    filler = "é".encode() * ((size - len(start)) // 2)
    content = b"---\n" + start + b"\n#" + filler + b"\n---\n" + end
    declared = declare(at("a.md"), "text/markdown", content, len(content))
    assert declare(at("a.md"), "text/markdown", content[:HEAD_BYTES], len(content)) == declared
