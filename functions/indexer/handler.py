"""S3 → EventBridge → SQS → here: each record makes the index equal to what its object now says.

Only an unavailable dependency fails a record; one bad record never fails its batch (X-8).
"""

from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from groundwire.errors import Unavailable
from groundwire.indexing import Indexer
from indexer.messages import Heal, Look, UnknownMessage, tasks
from indexer.wiring import wired

logger = Logger(service="indexer")
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
    """Indexes what one message is about; raises Unavailable where it must come again."""
    function = wired()
    try:
        wanted = tasks(record.body, function.roots)
    except UnknownMessage as error:
        function.dead_letters.keep(record.body, str(error))
        logger.warning("message not understood", message_id=record.message_id, reason=str(error))
        _count("UnknownMessages")
        return
    if not wanted:
        logger.info("nothing of a storage root", message_id=record.message_id)
        _count("ForeignObjects")
    for task in wanted:
        location = task.target if isinstance(task, Heal) else task.location
        try:
            _run(function.indexer, task)
        except Unavailable as error:
            logger.warning("will be retried", uri=location.uri, code=error.code, detail=error.detail)
            raise


def _run(indexer: Indexer, task: Look | Heal) -> None:
    if isinstance(task, Heal):
        healed = indexer.heal(task.target, task.cursor)
        logger.info("dependents", uri=task.target.uri, settled=healed)
        _count("DependentsSettled", healed)
    else:
        outcome = indexer.object_changed(task.location, task.sequencer)
        logger.info("object", uri=task.location.uri, outcome=outcome)
        _count(f"Documents{outcome.capitalize()}")


def _count(name: str, number: int = 1) -> None:
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)
