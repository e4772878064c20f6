"""Everything that can go wrong, decided by class.

GroundwireError
├── InvalidRequest          the caller's input is wrong; says which field and what to do
├── ConfigurationError      the deployment is wrong; nothing a caller can mend
├── PointerRefused          a pointer or URI that leads nowhere we may look; carries a G-3 code
├── ImportRefused           a document that a File Search store will never take (X-10)
└── FetchError              a document could not be had; carries a B-3 code
    ├── DocumentNotFound    not_found
    ├── DocumentForbidden   forbidden   (to callers it looks like not_found, rule Z-1)
    ├── DocumentTooLarge    too_large   (carries the size the store reports)
    ├── KeyNotAddressable   key_not_addressable
    └── Unavailable         unavailable (the only kind that is worth a retry)
        └── Throttled       throttled

A bad document is no error: it has findings (findings.py).
"""

from typing import ClassVar


class GroundwireError(Exception):
    """The common base; its text is fit for a person and holds no document content."""


class InvalidRequest(GroundwireError):
    """Input that cannot be used; `field` is the name as the caller wrote it, dotted where nested."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class ConfigurationError(GroundwireError):
    """Settings, roots or wiring that contradict each other."""


class PointerRefused(GroundwireError):
    """A source that names no document we may look for; `code` is one of rule G-3's."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class ImportRefused(GroundwireError):
    """A File Search store will never take this document; `code` is the service's status."""

    def __init__(self, uri: str, code: str, detail: str) -> None:
        super().__init__(f"{uri}: {detail}")
        self.uri = uri
        self.code = code
        self.detail = detail


class FetchError(GroundwireError):
    """One document could not be fetched; `uri` says which, `code` is rule B-3's."""

    code: ClassVar[str] = "unavailable"

    def __init__(self, uri: str, detail: str) -> None:
        super().__init__(f"{uri}: {detail}")
        self.uri = uri
        self.detail = detail


class DocumentNotFound(FetchError):
    code = "not_found"


class DocumentForbidden(FetchError):
    code = "forbidden"


class DocumentTooLarge(FetchError):
    """`size_bytes` is what the store reports; the body was not read."""

    code = "too_large"

    def __init__(self, uri: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(uri, f"{size_bytes} bytes, over the {limit_bytes} allowed")
        self.size_bytes = size_bytes


class KeyNotAddressable(FetchError):
    code = "key_not_addressable"


class Unavailable(FetchError):
    code = "unavailable"


class Throttled(Unavailable):
    code = "throttled"
