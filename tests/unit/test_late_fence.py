"""F-3, F-4: a fence that is not on line 1 is found by one look at each byte of the head."""

import pytest

from groundwire.frontmatter import parse
from groundwire.limits import HEAD_BYTES


def late_fence(content: bytes) -> list[int | None]:
    return [each.line for each in parse(content, len(content)).findings]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"<!-- a\n-->\n\n--- \nx", [4]),
        (b" <!-- a --><!-- b -->\r\n\r---", [3]),
        (b"<!-- a --> x\n---\n", []),
        (b"<!-- never closed\n---\n", []),
        (b"\n----\n", []),
    ],
)
def test_what_precedes_it(content: bytes, lines: list[int]) -> None:
    assert late_fence(content) == lines


def test_a_line_that_the_head_cuts_is_no_fence() -> None:
    assert late_fence(b"\n" * (HEAD_BYTES - 3) + b"---x\n") == []


def test_many_comments_on_one_line_are_read_once() -> None:
    # Quadratic in the comments this took seconds; it is here for whoever waits for it.
    assert late_fence(b"<!---->" * (HEAD_BYTES // 7)) == []
