"""S3 → EventBridge → SQS → here: each record makes the index equal to what its object now says.

Only an unavailable dependency fails a record; one bad record never fails its batch (X-8, docs/faults.md).
"""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from groundwire.debugging import json_line
from groundwire.errors import FetchError, frames
from groundwire.pointers import Location
from indexer.messages import Heal, Learn, Look, Task, UnknownMessage, tasks
from indexer.wiring import Wired, wired

logger = Logger(service="indexer", json_serializer=json_line)
metrics = Metrics(namespace="Groundwire", service="indexer")
_processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)


@logger.inject_lambda_context(log_event=False, clear_state=True)
@metrics.log_metrics(raise_on_empty_metrics=False, capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> Any:
    """The ids of the records that must come again."""
    records = event.get("Records") or ()
    _count("Records", len(records))
    if not records:
        return {"batchItemFailures": []}  # Powertools takes it for another kind of event
    return process_partial_response(event, index_record, _processor, context)


def index_record(record: SQSRecord) -> None:
    """Indexes what one message is about; raises where it must come again."""
    about = {"message_id": record.message_id}
    try:
        _index(record, about)
    except FetchError as error:
        logger.warning("will be retried", extra={"code": error.code, "detail": error.detail, **about})
        _count("RecordsFailed")
        raise
    except Exception as error:
        # The frames only: an exception's text may hold what a document says.
        logger.error("unexpected error", extra={"error": type(error).__name__, "at": frames(error), **about})
        _count("RecordsFailed")
        raise


def _index(record: SQSRecord, about: dict[str, str]) -> None:
    """`about` is told which document it is about, for the log of what goes wrong."""
    function = wired()
    try:
        wanted = tasks(record.body, function.roots)
    except UnknownMessage as error:
        function.dead_letters.keep(record.body, str(error))
        logger.warning("message not understood", extra={"reason": str(error), **about})
        _count("UnknownMessages")
        return
    if not wanted:
        logger.info("nothing of a storage root", extra=about)
        _count("ForeignObjects")
    for task in wanted:
        about["uri"] = _location(task).uri
        _run(function, task)


def _location(task: Task) -> Location:
    match task:
        case Look():
            return task.location
        case Heal():
            return task.target
        case Learn():
            return task.sighting.location


def _run(function: Wired, task: Task) -> None:
    uri = _location(task).uri
    match task:
        case Heal():
            healed = function.indexer.heal(task.target, task.cursor)
            logger.info("dependents", uri=uri, settled=healed)
            _count("DependentsSettled", healed)
        case Learn():
            outcome: str = function.learner.learn(task.sighting)
            logger.info("sighting", uri=uri, outcome=outcome)
            _count(f"Sightings{outcome.capitalize()}")
        case Look():
            outcome = function.indexer.object_changed(task.location, task.sequencer)
            logger.info("object", uri=uri, outcome=outcome)
            _count(f"Documents{outcome.capitalize()}")


def _count(name: str, number: int = 1) -> None:
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
