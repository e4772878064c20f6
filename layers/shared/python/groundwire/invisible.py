"""Characters that nobody sees, or that reorder what is seen (I-4).

An include may not hold one; a body is searched for them and stays as it is (G-8).
"""

import re
import unicodedata
from typing import Final

_CLASS: Final = (
    "\x00-\x1f\x7f-\x9f"  # control
    "\u202a-\u202e\u2066-\u2069"  # bidi
    "\u200b-\u200d\u2060\ufeff"  # zero-width
    "\U000e0000-\U000e007f\ud800-\udfff"  # tag, surrogate
)
INVISIBLE: Final = re.compile(f"[{_CLASS}]")
IN_BODY: Final = re.compile(f"(?![\t\n\r])[{_CLASS}]")
"""The same without those that every text has: tab and the ends of lines."""


def named(char: str) -> str:
    """`U+202E RIGHT-TO-LEFT OVERRIDE`."""
    unnamed = "CONTROL CHARACTER" if unicodedata.category(char) == "Cc" else "UNNAMED CHARACTER"
    return f"U+{ord(char):04X} {unicodedata.name(char, unnamed)}"


def visible(text: str) -> str:
    """The text with what would be obeyed, hidden or reorder its neighbours made visible: `<U+202E>`."""
    return "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in text)
