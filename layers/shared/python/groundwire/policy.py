"""Composition policy (B-1): the seed's defaults, a call's overrides merged over them, clamped to maxima."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from groundwire.errors import InvalidRequest
from groundwire.limits import MAX_DEPTH, MAX_DOCS, MAX_INCLUDE_BYTES, MAX_TIMEOUT_MS
from groundwire.media_types import MARKDOWN

OnFetchError = Literal["skip", "abort"]

_BOUNDS: Final = {
    "max_depth": (0, MAX_DEPTH),
    "max_docs": (1, MAX_DOCS),
    "max_include_bytes": (0, MAX_INCLUDE_BYTES),
    "timeout_ms": (1, MAX_TIMEOUT_MS),
}


@dataclass(frozen=True, slots=True)
class CompositionPolicy:
    """The bounds of one search; every field has the seed's meaning and default."""

    traversable_mime_types: tuple[str, ...] = (MARKDOWN,)
    max_depth: int = 2
    max_docs: int = 8
    """With the root."""
    max_include_bytes: int = 5_242_880
    """Without the root."""
    timeout_ms: int = 10_000
    on_fetch_error: OnFetchError = "skip"

    def merged(self, overrides: "Mapping[str, Any] | CompositionPolicy | None") -> "CompositionPolicy":
        """This policy with a call's overrides (camelCase or snake_case) over it, clamped.

        InvalidRequest names the field where an override is unknown, of the wrong type or too small.
        """
        if isinstance(overrides, CompositionPolicy):
            overrides = {each.name: getattr(overrides, each.name) for each in fields(overrides)}
        if not isinstance(overrides, Mapping | None):
            raise InvalidRequest("policy", "must be an object")
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given: dict[str, str] = {}
        for name, value in (overrides or {}).items():
            field = _snake(str(name))
            if field not in values or field in given:
                problem = "is given twice" if field in given else f"is unknown; known are {', '.join(values)}"
                raise InvalidRequest(name, problem)
            given[field] = name
            if value is not None:
                values[field] = _checked(field, name, value)
        return CompositionPolicy(**values)


def _snake(name: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in name)


def _checked(field: str, name: str, value: Any) -> Any:
    if field == "traversable_mime_types":
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) and "/" in v for v in value):
            raise InvalidRequest(name, 'must be a list of MIME types, like ["text/markdown"]')
        return tuple(each.strip().lower() for each in value)
    if field == "on_fetch_error":
        if value not in ("skip", "abort"):
            raise InvalidRequest(name, 'must be "skip" or "abort"')
        return value
    low, high = _BOUNDS[field]
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise InvalidRequest(name, f"must be a whole number of at least {low}")
    return min(value, high)
