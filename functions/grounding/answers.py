"""What the HTTPS API gives: the seeds' shapes, with refusals uniform to the outside (Z-1)."""

from typing import Any

from groundwire.composition import CompositionBundle
from groundwire.dependents import Page
from groundwire.graph import Neighbourhood
from groundwire.grounding import CanonicalGroundingResult, SourceOutcome
from groundwire.nodes import Node
from groundwire.pointers import Location
from groundwire.shapes import bundle_json, document_json, findings_json, include_json, pointer_json

Json = dict[str, Any]
NO_SUCH_DOCUMENT = "no such document"


def result_json(result: CanonicalGroundingResult, *, bodies: bool = True) -> Json:
    """The seed's CanonicalGroundingResult; bodies stand once, in `allDocumentsForAttachment`."""
    bundles = result.composition_bundles
    return {
        "pointers": [pointer_json(each) for each in result.pointers],
        "preparedDocuments": [document_json(each, body=False) for each in result.prepared_documents],
        "compositionBundles": bundles and [composed_json(each, bodies=False) for each in bundles],
        "allDocumentsForAttachment": [
            document_json(each, body=bodies) for each in result.all_documents_for_attachment
        ],
        "sources": [_source_json(each) for each in result.sources],
        "complete": result.complete,
        "bundleId": result.bundle_id,
        "timings": dict(result.timings),
        "indexStale": list(result.index_stale),
        "lookupErrors": list(result.lookup_errors),
    }


def composed_json(bundle: CompositionBundle, *, bodies: bool = True) -> Json:
    """A bundle, in which a document the caller may not read looks like one that is not there."""
    shape = bundle_json(bundle, bodies=bodies)
    for skip in shape["skipped"]:
        skip["code"], skip["detail"] = _uniform(skip["code"], skip["detail"])
    return shape


def _source_json(source: SourceOutcome) -> Json:
    code, detail = _uniform(source.code, source.detail)
    shape: Json = {"index": source.index, "status": source.status, "uri": source.uri}
    return shape | {"code": code, "detail": detail}


def _uniform(code: str | None, detail: str | None) -> tuple[str | None, str | None]:
    return ("not_found", NO_SUCH_DOCUMENT) if code in ("not_found", "forbidden") else (code, detail)


def graph_json(around: Neighbourhood) -> Json:
    """The graph around a document; `exists` is false for one that is named but not there."""
    return {
        "uri": around.centre,
        "direction": around.direction,
        "depth": around.depth,
        "nodes": [
            {
                "uri": uri,
                "exists": node is not None,
                "title": node.title if node else None,
                "mimeType": node.mime_type if node else None,
                "sizeBytes": node.size_bytes if node else None,
                "version": node.version if node else None,
            }
            for uri, node in around.nodes.items()
        ],
        "edges": [
            {"from": e.from_uri, "to": e.to_uri, "relativePath": e.relative_path, "depth": e.depth}
            for e in around.edges
        ],
        "truncated": around.truncated,
    }


def dependents_json(location: Location, page: Page) -> Json:
    """A page of the documents that include another; `why` is the chain that leads there."""
    return {
        "uri": location.uri,
        "dependents": [
            {
                "uri": each.node.location.uri,
                "title": each.node.title,
                "verdict": each.node.verdict,
                "distance": each.distance,
                "why": list(each.why),
            }
            for each in page.dependents
        ],
        "cursor": page.cursor,
    }


def validated_json(node: Node) -> Json:
    """What would be found in a document at this place."""
    return {
        "path": node.location.relative_path,
        "uri": node.location.uri,
        "verdict": node.verdict,
        "title": node.title,
        "canonicalPath": node.canonical_path,
        "includes": [include_json(each, node.location) for each in node.includes],
        "findings": findings_json(node.findings),
        "findingCount": node.finding_count,
    }


def document_status_json(node: Node) -> Json:
    """What the index knows of a document."""
    return {
        "uri": node.location.uri,
        "verdict": node.verdict,
        "findings": findings_json(node.findings),
        "findingCount": node.finding_count,
        "title": node.title,
        "canonicalPath": node.canonical_path,
        "mimeType": node.mime_type,
        "sizeBytes": node.size_bytes,
        "version": node.version,
        "versionId": node.version_id,
        "includes": [include_json(each, node.location) for each in node.includes],
        "indexedAt": node.indexed_at,
    }
