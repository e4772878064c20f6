"""Everything that can go wrong, decided by class.

GroundwireError
├── InvalidRequest          the caller's input is wrong; says which field and what to do
├── ConfigurationError      the deployment is wrong; nothing a caller can mend
├── PointerRefused          a pointer or URI that leads nowhere we may look; carries a G-3 code
├── ImportRefused           a document that a File Search store will never take (X-10)
├── ClientError             what the HTTPS API's Python client raises (client.py)
│   ├── GroundwireApiError      the API refused: RFC 9457 problem details
│   ├── GroundwireUnavailable   no answer, or none in time
│   ├── ContentUnavailable      a document's body that cannot be had where it was asked for
│   │   └── ContentChanged      what is there is no longer what was grounded
│   └── IncompleteBundle        somebody needed the whole, and it is not all there
└── FetchError              a document could not be had; carries a B-3 code
    ├── DocumentNotFound    not_found
    ├── DocumentForbidden   forbidden   (to callers it looks like not_found, rule Z-1)
    ├── DocumentTooLarge    too_large   (carries the size the store reports)
    ├── KeyNotAddressable   key_not_addressable
    ├── UnsupportedMime     unsupported_mime (no model takes its type, and nobody converts it)
    └── Unavailable         unavailable (the only kind that is worth a retry)
        ├── Throttled       throttled
        └── CursorRefused   unavailable (a listing's place that the service no longer takes: start over)

A bad document is no error: it has findings (findings.py).
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

SourceCode = Literal[
    "metadata_missing",
    "document_not_found",
    "source_type_unknown",
    "source_type_not_allowed",
    "uri_unsupported",
    "web_source",
    "root_not_configured",
    "over_max_documents",
    "ambiguous",
]
"""G-3: why a source leads to no document."""
FetchCode = Literal[
    "not_found",
    "forbidden",
    "too_large",
    "key_not_addressable",
    "unsupported_mime",
    "unavailable",
    "throttled",
]
"""B-3: why a document could not be had."""


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
    """A source that names no document we may look for."""

    def __init__(self, code: SourceCode, detail: str) -> None:
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


class ClientError(GroundwireError):
    """The common base of what the Python client raises; no text of it holds a URL, a token or content."""


class GroundwireApiError(ClientError):
    """The API answered, and it was a refusal or nothing that can be read.

    `code` is the problem's own, or `http_<status>` where a gateway answered instead of Groundwire; `errors`
    names the fields that are wrong.
    """

    def __init__(
        self,
        status: int,
        code: str,
        title: str,
        detail: str = "",
        errors: tuple[Mapping[str, str], ...] = (),
    ) -> None:
        super().__init__(f"{status} {code}: {detail or title}")
        self.status = status
        self.code = code
        self.title = title
        self.detail = detail
        self.errors = errors


class GroundwireUnavailable(ClientError):
    """The API could not be reached, or did not answer in time."""


class ContentUnavailable(ClientError):
    """The body of the document `uri` cannot be had: `reason` says why."""

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(f"{uri}: {reason}")
        self.uri = uri
        self.reason = reason


class ContentChanged(ContentUnavailable):
    """The bytes at the download URL are not those that were grounded: ask again."""


class IncompleteBundle(ClientError):
    """Something is missing; `missing` says what and why, one value each."""

    def __init__(self, missing: tuple[object, ...]) -> None:
        super().__init__(f"the answer is not complete: {'; '.join(map(str, missing[:5]))}")
        self.missing = missing


class FetchError(GroundwireError):
    """One document could not be fetched; `uri` says which, `code` is rule B-3's."""

    code: ClassVar[FetchCode] = "unavailable"

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


class UnsupportedMime(FetchError):
    code = "unsupported_mime"


class Unavailable(FetchError):
    code: ClassVar[FetchCode] = "unavailable"


class Throttled(Unavailable):
    code = "throttled"


class CursorRefused(Unavailable):
    """Where a listing was to go on; the service no longer takes it, and the listing starts over."""


def frames(error: BaseException) -> list[str]:
    """Where an exception came from, innermost last: all that may be logged of one that may quote anything."""
    found: list[str] = []
    trace = error.__traceback__
    while trace:
        code = trace.tb_frame.f_code
        found.append(f"{code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return found[-8:]
