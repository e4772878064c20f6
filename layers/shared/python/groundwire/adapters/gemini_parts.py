"""A grounded result as google-genai's parts (G-8); google-genai is imported with this module."""

from typing import Final

from google.genai.types import Part

from groundwire.grounded import GroundedResult
from groundwire.media_types import is_delivered_as_text
from groundwire.rendering import Inline, Piece, Reference, pieces

_TAKEN: Final = frozenset(
    {"application/pdf", "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}
)
"""What Gemini takes and is no text; another type is refused, and the whole request with it."""


def gemini_parts(result: GroundedResult) -> list[Part]:
    """One part a text, two for a document that is none: its header, then its bytes or its reference."""
    return [_part(piece) for piece in pieces(result, takes=_takes)]


def _takes(mime_type: str) -> bool:
    return mime_type in _TAKEN or is_delivered_as_text(mime_type)


def _part(piece: Piece) -> Part:
    match piece:
        case Inline():
            return Part.from_bytes(data=piece.data, mime_type=piece.mime_type)
        case Reference():
            return Part.from_uri(file_uri=piece.file_uri, mime_type=piece.mime_type)
        case text:
            return Part.from_text(text=text)
