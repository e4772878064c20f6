"""How sizes, severities and reasons are written for people; every colour has a symbol."""

from typing import Final

from groundwire.invisible import visible as visible

FINDING_STYLES: Final = {
    "error": ("red", "✗"),
    "warning": ("yellow", "!"),
    "information": ("cyan", "i"),
}
VERDICT_STYLES: Final = {"valid": ("green", "✓"), "warnings": ("yellow", "!"), "invalid": ("red", "✗")}
ATTACHED: Final = ("green", "✓")
LOST: Final = ("red", "✗")
SKIP_STYLES: Final = {
    "cycle": ("cyan", "↺"),
    "depth_exceeded": ("yellow", "⤓"),
    "doc_budget_exceeded": ("yellow", "⤓"),
    "byte_budget_exceeded": ("yellow", "⤓"),
    "timeout": ("yellow", "⏱"),
}


def size(count: int) -> str:
    """A number of bytes in the unit a person would use."""
    if count < 1024:
        return f"{count} B"
    for unit in ("KB", "MB"):
        count_in_unit = count / 1024 if unit == "KB" else count / 1024**2
        if count_in_unit < 1024 or unit == "MB":
            return f"{count_in_unit:.1f} {unit}"
    raise AssertionError


def plural(count: int, noun: str) -> str:
    """`1 document`, `2 documents`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
