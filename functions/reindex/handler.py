"""A run's two steps: `handler` indexes a batch of listed objects, `reconcile` then looks for what is gone.

Both may run beside live events and beside each other, and again after any failure (X-9). What they mended is
the metric `Drift`: documents of which the index did not say what the bucket says.
"""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import BaseModel, ConfigDict

from groundwire.deadline import Deadline
from groundwire.debugging import json_line
from groundwire.errors import Unavailable
from groundwire.limits import SWEEP_PAGE_S
from groundwire.reindexing import Tally
from reindex.batches import locations, root_named
from reindex.wiring import wired

logger = Logger(service="reindex", json_serializer=json_line)
metrics = Metrics(namespace="Groundwire", service="reindex")

_BATCH_MARGIN_S = 15.0
"""What a look that was begun may still take: a few calls, each with its own timeout."""
_FAILURES_NAMED = 20


@logger.inject_lambda_context(log_event=False, clear_state=True)
@metrics.log_metrics(raise_on_empty_metrics=False, capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """What became of a batch's documents, in numbers, and which could not be looked at.

    Unavailable, with all others done, where some are worth a retry.
    """
    _count("Batches", 1)
    function = wired()
    listed = locations(event, function.roots)
    tally = function.reindexing.look(listed, Deadline.after(_left(context) - _BATCH_MARGIN_S))
    _account_for(tally)
    return tally.as_json()


class _State(BaseModel):
    """What the state machine carries from page to page."""

    model_config = ConfigDict(extra="ignore")

    root: str
    prefix: str = ""
    cursor: str | None = None
    counts: dict[str, int] = {}
    failures: list[dict[str, str]] = []
    results: Any = None


@logger.inject_lambda_context(log_event=False, clear_state=True)
@metrics.log_metrics(raise_on_empty_metrics=False, capture_cold_start_metric=True)
def reconcile(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """The state with what was found added: go on where `cursor` is not None.

    `counts` also has what the workers reported, and `failures` the first documents that failed.
    """
    _count("Sweeps", 1)
    state, function = _State.model_validate(event), wired()
    root = root_named(state.root, function.roots)
    total = function.results.tally(state.results)
    cursor, pages = state.cursor, 0
    # A page that was begun may take its time; then there is still some for the answer.
    deadline = Deadline.after(_left(context) - SWEEP_PAGE_S - _BATCH_MARGIN_S)
    try:
        sweeping = function.reindexing.sweep(root, root.full_key(state.prefix), cursor, deadline)
        for tally, following in sweeping:
            _account_for(tally)
            total, cursor, pages = total + tally, following, pages + 1
    except Unavailable as error:
        if not pages:
            raise
        logger.warning("will be retried", root=root.name, code=error.code, detail=error.detail)
    counts = total.as_json()
    failed = counts.pop("failed")
    counts["failed"] = len(failed)
    return {
        "root": state.root,
        "prefix": state.prefix,
        "cursor": cursor,
        "counts": {name: state.counts.get(name, 0) + number for name, number in counts.items()},
        "failures": [*state.failures, *failed][:_FAILURES_NAMED],
    }


def _left(context: LambdaContext) -> float:
    return context.get_remaining_time_in_millis() / 1000


def _account_for(tally: Tally) -> None:
    logger.info("documents", extra=dict(tally.counts))
    for key, code in tally.failed:
        logger.warning("document failed", key=key, code=code)
    _count("Drift", tally.drift)
    _count("DocumentsFailed", len(tally.failed))


def _count(name: str, number: int) -> None:
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
