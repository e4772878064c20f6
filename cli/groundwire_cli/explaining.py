"""Explain: the bundle a document would be grounded with, by the very search the functions run."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from groundwire.composition import CompositionBundle, CompositionLoader
from groundwire.documents import Context
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.roots import StorageRoots
from groundwire_cli.folder import Folder, enclosing_root

_CONTEXT = Context(user_id="command-line", auditing_id="command-line")


def explain(paths: Iterable[Path], root: Path | None, policy: Mapping[str, Any]) -> list[CompositionBundle]:
    """One bundle a document, each searched on its own; of a folder, one for every text document below it.

    A FetchError where a document itself cannot be read; ValueError where it is outside `root`.
    """
    bundles: list[CompositionBundle] = []
    for path in paths:
        top = root or enclosing_root(path.absolute()) or (path if path.is_dir() else path.parent)
        folder = Folder(top, is_whole=root is not None)
        # One file after the other is as fast as a disk gets: no threads, no start-up cost.
        fetcher = CanonicalDocumentFetcher({"local": folder}, StorageRoots([folder.root]))
        loader = CompositionLoader(fetcher, workers=0)
        locations = (
            [folder.root_location(key) for key in folder.texts(path.resolve())]
            if path.is_dir()
            else [folder.location(path)]
        )
        for location in locations:
            pointer = location.pointer()
            document = fetcher.fetch_prepared_document(pointer, _CONTEXT)
            bundles.append(loader.load_bundle(document, document.pointer, _CONTEXT, policy))
    return bundles
