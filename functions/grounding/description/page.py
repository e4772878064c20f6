"""A page to read the description on."""

import base64
import hashlib
from functools import cache
from pathlib import Path


@cache
def docs_page() -> tuple[str, dict[str, str]]:
    """The page and its headers: only its own style and script may run, and only we are asked."""
    page = Path(__file__).with_name("docs.html").read_text(encoding="utf-8")
    style, script = _hash(page, "style"), _hash(page, "script")
    policy = (
        f"default-src 'none'; connect-src 'self'; style-src '{style}'; script-src '{script}';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page, {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }


def _hash(page: str, tag: str) -> str:
    inner = page.split(f"<{tag}>", 1)[1].split(f"</{tag}>", 1)[0]
    return f"sha256-{base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()}"
