"""From a verdict to a File Search store: the bus, a queue, the importer (X-10); and listed stores (G-2).

The same function does both, asked by messages on one queue: what would not fit its time is another message.
"""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration
from aws_cdk.aws_events import EventPattern, IEventBus, Rule, RuleTargetInput, Schedule
from aws_cdk.aws_events_targets import SqsQueue
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from aws_cdk.aws_sqs import DeadLetterQueue, Queue, QueueEncryption
from constructs import Construct

from groundwire.adapters.eventbridge import DETAIL_TYPE, SOURCE
from groundwire.settings import ImporterSettings
from infra.constructs.documents import Documents
from infra.constructs.function import FunctionShape, ServiceFunction
from infra.constructs.index import Index
from infra.constructs.layers import Layers
from infra.constructs.observability import Watched
from infra.constructs.secrets import grant_secret
from infra.constructs.verdicts import Verdicts
from infra.environments import Environment, FileSearch

# The service takes its time before a document can be found.
_TIMEOUT = Duration.minutes(5)


class Importer(Construct):
    """Writes catalogue entries and records of its own, never the index."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        file_search: FileSearch,
        layers: Layers,
        documents: Documents,
        index: Index,
        verdicts: Verdicts,
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = self._queue("GivenUp")
        # Six times the function's timeout: what is still being worked on is not handed out again.
        self.queue = self._queue(
            "Queue",
            visibility_timeout=Duration.seconds(6 * _TIMEOUT.to_seconds()),
            dead_letter_queue=DeadLetterQueue(queue=self.dead_letters, max_receive_count=5),
        )
        self._service = ServiceFunction(
            self,
            "Importer",
            shape=FunctionShape(folder="importer", timeout=_TIMEOUT, memory_mb=512),
            environment=environment,
            layers=layers,
            settings=ImporterSettings(
                table=index.table.table_name,
                storage_roots=tuple(root.settings for root in documents.roots),
                import_store=file_search.import_into,
                listed_stores=file_search.stores,
                gemini_key_secret=file_search.api_key_secret,
                import_queue_url=self.queue.queue_url,
                dead_letter_queue_url=self.dead_letters.queue_url,
            ).environment(),
        )
        self._service.alias.add_event_source(
            SqsEventSource(
                self.queue,
                # One document may take minutes; a batch of them would not fit.
                batch_size=1,
                max_concurrency=file_search.import_concurrency,
                report_batch_item_failures=True,
            )
        )
        self._grant(file_search, documents, index)
        if file_search.import_into:
            self._listen(verdicts.bus)
            self._schedule("Sweep", file_search.sweep_schedule, {"sweep": True})
        for number, store in enumerate(file_search.stores, 1):
            self._schedule(f"List{number}", file_search.refresh_schedule, {"list": store})

    def watched(self) -> Mapping[str, Watched]:
        """What somebody should be told about."""
        return {
            "ImportsGivenUp": Watched(
                self.dead_letters.metric_approximate_number_of_messages_visible(period=Duration.minutes(5)),
                "Imports into the File Search store, or listings, that were given up: mend the cause, then"
                " redrive this dead-letter queue (docs/importing.md).",
            )
        }

    def _grant(self, file_search: FileSearch, documents: Documents, index: Index) -> None:
        role = self._service.role
        index.grant_import(role)
        if file_search.import_into:
            documents.grant_read(role)
        self.queue.grant(role, "sqs:SendMessage")
        self.dead_letters.grant(role, "sqs:SendMessage")
        grant_secret(role, file_search.api_key_secret)

    def _listen(self, bus: IEventBus) -> None:
        Rule(
            self,
            "Documents",
            description="Documents to import into the File Search store",
            event_bus=bus,
            event_pattern=EventPattern(source=[SOURCE], detail_type=[DETAIL_TYPE]),
            targets=[self._target()],
        )

    def _schedule(self, name: str, expression: str, message: Mapping[str, Any]) -> None:
        Rule(
            self,
            name,
            schedule=Schedule.expression(expression),
            targets=[self._target(RuleTargetInput.from_object(message))],
        )

    def _target(self, message: RuleTargetInput | None = None) -> SqsQueue:
        return SqsQueue(
            self.queue,
            message=message,
            dead_letter_queue=self.dead_letters,
            retry_attempts=185,
            max_event_age=Duration.hours(24),
        )

    def _queue(
        self,
        construct_id: str,
        *,
        visibility_timeout: Duration | None = None,
        dead_letter_queue: DeadLetterQueue | None = None,
    ) -> Queue:
        return Queue(
            self,
            construct_id,
            encryption=QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
            visibility_timeout=visibility_timeout,
            dead_letter_queue=dead_letter_queue,
        )
