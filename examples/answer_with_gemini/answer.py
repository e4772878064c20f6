"""From a question to an answer out of whole documents: search, ground, answer.

`answer` is all that an application writes itself; the rest is for running it. `--local` needs no account:
Gemini is a server on this machine, and Groundwire runs in this very process over examples/knowledge-base.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from google import genai
from google.genai import types

from groundwire import (
    CanonicalDocumentFetcher,
    CanonicalGroundingConfig,
    CanonicalGroundingService,
    CompositionPolicy,
    Context,
    GroundedResult,
    GroundwireClient,
    IamAuth,
    StorageRoots,
)
from groundwire.client_answers import grounded
from groundwire.client_request import ground_request
from groundwire.imports import display_name, metadata
from groundwire.includes import declare
from groundwire.media_types import MARKDOWN
from groundwire.resolution import sources
from groundwire_cli.folder import Folder
from local.servers.gemini import KEY, GeminiServer

MODEL = "gemini-2.5-flash"
QUESTION = "Cold complaint: a tenant says the flat is too cold. Which room temperature makes it a priority?"
_NEEDED = ("GEMINI_API_KEY", "GROUNDWIRE_API")
KNOWLEDGE_BASE = Path(__file__).parents[1] / "knowledge-base"


class Groundwire(Protocol):
    """What is asked for documents: a GroundwireClient, or the library itself."""

    def ground(self, found: Any, *, user_id: str) -> GroundedResult: ...


def answer(
    gemini: genai.Client, groundwire: Groundwire, store: str, question: str
) -> tuple[GroundedResult, str]:
    """The documents an answer is made from, and the answer."""
    search = types.Tool(file_search=types.FileSearch(file_search_store_names=[store]))
    config = types.GenerateContentConfig(tools=[search])
    found = gemini.models.generate_content(model=MODEL, contents=question, config=config)
    documents = groundwire.ground(found, user_id="example")
    contents = [*documents.to_gemini_parts(), types.Part.from_text(text=question)]
    reply = gemini.models.generate_content(model=MODEL, contents=contents)
    return documents, reply.text or ""


class InProcess:
    """Groundwire as a library (P-2), over a folder."""

    def __init__(self, folder: Folder) -> None:
        fetcher = CanonicalDocumentFetcher({"local": folder}, StorageRoots([folder.root]))
        config = CanonicalGroundingConfig(composition_policy=CompositionPolicy())
        self._service = CanonicalGroundingService(None, fetcher, config)

    def ground(self, found: Any, *, user_id: str) -> GroundedResult:
        context = Context(user_id, auditing_id="example")
        return grounded(self._service.prepare_from_sources(sources(ground_request(found)), context))


def main(arguments: Sequence[str] | None = None) -> int:
    """Asks, and prints which documents the answer was made from."""
    parser = _parser()
    options = parser.parse_args(arguments)
    absent = [] if options.local else [name for name in _NEEDED if not os.environ.get(name)]
    if absent:
        parser.error(f"set {' and '.join(absent)}, or ask with --local")
    with _local() if options.local else _deployed(options) as (gemini, groundwire, store):
        documents, text = answer(gemini, groundwire, store, options.question)
    for document in documents.documents:
        print(f"read: {document.uri}")
    for missing in documents.missing:
        print(f"MISSING: {missing}")
    for warning in documents.warnings:
        print(f"warning: {warning.uri}, line {warning.line}: {warning.character}")
    print(f"\n{text}")
    return 0 if documents.complete else 1


Parties = tuple[genai.Client, Groundwire, str]


@contextlib.contextmanager
def _local() -> Iterator[Parties]:
    """Gemini on loopback, with the knowledge base in a File Search store, and Groundwire in this process."""
    folder = Folder(KNOWLEDGE_BASE)
    with GeminiServer() as server:
        store = server.add_store("handbook")
        # What a search finds are procedures; what they include is Groundwire's to know.
        for key in folder.texts(KNOWLEDGE_BASE / "sops"):
            location, content = folder.root_location(key), (KNOWLEDGE_BASE / key).read_bytes()
            name = display_name(location, declare(location, MARKDOWN, content, len(content)).title)
            described = metadata(location, name, MARKDOWN)
            server.add_document(store, content, display_name=name, mime_type=MARKDOWN, metadata=described)
        with _gemini(KEY, server.url) as gemini:
            yield gemini, InProcess(folder), store


@contextlib.contextmanager
def _deployed(options: argparse.Namespace) -> Iterator[Parties]:
    """The services themselves: keys and addresses come from the environment."""
    token = os.environ.get("GROUNDWIRE_TOKEN")
    auth = None if token else IamAuth()
    with (
        GroundwireClient(os.environ["GROUNDWIRE_API"], auth=auth, token=token) as groundwire,
        _gemini(os.environ["GEMINI_API_KEY"]) as gemini,
    ):
        yield gemini, groundwire, options.store


def _gemini(key: str, base_url: str | None = None) -> genai.Client:
    """A client whose waits end; File Search is documented for v1beta."""
    retries = types.HttpRetryOptions(attempts=2)
    options = types.HttpOptions(
        base_url=base_url, api_version="v1beta", timeout=30_000, retry_options=retries
    )
    return genai.Client(api_key=key, http_options=options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="answer_with_gemini", description="Answers a question out of whole documents."
    )
    parser.add_argument("question", nargs="?", default=QUESTION)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--local", action="store_true", help="everything on this machine; no account, no key")
    where.add_argument("--store", metavar="NAME", help="the File Search store, as fileSearchStores/…")
    return parser


if __name__ == "__main__":
    sys.exit(main())
