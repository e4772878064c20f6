"""The one map from DynamoDB's errors to ours: what is worth a retry is Unavailable, the rest is a bug."""

import contextlib
import time
from collections.abc import Iterator
from random import random

from botocore.exceptions import BotoCoreError, ClientError

from groundwire.deadline import Deadline
from groundwire.errors import Throttled, Unavailable

ATTEMPTS = 8
"""How often what the table left undone is asked for again."""

_THROTTLED = frozenset(
    {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
)
_UNAVAILABLE = frozenset({"InternalServerError", "TransactionConflictException", "ServiceUnavailable"})
_REFUSED = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "UnrecognizedClientException",
        "ResourceNotFoundException",
    }
)
"""Of rights and credentials: an operator mends them, and what was asked for can be asked for again."""


@contextlib.contextmanager
def dynamo_errors(table: str) -> Iterator[None]:
    """Around calls to the table: Throttled or Unavailable where they may succeed later."""
    try:
        yield
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _THROTTLED:
            raise Throttled(table, code) from error
        if code in _UNAVAILABLE | _REFUSED:
            raise Unavailable(table, code) from error
        raise
    except BotoCoreError as error:
        raise Unavailable(table, f"no answer ({type(error).__name__})") from error


def pause(attempt: int) -> float:
    """Seconds to wait before asking again, growing and with jitter."""
    return float(0.05 * 2**attempt * random())  # noqa: S311 - jitter, not a secret


def back_off(attempt: int, deadline: Deadline) -> None:
    """Waits before asking again, at most what the deadline leaves."""
    time.sleep(min(pause(attempt), deadline.left()))
