"""Groundwire: whole documents, and the documents they include, for answers that are grounded.

The names of the two documents that asked for this system, with Python's spelling. They are imported on
first use, so that `import groundwire` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundwire.client import GroundwireClient, IamAuth
    from groundwire.composition import CompositionBundle, CompositionLoader
    from groundwire.configuration import CanonicalGroundingConfig
    from groundwire.documents import Context, PreparedDocument
    from groundwire.fetching import CanonicalDocumentFetcher, PrepareDocumentOptions
    from groundwire.grounded import GroundedResult
    from groundwire.grounding import CanonicalGroundingResult, CanonicalGroundingService
    from groundwire.pointers import (
        CanonicalDocumentPointer,
        GcsDocumentPointer,
        LocalDocumentPointer,
        S3DocumentPointer,
        SharePointDocumentPointer,
    )
    from groundwire.policy import CompositionPolicy
    from groundwire.resolution import KnowledgeSource
    from groundwire.roots import StorageRoot, StorageRoots
    from groundwire.traversal import CompositionEdge, SkippedInclude

__version__ = "0.1.0"

__all__ = [
    "CanonicalDocumentFetcher",
    "CanonicalDocumentPointer",
    "CanonicalGroundingConfig",
    "CanonicalGroundingResult",
    "CanonicalGroundingService",
    "CompositionBundle",
    "CompositionEdge",
    "CompositionLoader",
    "CompositionPolicy",
    "Context",
    "GcsDocumentPointer",
    "GroundedResult",
    "GroundwireClient",
    "IamAuth",
    "KnowledgeSource",
    "LocalDocumentPointer",
    "PrepareDocumentOptions",
    "PreparedDocument",
    "S3DocumentPointer",
    "SharePointDocumentPointer",
    "SkippedInclude",
    "StorageRoot",
    "StorageRoots",
]

_HOMES = {
    "client": ("GroundwireClient", "IamAuth"),
    "composition": ("CompositionBundle", "CompositionLoader"),
    "documents": ("Context", "PreparedDocument"),
    "fetching": ("CanonicalDocumentFetcher", "PrepareDocumentOptions"),
    "configuration": ("CanonicalGroundingConfig",),
    "grounded": ("GroundedResult",),
    "grounding": ("CanonicalGroundingResult", "CanonicalGroundingService"),
    "pointers": (
        "CanonicalDocumentPointer",
        "GcsDocumentPointer",
        "LocalDocumentPointer",
        "S3DocumentPointer",
        "SharePointDocumentPointer",
    ),
    "policy": ("CompositionPolicy",),
    "resolution": ("KnowledgeSource",),
    "roots": ("StorageRoot", "StorageRoots"),
    "traversal": ("CompositionEdge", "SkippedInclude"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"groundwire.{home}"), name)
    raise AttributeError(f"module 'groundwire' has no attribute {name!r}")
