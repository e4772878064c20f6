"""How the HTTPS API describes itself: examples, the answers that are problems, and a page to read it on."""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from grounding.problems import CONTENT_TYPE


def _problem(description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


PROBLEMS: Final[dict[int, Any]] = {
    200: {"description": "The answer", "content": {"application/json": {"schema": {"type": "object"}}}},
    400: _problem("The request is wrong; `errors` names each field"),
    403: _problem("Nobody vouches for the caller"),
    503: _problem("A store cannot answer now"),
}
NOT_FOUND: Final[dict[int, Any]] = PROBLEMS | {
    404: _problem("There is no such document, or the caller may not read it"),
    422: _problem("The document is larger than any answer"),
}
PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "RFC 9457 problem details",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "Stable; programs decide by it"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "problem": {"type": "string"}},
            },
        },
    },
}
EXAMPLE: Final[dict[str, Any]] = {
    "groundingMetadata": {
        "groundingChunks": [
            {
                "retrievedContext": {
                    "title": "Cold complaint",
                    "text": "Check the thermostat first.",
                    "fileSearchStore": "fileSearchStores/handbook",
                    "customMetadata": [
                        {"key": "source_type", "stringValue": "s3"},
                        {"key": "s3_bucket", "stringValue": "handbook"},
                        {"key": "s3_key", "stringValue": "sops/cold-complaint.md"},
                    ],
                }
            }
        ]
    },
    "ctx": {"userId": 123, "auditingId": 456},
    "overrides": {"maxDocuments": 3, "compositionPolicy": {"maxDepth": 2}},
}


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
