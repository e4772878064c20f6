"""The one route of the upload API: it says where a document may be put, and never touches one.

`routes()` builds a fresh router, since one must not be shared by two resolvers.
"""

from collections.abc import Callable
from typing import Annotated

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Depends, Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body

from groundwire.media_types import media_type
from groundwire.roots import Caller
from groundwire.uploading import UploadTerms, upload_place
from groundwire_api.answering import json_answer
from groundwire_api.asking import audited, caller_of
from groundwire_api.models import UploadRequest
from uploads.wiring import Wired


def routes(wired: Callable[[], Wired], logger: Logger) -> Router:
    """The routes of one resolver; `wired` makes what they need on first use."""
    router = Router()  # type: ignore[no-untyped-call]

    @router.post("/v1/uploads", summary="Leave to upload one document to where it belongs")
    def upload(
        request: Annotated[UploadRequest, Body()], caller: Annotated[Caller, Depends(caller_of)]
    ) -> Response[str]:
        with audited(logger, "upload", caller) as record:
            location = upload_place(request.path, request.root, wired().roots, caller)
            record["documents"] = [[location.uri, None]]
            content_type = request.content_type or media_type(None, location.key)
            terms = UploadTerms(content_type, request.size_bytes, request.sha256)
            leave = wired().signer.sign(location, terms)
        return json_answer(
            {
                "uri": location.uri,
                "url": leave.url,
                "method": "PUT",
                "headers": leave.headers,
                "expiresAt": leave.expires_at.isoformat(timespec="seconds"),
            }
        )

    return router
