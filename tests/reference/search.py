"""Sections 2, 3, 4, 6 and the JSON of section 10, as the rules are written: one queue, one fetch at a time.

There is no clock: nothing here ever times out. Keys are relative to the root.
"""

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.reference import frontmatter, paths
from tests.reference.frontmatter import Finding, Frontmatter

INBOX = "inbox/"
REQUEST_DOCS = 64
REQUEST_BYTES = 25 * 1024 * 1024
DEFAULTS: dict[str, object] = {
    "traversableMimeTypes": ["text/markdown"],
    "maxDepth": 2,
    "maxDocs": 8,
    "maxIncludeBytes": 5_242_880,
    "timeoutMs": 10_000,
    "onFetchError": "skip",
}
# Lowest value allowed, and the service's maximum.
RANGES = {
    "maxDepth": (0, 5),
    "maxDocs": (1, REQUEST_DOCS),
    "maxIncludeBytes": (0, REQUEST_BYTES),
    "timeoutMs": (1, 25_000),
}
MIME_TYPES = {
    "csv": "text/csv",
    "htm": "text/html",
    "html": "text/html",
    "markdown": "text/markdown",
    "md": "text/markdown",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
}


class Store(Protocol):
    """Where documents are: a folder or a mapping."""

    def exists(self, key: str) -> bool:
        """Whether a document can be read under exactly this key."""

    def read(self, key: str) -> bytes:
        """The bytes of a document that exists."""

    def listing(self) -> list[str]:
        """Every key, sorted."""


class Files:
    """A store in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def exists(self, key: str) -> bool:
        """Exact, as an object store is."""
        return key in self.files

    def read(self, key: str) -> bytes:
        """The bytes as given."""
        return self.files[key]

    def listing(self) -> list[str]:
        """Sorted by code point."""
        return sorted(self.files)


class Folder:
    """A folder on disk: names compared exactly on every system, links followed only inside it (I-5, I-8)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.real = os.path.realpath(root)

    def exists(self, key: str) -> bool:
        """Each name is looked up in the listing of its folder, so that no system folds its case."""
        here = self.root
        for name in key.split("/"):
            if not here.is_dir() or name not in [found.name for found in here.iterdir()]:
                return False
            here /= name
            real = os.path.realpath(here)
            if real != self.real and not real.startswith(self.real.rstrip(os.sep) + os.sep):
                return False
        return here.is_file()

    def read(self, key: str) -> bytes:
        """The whole file."""
        return (self.root / key).read_bytes()

    def listing(self) -> list[str]:
        """Every readable file; linked folders are not entered, or the list might never end."""
        found: list[str] = []
        for folder, _, names in os.walk(self.root):
            for name in names:
                key = (Path(folder) / name).relative_to(self.root).as_posix()
                if self.exists(key):
                    found.append(key)
        return sorted(found)


@dataclass
class Include:
    """One entry and what became of it before any search: I-2 to I-7."""

    index: int
    line: int
    raw: str | None
    code: str | None = None
    target: str | None = None
    stored: bool = False

    @property
    def discovered(self) -> bool:
        """An entry that is a path and not a repetition; the others are findings alone."""
        return self.code not in ("include_not_string", "include_empty", "include_duplicate")


@dataclass
class Document:
    """One document, read and resolved."""

    key: str
    data: bytes
    mime_type: str
    matter: Frontmatter
    declared: str | None = None
    includes: list[Include] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """Section 2: the worst finding decides."""
        severities = {finding.severity for finding in self.findings}
        if "error" in severities:
            return "invalid"
        return "warnings" if "warning" in severities else "valid"


def mime_type(key: str) -> str:
    """A local file has no stored type, so the extension decides, in any case."""
    name = key.rsplit("/", 1)[-1]
    stem, dot, extension = name.rpartition(".")
    return (
        MIME_TYPES.get(extension.lower(), "application/octet-stream")
        if stem and dot
        else "application/octet-stream"
    )


def load(store: Store, key: str) -> Document:
    """Read one document and resolve its includes against the store."""
    data = store.read(key)
    document = Document(key, data, mime_type(key), Frontmatter())
    if not document.mime_type.startswith("text/"):
        return document
    matter = document.matter = frontmatter.read(data)
    document.findings = list(matter.findings)
    if matter.canonical_path is not None:
        document.declared = paths.declared(matter.canonical_path)
        if document.declared is None:
            document.findings.append(Finding("canonical_path_invalid", matter.canonical_line))
        elif document.declared != key and not key.startswith(INBOX):
            document.findings.append(Finding("canonical_path_mismatch", matter.canonical_line))
    base = key if document.declared is None else document.declared
    seen: set[str] = set()
    for entry in matter.entries:
        include = Include(entry.index, entry.line, entry.raw, entry.code)
        document.includes.append(include)
        if include.code is not None or include.raw is None:
            continue
        _judge(store, document, include, base, seen)
        if include.code is not None:
            document.findings.append(Finding(include.code, include.line))
    return document


def _judge(store: Store, document: Document, include: Include, base: str, seen: set[str]) -> None:
    try:
        key = paths.resolve(include.raw or "", base)
    except paths.Refused as refused:
        include.code = refused.code
        return
    stored, differs = paths.locate(key, store.exists)
    include.stored = stored is not None
    include.target = key if stored is None else stored
    if include.target in seen:
        include.code = "include_duplicate"
    elif include.target == document.key:
        include.code = "self_include"
    elif stored is None:
        include.code = "target_missing"
    elif differs:
        include.code = "unicode_form_differs"
    seen.add(include.target)


# ---------------------------------------------------------------------------------------------- lint


def is_hidden(key: str) -> bool:
    """A dot-file, or anything below a dot-folder."""
    return any(name.startswith(".") for name in key.split("/"))


def lint(root: Path, paths: Sequence[Path]) -> dict[str, Any]:
    """The JSON of `groundwire lint --json`, without messages and hints."""
    store = Folder(root)
    wanted: set[str] = set()
    for path in paths:
        below = path.relative_to(root).as_posix()
        if path.is_file():
            wanted.add(below)
        else:
            wanted.update(
                key
                for key in store.listing()
                if (below == "." or key.startswith(f"{below}/"))
                # A dot-folder that is named is meant.
                and not is_hidden(key if below == "." else key.removeprefix(f"{below}/"))
                and mime_type(key).startswith("text/")
            )
    claims: dict[str, list[str]] = {}
    for key in store.listing():
        if not is_hidden(key):
            declared = load(store, key).declared
            if declared is not None:
                claims.setdefault(declared, []).append(key)
    documents = []
    for key in sorted(wanted):
        document = load(store, key)
        if document.declared is not None and len(claims.get(document.declared, [])) > 1:
            document.findings.append(Finding("canonical_path_conflict", document.matter.canonical_line))
        documents.append(
            {
                "path": key,
                "uri": _uri(root, key),
                "verdict": document.verdict,
                "includes": [
                    {
                        "raw": include.raw,
                        "index": include.index,
                        "line": include.line,
                        "target": None if include.target is None else _uri(root, include.target),
                        "code": include.code,
                    }
                    for include in document.includes
                ],
                "findings": [
                    {"code": finding.code, "severity": finding.severity, "line": finding.line}
                    for finding in document.findings
                ],
            }
        )
    verdicts = [document["verdict"] for document in documents]
    return {
        "documents": documents,
        "summary": {name: verdicts.count(name) for name in ("valid", "warnings", "invalid")},
    }


def _uri(root: Path, key: str) -> str:
    return f"local://{root.name}/{key}"


# -------------------------------------------------------------------------------------------- search


def resolve_policy(policy: Mapping[str, object]) -> dict[str, object]:
    """B-1: defaults, overrides, maxima; ValueError for nonsense."""
    resolved = dict(DEFAULTS)
    for name, value in policy.items():
        if name in RANGES:
            if not isinstance(value, int) or isinstance(value, bool) or value < RANGES[name][0]:
                raise ValueError(f"{name}: {value!r}")
            resolved[name] = min(value, RANGES[name][1])
        elif name == "onFetchError":
            if value not in ("skip", "abort"):
                raise ValueError(f"{name}: {value!r}")
            resolved[name] = value
        elif name == "traversableMimeTypes":
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise ValueError(f"{name}: {value!r}")
            resolved[name] = list(value)
        else:
            raise ValueError(f"unknown: {name}")
    return resolved


@dataclass
class Skip:
    """One include that was discovered and not attached."""

    parent: str
    raw: str
    reason: str
    code: str | None = None


@dataclass
class Edge:
    """One include that resolved."""

    source: str
    target: str
    raw: str
    depth: int


@dataclass
class Bundle:
    """What one root became."""

    root: Document
    policy: dict[str, object]
    included: list[Document] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    aborted: bool = False

    @property
    def complete(self) -> bool:
        """B-6: nothing lost, and no text document whose includes could not all be seen."""
        return all(skip.reason == "cycle" for skip in self.skipped) and not any(
            document.matter.loses_includes for document in (self.root, *self.included)
        )


@dataclass
class Request:
    """B-7: what all roots share. `visited` maps a key to the root that attempted it."""

    visited: dict[str, str]
    documents: int
    includes_bytes: int = 0


def expand_roots(store: Store, root_keys: Iterable[str], policy: Mapping[str, object]) -> list[Bundle]:
    """Every root that exists, once, in the order given."""
    resolved = resolve_policy(policy)
    keys = list(dict.fromkeys(root_keys))
    roots = [load(store, key) for key in keys if store.exists(key)]
    # All roots are fetched before the first is expanded, so all count as visited and as documents.
    request = Request({key: key for key in keys}, len(roots))
    return [_expand(store, root, resolved, request) for root in roots]


def _expand(store: Store, root: Document, policy: dict[str, Any], request: Request) -> Bundle:
    bundle = Bundle(root, policy)
    parents: dict[str, str] = {}
    left = policy["maxIncludeBytes"]
    queue = deque([(root, 0)])
    while queue:
        document, depth = queue.popleft()
        for include in document.includes:
            if not include.discovered:
                continue
            target, raw = include.target, include.raw or ""
            if target is not None:
                bundle.edges.append(Edge(document.key, target, raw, depth + 1))

            def skip(reason: str, code: str | None = None, at: Document = document, raw: str = raw) -> None:
                bundle.skipped.append(Skip(at.key, raw, reason, code))

            if bundle.aborted:
                skip("fetch_failed", "aborted")
            elif document.mime_type not in policy["traversableMimeTypes"]:
                skip("non_traversable_mime")
            elif target is None:
                skip("resolve_failed", include.code)
            elif target in request.visited:
                if target == document.key:
                    skip("cycle", "self_include")
                elif request.visited[target] != root.key:
                    skip("cycle", "already_attached")
                else:
                    skip("cycle", "ancestor" if target in _ancestors(document.key, parents) else "diamond")
            elif depth + 1 > policy["maxDepth"]:
                skip("depth_exceeded")
            elif 1 + len(bundle.included) >= policy["maxDocs"] or request.documents >= REQUEST_DOCS:
                skip("doc_budget_exceeded")
            else:
                request.visited[target] = root.key
                if not include.stored:
                    skip("fetch_failed", "not_found")
                    bundle.aborted = policy["onFetchError"] == "abort"
                    continue
                child = load(store, target)
                size = len(child.data)
                if size > min(left, REQUEST_BYTES - request.includes_bytes):
                    skip("byte_budget_exceeded")
                    continue
                left -= size
                request.includes_bytes += size
                request.documents += 1
                parents[target] = document.key
                bundle.included.append(child)
                queue.append((child, depth + 1))
    return bundle


def _ancestors(key: str, parents: Mapping[str, str]) -> list[str]:
    chain = []
    while key in parents:
        key = parents[key]
        chain.append(key)
    return chain


def search(files: Mapping[str, bytes], root_key: str, policy: Mapping[str, object]) -> dict[str, Any]:
    """One root over files in memory."""
    (bundle,) = expand_roots(Files(files), [root_key], policy)
    return _plain(bundle)


def search_roots(
    files: Mapping[str, bytes], root_keys: Sequence[str], policy: Mapping[str, object]
) -> dict[str, Any]:
    """B-7: several roots. `documents` is the order of attachment: roots first, then includes."""
    store = Files(files)
    bundles = expand_roots(store, root_keys, policy)
    failed = [key for key in dict.fromkeys(root_keys) if not store.exists(key)]
    return {
        "bundles": [{"root": bundle.root.key, **_plain(bundle)} for bundle in bundles],
        "documents": [bundle.root.key for bundle in bundles]
        + [document.key for bundle in bundles for document in bundle.included],
        "failed": failed,
        # A root that was asked for and is not there is a loss like any other.
        "complete": not failed and all(bundle.complete for bundle in bundles),
        "aborted": any(bundle.aborted for bundle in bundles),
    }


def _plain(bundle: Bundle) -> dict[str, Any]:
    return {
        "included": [document.key for document in bundle.included],
        "skipped": [(skip.parent, skip.raw, skip.reason, skip.code) for skip in bundle.skipped],
        "edges": [(edge.source, edge.target, edge.depth) for edge in bundle.edges],
        "complete": bundle.complete,
        "aborted": bundle.aborted,
    }


# ------------------------------------------------------------------------------------------- explain


def explain(root: Path, doc: Path, policy: Mapping[str, object]) -> dict[str, Any]:
    """The JSON of `groundwire explain --json DOC`: one document, on its own."""
    (bundle,) = expand_roots(Folder(root), [doc.relative_to(root).as_posix()], policy)
    return _bundle_json(root, bundle)


def _bundle_json(root: Path, bundle: Bundle) -> dict[str, Any]:
    documents = [bundle.root, *bundle.included]
    described = [_document_json(root, document) for document in documents]
    identity = "\n".join(f"{item['uri']} {item['sha256']}" for item in described)
    return {
        "root": described[0],
        "rootPointer": _pointer(root, bundle.root.key),
        "included": described[1:],
        "includedPointers": [_pointer(root, document.key) for document in bundle.included],
        "edges": [
            {
                "from": _uri(root, edge.source),
                "to": _uri(root, edge.target),
                "relativePath": edge.raw,
                "depth": edge.depth,
            }
            for edge in bundle.edges
        ],
        "skipped": [
            {
                "parentUri": _uri(root, skip.parent),
                "relativePath": skip.raw,
                "reason": skip.reason,
                "code": skip.code,
                "detail": None,
            }
            for skip in bundle.skipped
        ],
        "policy": bundle.policy,
        "complete": bundle.complete,
        "aborted": bundle.aborted,
        "bundleId": hashlib.sha256(identity.encode()).hexdigest(),
    }


def _document_json(root: Path, document: Document) -> dict[str, Any]:
    return {
        "uri": _uri(root, document.key),
        "displayName": document.key.rsplit("/", 1)[-1],
        "mimeType": document.mime_type,
        "sizeBytes": len(document.data),
        "sha256": hashlib.sha256(document.data).hexdigest(),
        "findings": [
            {"code": finding.code, "severity": finding.severity, "line": finding.line}
            for finding in document.findings
        ],
    }


def _pointer(root: Path, key: str) -> dict[str, str]:
    return {"sourceType": "local", "localRoot": root.name, "localPath": key}
