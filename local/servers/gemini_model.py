"""A model without weights: what it says follows from the words it was given, so an example can be checked."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from local.servers.gemini_resources import Document, Refused

RETRIEVED_DEFAULT: Final = 5
_WORD = re.compile(r"\w{4,}")


def generated(
    model: str,
    request: Mapping[str, Any],
    documents: Callable[[str], Iterable[Document]],
    file: Callable[[str], tuple[str, bytes]],
) -> dict[str, Any]:
    """The response to `generateContent`; `documents` lists a store, `file` reads a URI: type and bytes."""
    contents = request.get("contents", [])
    turns = [contents] if isinstance(contents, dict) else contents
    parts = [part for turn in turns for part in turn.get("parts", [])]
    if not parts:
        raise Refused(400, "INVALID_ARGUMENT", "contents is not specified")
    searches = [tool["fileSearch"] for tool in request.get("tools", []) if "fileSearch" in tool]
    if not searches:
        return _response(model, "\n".join(["I was given:", *(f"- {_seen(part, file)}" for part in parts)]))
    question = "\n".join(part["text"] for part in parts if "text" in part)
    chunks = [chunk for search in searches for chunk in _retrieved(question, search, documents)]
    titles = dict.fromkeys(chunk["retrievedContext"].get("title", "an unnamed document") for chunk in chunks)
    said = f"See {', '.join(titles)}." if titles else "Nothing in the stores speaks of that."
    return _response(model, said, {"groundingChunks": chunks} if chunks else {})


def _retrieved(
    question: str, search: Mapping[str, Any], documents: Callable[[str], Iterable[Document]]
) -> list[dict[str, Any]]:
    """The paragraphs of the stores that share most words with the question, as grounding chunks."""
    if "metadataFilter" in search:
        raise Refused(400, "INVALID_ARGUMENT", "This server does not filter by metadata.")
    asked = _words(question)
    ranked = sorted(
        (
            (
                -len(asked & _words(f"{document.display_name or ''} {paragraph}")),
                place,
                store,
                document,
                paragraph,
            )
            for store in search.get("fileSearchStoreNames", [])
            for place, (document, paragraph) in enumerate(_paragraphs(documents(store)))
        ),
        key=lambda each: each[:2],
    )
    best = [each for each in ranked if each[0]][: int(search.get("topK") or RETRIEVED_DEFAULT)]
    return [_chunk(store, document, paragraph) for _, _, store, document, paragraph in best]


def _paragraphs(documents: Iterable[Document]) -> Iterable[tuple[Document, str]]:
    for document in documents:
        if document.state == "STATE_ACTIVE" and b"\0" not in document.content:
            for paragraph in document.content.decode(errors="replace").split("\n\n"):
                yield document, paragraph.strip()


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _chunk(store: str, document: Document, text: str) -> dict[str, Any]:
    context: dict[str, Any] = {"text": text, "fileSearchStore": store}
    if document.display_name is not None:
        context["title"] = document.display_name
    if document.metadata:
        context["customMetadata"] = list(document.metadata)
    return {"retrievedContext": context}


def _seen(part: Mapping[str, Any], file: Callable[[str], tuple[str, bytes]]) -> str:
    """What the model says of a part: its kind and its first line."""
    if "text" in part:
        return f"text: {_first_line(part['text'])}"
    if "inlineData" in part:
        mime_type, content = (
            part["inlineData"].get("mimeType", ""),
            _decoded(part["inlineData"].get("data", "")),
        )
    elif "fileData" in part:
        mime_type, content = file(part["fileData"].get("fileUri", ""))
    else:
        raise Refused(400, "INVALID_ARGUMENT", "A part has no data.")
    if mime_type.startswith("application/vnd.") or "/" not in mime_type:
        raise Refused(400, "INVALID_ARGUMENT", f"Unsupported MIME type: {mime_type}")
    return f"{mime_type}, {len(content)} bytes: {_first_line(content.decode(errors='replace'))}"


def _decoded(data: str) -> bytes:
    """Of either alphabet: the service takes both."""
    try:
        return base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError as error:
        raise Refused(400, "INVALID_ARGUMENT", "Base64 decoding failed.") from error


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def _response(model: str, text: str, grounding: Mapping[str, Any] | None = None) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    if grounding:
        candidate["groundingMetadata"] = dict(grounding)
    return {"candidates": [candidate], "modelVersion": model}
