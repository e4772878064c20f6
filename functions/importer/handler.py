"""Verdict events → SQS → here: a File Search store holds what the documents now are (X-10, G-2).

What the service will never take is recorded and acknowledged; what did not answer comes again (X-8).
"""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools import Logger, Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from groundwire.deadline import Deadline
from groundwire.debugging import json_line
from groundwire.errors import FetchError, ImportRefused, frames
from importer.messages import Import, Refresh, Sweep, UnknownMessage, task
from importer.wiring import Wired, wired

logger = Logger(service="importer", json_serializer=json_line)
metrics = Metrics(namespace="Groundwire", service="importer")
_processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)

_MARGIN_S = 15.0
"""What is left for the calls that follow the last one that may be waited for."""


@logger.inject_lambda_context(log_event=False, clear_state=True)
@metrics.log_metrics(raise_on_empty_metrics=False, capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """The ids of the records that must come again."""
    records = event.get("Records") or ()
    _count("Records", len(records))
    if not records:
        return {"batchItemFailures": []}  # Powertools takes it for another kind of event
    return process_partial_response(event, import_record, _processor, context)


def import_record(record: SQSRecord, lambda_context: LambdaContext) -> None:
    """Does what one message asks for; raises where it must come again."""
    about: dict[str, Any] = {"message_id": record.message_id}
    deadline = Deadline.after(lambda_context.get_remaining_time_in_millis() / 1000 - _MARGIN_S)
    try:
        _do(record, deadline, about)
    except FetchError as error:
        logger.warning("will be retried", code=error.code, detail=error.detail, **about)
        _count("RecordsFailed")
        raise
    except Exception as error:
        # The frames only: an exception's text may hold what a document says.
        logger.error("unexpected error", error=type(error).__name__, at=frames(error), **about)
        _count("RecordsFailed")
        raise


def _do(record: SQSRecord, deadline: Deadline, about: dict[str, Any]) -> None:
    """`about` is told what the message is about, for the log of what goes wrong."""
    function = wired()
    try:
        wanted = task(record.body, function.roots)
    except UnknownMessage as error:
        function.dead_letters.keep(record.body, str(error))
        logger.warning("message not understood", reason=str(error), **about)
        _count("UnknownMessages")
        return
    match wanted:
        case Import():
            _import(function, wanted, deadline, about)
        case Sweep():
            _sweep(function, wanted, deadline)
        case Refresh():
            about["store"] = wanted.store
            _refresh(function, wanted, deadline)


def _import(function: Wired, wanted: Import, deadline: Deadline, about: dict[str, Any]) -> None:
    if function.importer is None or wanted.location is None:
        logger.info("nothing to import", **about)
        _count("ForeignDocuments")
        return
    about["uri"] = wanted.location.uri
    try:
        done = function.importer.document_changed(
            wanted.location, message=about["message_id"], deadline=deadline
        )
    except ImportRefused as error:
        logger.warning("the service refuses it", code=error.code, detail=error.detail, **about)
        _count("DocumentsRefused")
        return
    logger.info("document", outcome=done.outcome, reason=done.reason, **about)
    _count(f"Documents{done.outcome.capitalize()}")
    if done.reason:
        with single_metric("Skipped", MetricUnit.Count, 1, namespace="Groundwire") as metric:
            metric.add_dimension("service", "importer")
            metric.add_dimension("reason", done.reason)


def _sweep(function: Wired, wanted: Sweep, deadline: Deadline) -> None:
    if function.importer is None:
        logger.info("nothing to sweep")
        return
    swept = function.importer.sweep(wanted.cursor, deadline=deadline)
    _go_on(swept.cursor, lambda cursor: function.queue.sweep(cursor))
    logger.info("swept", seen=swept.seen, removed=swept.removed, complete=swept.cursor is None)
    _count("UploadsSwept", swept.removed)


def _refresh(function: Wired, wanted: Refresh, deadline: Deadline) -> None:
    if wanted.store not in function.listed_stores:
        logger.info("the store is not to be listed", store=wanted.store)
        return
    listing = function.list_store(wanted.store, deadline)
    _go_on(listing.cursor, lambda _: function.queue.refresh(wanted.store))
    logger.info("listed", store=wanted.store, complete=listing.cursor is None)
    _count("StoresListed", int(listing.cursor is None))


def _go_on(cursor: str | None, ask: Callable[[str], None]) -> None:
    """Asks for the rest where the function's time was up."""
    if cursor is not None:
        ask(cursor)


def _count(name: str, number: int = 1) -> None:
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
