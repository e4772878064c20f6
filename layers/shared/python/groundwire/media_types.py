"""MIME types: the stored one, or by extension where that is missing or says nothing.

The table is ours, since the system's differs from machine to machine and answers must not.
"""

from typing import Final

MARKDOWN: Final = "text/markdown"
UNKNOWN: Final = "application/octet-stream"

_GENERIC: Final = frozenset({"", UNKNOWN, "binary/octet-stream", "application/x-www-form-urlencoded"})
_BY_EXTENSION: Final = {
    "md": MARKDOWN,
    "markdown": MARKDOWN,
    "mdown": MARKDOWN,
    "mkd": MARKDOWN,
    "txt": "text/plain",
    "text": "text/plain",
    "log": "text/plain",
    "rst": "text/x-rst",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "htm": "text/html",
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "xml": "application/xml",
    "json": "application/json",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "pdf": "application/pdf",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "zip": "application/zip",
    "doc": "application/msword",
    "rtf": "application/rtf",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
_TEXT_APPLICATIONS: Final = frozenset({"application/json", "application/yaml", "application/xml"})
_OFFICE: Final = (
    "application/msword",
    "application/rtf",
    "application/vnd.ms-",
    "application/vnd.oasis.opendocument.",
    "application/vnd.openxmlformats-officedocument.",
)


def media_type(stored: str | None, key: str) -> str:
    """The type of the document at `key`, in lower case and without parameters."""
    given = (stored or "").split(";", 1)[0].strip().lower()
    if given not in _GENERIC:
        return given
    name = key.rsplit("/", 1)[-1]
    extension = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    return _BY_EXTENSION.get(extension, UNKNOWN)


def is_text(mime_type: str) -> bool:
    """Whether a document of this type may open with frontmatter."""
    return mime_type.startswith("text/")


def is_delivered_as_text(mime_type: str) -> bool:
    """Whether a model takes it as plain text, given that the bytes are UTF-8."""
    return is_text(mime_type) or mime_type in _TEXT_APPLICATIONS


def is_office(mime_type: str) -> bool:
    """Whether it is a word processor's, spreadsheet's or presentation's file, which no model takes (G-6)."""
    return mime_type.startswith(_OFFICE)
