"""Who asked, and the record of it: one for each request, refused ones too (Z-3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Request

from groundwire.errors import GroundwireError
from groundwire.roots import Caller
from groundwire_api.caller import caller_from


class Refused(Exception):
    """Nobody vouches for the caller."""


def caller_of(request: Request) -> Caller:
    """The caller of a request; Refused where no authorizer vouches for one."""
    caller = caller_from(request.resolved_event.get("requestContext") or {})
    if caller is None:
        raise Refused
    return caller


@contextmanager
def audited(logger: Logger, action: str, caller: Caller, **asked: Any) -> Iterator[dict[str, Any]]:
    """One record: who, which documents, what became of it; the caller of this adds the documents."""
    record: dict[str, Any] = {"outcome": "answered"}
    try:
        yield record
    except GroundwireError as error:
        record["outcome"] = getattr(error, "code", "invalid_request")
        raise
    except Exception:
        record["outcome"] = "internal_error"
        raise
    finally:
        logger.info("audit", action=action, principal=caller.principal, **asked, **record)
