"""The JSON of the seeds' types: camelCase, the same from the command line and over HTTPS.

Pointers keep the seed's own snake_case. A body is written once, where the caller is told to look for it.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from groundwire.composition import CompositionBundle, policy_json
from groundwire.documents import PreparedDocument
from groundwire.findings import Finding
from groundwire.includes import Include
from groundwire.pointers import CanonicalDocumentPointer, Location

Json = dict[str, Any]


def pointer_json(pointer: CanonicalDocumentPointer) -> Json:
    """The pointer's fields that are known, with its `source_type`."""
    values = {each.name: getattr(pointer, each.name) for each in fields(pointer)}
    return {
        "source_type": pointer.source_type,
        **{name: value for name, value in values.items() if value is not None},
    }


def finding_json(finding: Finding) -> Json:
    """The finding under the names of spec section 10."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "line": finding.line,
        "column": finding.column,
        "message": finding.message,
        "hint": finding.hint,
        **({"movedTo": finding.moved_to} if finding.moved_to else {}),
    }


def findings_json(findings: Iterable[Finding]) -> list[Json]:
    """Findings in the order of the file."""
    ordered = sorted(findings, key=lambda each: (each.line or 0, each.column or 0))
    return [finding_json(each) for each in ordered]


def include_json(include: Include, location: Location) -> Json:
    """One entry of `includes`; `target` is a URI, also of a missing document, or null."""
    return {
        "raw": include.raw,
        "index": include.index,
        "line": include.line,
        "target": location.at(include.target).uri if include.target is not None else None,
        "code": include.code,
    }


def document_json(document: PreparedDocument, *, body: bool) -> Json:
    """A prepared document (G-6); with `body`, its `text` or its `geminiDocument`."""
    shape: Json = {
        "uri": document.uri,
        "pointer": pointer_json(document.pointer),
        "displayName": document.display_name,
        "mimeType": document.mime_type,
        "sizeBytes": document.size_bytes,
        "version": document.version,
        "sha256": document.sha256,
        "findings": findings_json(document.findings),
    }
    if body:
        if document.text is not None:
            shape["text"] = document.text
        else:
            shape["geminiDocument"] = document.gemini_document
    return shape


def bundle_json(bundle: CompositionBundle, *, bodies: bool) -> Json:
    """A bundle of section 6; with `bodies`, `root` and `included` carry their documents' content."""
    return {
        "root": document_json(bundle.root, body=bodies),
        "rootPointer": pointer_json(bundle.root_pointer),
        "included": [document_json(each, body=bodies) for each in bundle.included],
        "includedPointers": [pointer_json(each) for each in bundle.included_pointers],
        "edges": [
            {"from": e.from_uri, "to": e.to_uri, "relativePath": e.relative_path, "depth": e.depth}
            for e in bundle.edges
        ],
        "skipped": [
            {
                "parentUri": s.parent_uri,
                "relativePath": s.relative_path,
                "reason": s.reason,
                "code": s.code,
                "detail": s.detail,
                "line": s.line,
            }
            for s in bundle.skipped
        ],
        "policy": policy_json(bundle.policy),
        "complete": bundle.complete,
        "aborted": bundle.aborted,
        "bundleId": bundle.bundle_id,
    }
