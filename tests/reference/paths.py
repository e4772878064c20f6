"""Rules I-3 to I-5 and C-1: from an entry to a key below the storage root.

Keys here are relative to the root; `prefix` is the root's own, and only counts towards the length of a key.
"""

import re
import unicodedata
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

MAX_KEY_BYTES = 1_024
DECODINGS = 5
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
BIDI = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
ZERO_WIDTH = {0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF}
TAGS = range(0xE0000, 0xE0080)


class Refused(Exception):
    """An entry that names no key; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def resolve(entry: str, base: str, prefix: str = "") -> str:
    """The key that `entry` names in a document whose (declared) key is `base`, or Refused."""
    if entry.startswith("/"):
        raise Refused("include_absolute")
    if SCHEME.match(entry):
        raise Refused("include_url")
    if "\\" in entry:
        raise Refused("include_backslash")
    if any(_is_invisible(char) for char in entry):
        raise Refused("include_control_character")
    written = entry.split("/")
    folded = base.split("/")[:-1]
    for segment in written:
        if segment == "..":
            if not folded:
                raise Refused("include_escapes_root")
            folded.pop()
        elif segment != ".":
            folded.append(segment)
    if _hides_traversal(entry):
        raise Refused("include_encoded_traversal")
    if written[-1] in ("", ".", ".."):
        raise Refused("include_is_directory")
    if "" in written:
        raise Refused("include_empty_segment")
    key = "/".join(folded)
    if len(f"{prefix}/{key}".lstrip("/").encode()) > MAX_KEY_BYTES:
        raise Refused("include_too_long")
    return key


def declared(canonical_path: str, prefix: str = "") -> str | None:
    """C-1: the key that a canonical_path declares, or None where it is not valid."""
    try:
        return resolve(canonical_path, "", prefix)
    except Refused:
        return None


def locate(key: str, exists: Callable[[str], bool]) -> tuple[str | None, bool]:
    """I-5: the stored key for `key`, and whether its Unicode form differs."""
    if exists(key):
        return key, False
    for form in ("NFC", "NFD"):
        # The forms named, never NFKC: compatibility letters are other names.
        other = unicodedata.normalize(form, key)
        if other != key and exists(other):
            return other, True
    return None, False


def _is_invisible(char: str) -> bool:
    point = ord(char)
    return unicodedata.category(char) in ("Cc", "Cs") or point in BIDI or point in ZERO_WIDTH or point in TAGS


def _hides_traversal(entry: str) -> bool:
    raw = entry.encode()
    plain = _dangers(raw)
    decoded = raw
    for _ in range(DECODINGS):
        decoded = unquote_to_bytes(decoded)
        if any(now > before for now, before in zip(_dangers(decoded), plain, strict=True)):
            return True
    return False


def _dangers(text: bytes) -> tuple[int, int, int, int]:
    dots = sum(segment in (b".", b"..") for segment in text.split(b"/"))
    return dots, text.count(b"/"), text.count(b"\\"), text.count(b"\0")
