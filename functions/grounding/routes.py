"""The HTTPS API: each route parses, calls one use case and shapes the answer.

`routes()` builds a fresh router, since one must not be shared by two resolvers.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Annotated, Any, Literal

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Depends, Request, Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body, Query

from grounding.answers import (
    composed_json,
    dependents_json,
    document_status_json,
    graph_json,
    result_json,
    validated_json,
)
from grounding.description.page import docs_page
from grounding.models import (
    ComposeOverrides,
    ComposeRequest,
    GroundRequest,
    RequestContext,
    ValidateRequest,
    given,
)
from grounding.wiring import Wired
from groundwire import __version__
from groundwire.composition import CompositionBundle
from groundwire.deadline import Deadline
from groundwire.debugging import debugging, namespaces
from groundwire.delivery import Attachment, UseFilesApi
from groundwire.dependents import CURSOR, dependents_of
from groundwire.documents import Context
from groundwire.errors import DocumentForbidden, DocumentNotFound, InvalidRequest
from groundwire.fetching import locate
from groundwire.graph import neighbourhood
from groundwire.limits import DEADLINE_MARGIN_MS, DELIVERY_MARGIN_MS, GRAPH_NODES, MAX_DEPTH, MAX_TIMEOUT_MS
from groundwire.nodes import Node
from groundwire.pointers import CanonicalDocumentPointer, Location, spelled
from groundwire.resolution import pointer_from, pointer_from_uri, sources
from groundwire.roots import Caller, StorageRoots, may_read
from groundwire.uploading import place_for
from groundwire.validating import told, validated
from groundwire_api import asking
from groundwire_api.answering import encode, json_answer, text_answer
from groundwire_api.asking import caller_of
from groundwire_api.caller import caller_from

Json = dict[str, Any]
DEBUG_HEADER = "x-groundwire-debug"


def routes(
    wired: Callable[[], Wired], logger: Logger, count: Callable[[str, int], None], schema: Callable[[], str]
) -> Router:
    """The routes of one resolver.

    `wired` makes the use cases on first use, `count` adds to a metric, `schema` gives the OpenAPI.
    """
    router = Router()  # type: ignore[no-untyped-call]

    def debug_of(request: Request) -> frozenset[str]:
        """The debug namespaces asked for, which only a caller named for it gets (P-3)."""
        asked = namespaces(request.headers.get(DEBUG_HEADER))
        caller = caller_from(request.resolved_event.get("requestContext") or {})
        allowed = caller is not None and any(name in wired().debug_callers for name in caller.names())
        return asked if allowed else frozenset()

    def token_of(request: Request) -> str | None:
        """The token that API Gateway has checked, for stores that are read on the caller's behalf (Z-4)."""
        authorizer = (request.resolved_event.get("requestContext") or {}).get("authorizer") or {}
        scheme, _, token = (request.headers.get("authorization") or "").partition(" ")
        return token.strip() if authorizer.get("jwt") and scheme.lower() == "bearer" else None

    def time_left(margin_ms: int = DEADLINE_MARGIN_MS) -> float:
        remaining: Callable[[], int] | None = getattr(
            router.lambda_context, "get_remaining_time_in_millis", None
        )
        left = remaining() - margin_ms if remaining else MAX_TIMEOUT_MS
        return max(0.0, left / 1000)

    def fitting(
        shape: Json, bodies: Sequence[Attachment] = (), use_files_api: UseFilesApi = "never"
    ) -> Response[str]:
        """The answer, in an envelope that the platform lets pass (G-7)."""
        deadline = Deadline.after(time_left(DELIVERY_MARGIN_MS))
        fit = wired().delivery.fit
        return text_answer(fit(shape, bodies, encode, deadline=deadline, use_files_api=use_files_api))

    def count_skips(bundle: CompositionBundle) -> None:
        """Metrics by reason, of which there are eight; never by document."""
        for reason, number in Counter(skip.reason for skip in bundle.skipped).items():
            count(f"Skipped.{reason}", number)

    def audited(
        action: str, caller: Caller, ctx: RequestContext | None = None
    ) -> AbstractContextManager[Json]:
        asked: Json = {"user_id": ctx.user_id, "auditing_id": ctx.auditing_id} if ctx else {}
        return asking.audited(logger, action, caller, **asked)

    @router.post("/v1/ground", summary="Ground search results in whole documents")
    def ground(
        request: Annotated[GroundRequest, Body()],
        caller: Annotated[Caller, Depends(caller_of)],
        debug: Annotated[frozenset[str], Depends(debug_of)],
        token: Annotated[str | None, Depends(token_of)],
    ) -> Response[str]:
        with audited("ground", caller, request.ctx) as record, debugging(debug):
            result = wired().service.prepare_from_sources(
                sources(given(request)),
                _context(request.ctx, caller, token),
                given(request.overrides),
                time_left=time_left(),
            )
            documents = result.all_documents_for_attachment
            record |= {
                "documents": [[each.uri, each.version] for each in documents],
                "sources": [
                    [each.hidden, "forbidden"] if each.hidden else [each.uri, each.code]
                    for each in result.sources
                ],
                "complete": result.complete,
            }
        count("IndexStale", len(result.index_stale))
        if result.index_error:
            logger.warning("index not read", error=result.index_error)
            count("IndexUnavailable", 1)
        if result.lookup_errors:
            logger.warning("sources not looked up", errors=result.lookup_errors)
            count("LookupsFailed", len(result.lookup_errors))
        for bundle in result.composition_bundles or ():
            count_skips(bundle)
        shape = result_json(result, bodies=not request.dry_run)
        bodies = list(zip(shape["allDocumentsForAttachment"], documents, strict=True))
        return fitting(shape, [] if request.dry_run else bodies, _use_files_api(request.overrides))

    @router.post("/v1/compose", summary="One document with everything it includes")
    def compose(
        request: Annotated[ComposeRequest, Body()],
        caller: Annotated[Caller, Depends(caller_of)],
        debug: Annotated[frozenset[str], Depends(debug_of)],
        token: Annotated[str | None, Depends(token_of)],
    ) -> Response[str]:
        with audited("compose", caller, request.ctx) as record, debugging(debug):
            pointer = _pointer(request, wired().roots)
            record["documents"] = [[spelled(pointer), None]]
            bundle = wired().service.prepare_one(
                pointer,
                _context(request.ctx, caller, token),
                given(request.overrides),
                time_left=time_left(),
            )
            record |= {
                "documents": [[each.uri, each.version] for each in bundle.all_documents],
                "complete": bundle.complete,
            }
        count_skips(bundle)
        shape = composed_json(bundle, bodies=not request.dry_run)
        bodies = list(zip([shape["root"], *shape["included"]], bundle.all_documents, strict=True))
        return fitting(shape, [] if request.dry_run else bodies, _use_files_api(request.overrides))

    @router.post("/v1/validate", summary="What would be found in a document")
    def validate(
        request: Annotated[ValidateRequest, Body()], caller: Annotated[Caller, Depends(caller_of)]
    ) -> Response[str]:
        with audited("validate", caller) as record:
            location = place_for(request.path, request.root, wired().roots, caller, may_read)
            record["documents"] = [[location.uri, None]]
            deadline = Deadline.after(time_left())
            node = validated(location, request.content.encode(), wired().index, deadline=deadline)
            return fitting(validated_json(node))

    @router.get("/v1/documents", summary="What the index knows of a document")
    def document(
        uri: Annotated[str, Query(description="Canonical URI, as s3://bucket/key")],
        caller: Annotated[Caller, Depends(caller_of)],
    ) -> Response[str]:
        with audited("document", caller) as record:
            node = known(uri, caller, record)
            index, roots = wired().index, wired().roots
            return json_answer(
                document_status_json(told(node, index, roots, deadline=Deadline.after(time_left())))
            )

    @router.get("/v1/graph", summary="The include graph around a document")
    def graph(
        uri: Annotated[str, Query(description="Canonical URI, as s3://bucket/key")],
        caller: Annotated[Caller, Depends(caller_of)],
        depth: Annotated[int, Query(ge=0, le=MAX_DEPTH)] = 2,
        direction: Annotated[Literal["includes", "dependents"], Query()] = "includes",
    ) -> Response[str]:
        with audited("graph", caller) as record:
            node = known(uri, caller, record)
            deadline = Deadline.after(time_left())
            around = neighbourhood(node, wired().index, direction, depth, deadline)
            return fitting(graph_json(around))

    @router.get("/v1/dependents", summary="Who includes a document, and why")
    def dependents(
        uri: Annotated[str, Query(description="Canonical URI; the document need not exist any more")],
        caller: Annotated[Caller, Depends(caller_of)],
        transitive: Annotated[bool, Query()] = False,
        limit: Annotated[int, Query(ge=1, le=GRAPH_NODES)] = 100,
        cursor: Annotated[
            str | None, Query(description="From the previous page", json_schema_extra={"pattern": CURSOR})
        ] = None,
    ) -> Response[str]:
        with audited("dependents", caller) as record:
            location = readable(uri, caller, record)
            deadline = Deadline.after(time_left())
            page = dependents_of(
                location, wired().index, deadline, transitive=transitive, limit=limit, cursor=cursor
            )
            if not page.dependents and cursor is None:
                known(uri, caller, record)
            return json_answer(dependents_json(location, page))

    def readable(uri: str, caller: Caller, record: Json) -> Location:
        """Where `uri` leads; DocumentForbidden where the caller may not read there."""
        location: Location = locate(pointer_from_uri(uri, wired().roots), wired().roots)
        record["documents"] = [[location.uri, None]]
        if not may_read(caller, location.root):
            raise DocumentForbidden(location.uri, "the caller is no reader of its storage root")
        if location.root.delegated:  # whatever was indexed before it was
            raise DocumentForbidden(location.uri, "it is read by each caller's own rights only")
        return location

    def known(uri: str, caller: Caller, record: Json) -> Node:
        """The living node at `uri`; DocumentForbidden or DocumentNotFound, alike to the caller."""
        location = readable(uri, caller, record)
        nodes = wired().index.nodes([location], deadline=Deadline.after(time_left()), consistent=True)
        node = nodes.get(location.uri)
        if node is None or not node.exists:
            raise DocumentNotFound(location.uri, "the index knows no such document")
        record["documents"] = [[location.uri, node.version]]
        return node

    @router.get("/healthz", summary="Whether the function runs")
    def healthz() -> Response[str]:
        return json_answer({"status": "ok", "version": __version__})

    @router.get("/openapi.json", summary="This description")
    def openapi() -> Response[str]:
        return Response(status_code=HTTPStatus.OK, content_type="application/json", body=schema())

    @router.get("/docs", summary="This description, to read", include_in_schema=False)
    def docs() -> Response[str]:
        page, headers = docs_page()
        return Response(status_code=HTTPStatus.OK, content_type="text/html", body=page, headers=headers)

    return router


def _context(ctx: RequestContext, caller: Caller, token: str | None) -> Context:
    return Context(ctx.user_id or "", ctx.auditing_id or "", caller, token)


def _use_files_api(overrides: ComposeOverrides) -> UseFilesApi:
    options = overrides.prepare_document_options
    return (options and options.use_files_api) or "never"


def _pointer(request: ComposeRequest, roots: StorageRoots) -> CanonicalDocumentPointer:
    if (request.uri is None) == (request.pointer is None):
        raise InvalidRequest("uri", "give either uri or pointer")
    if request.uri is not None:
        return pointer_from_uri(request.uri, roots)
    return pointer_from(request.pointer or {}, "pointer")
