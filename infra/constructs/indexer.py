"""From an object's event to the index: EventBridge, a queue, the indexer.

Nothing is lost on the way without a trace: what EventBridge cannot deliver, what the indexer fails five times
and what it cannot read end in one dead-letter queue, from where it can be sent again (X-8).
"""

from aws_cdk import Duration
from aws_cdk.aws_events import EventPattern, Rule
from aws_cdk.aws_events_targets import SqsQueue
from aws_cdk.aws_lambda_event_sources import SqsEventSource
from aws_cdk.aws_sqs import DeadLetterQueue, Queue, QueueEncryption
from constructs import Construct

from groundwire.settings import IndexerSettings
from infra.constructs.documents import DeployedRoot, Documents
from infra.constructs.external import ExternalDocuments
from infra.constructs.function import FunctionShape, ServiceFunction
from infra.constructs.index import Index
from infra.constructs.layers import Layers
from infra.constructs.verdicts import Verdicts
from infra.environments import Environment

_TIMEOUT = Duration.seconds(60)
_OBJECT_EVENTS = ["Object Created", "Object Deleted", "Object Restore Completed"]


class Indexer(Construct):
    """The index's only writer, fed by every storage root and by whoever may send to `queue`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        layers: Layers,
        documents: Documents,
        external: ExternalDocuments,
        index: Index,
        verdicts: Verdicts,
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = self._queue("DeadLetters")
        # Six times the function's timeout: a batch that is still being worked on is not handed out again.
        self.queue = self._queue(
            "Queue",
            visibility_timeout=Duration.seconds(6 * _TIMEOUT.to_seconds()),
            dead_letter_queue=DeadLetterQueue(queue=self.dead_letters, max_receive_count=5),
        )
        for root in documents.roots:
            self._rule(root)
        self._service = ServiceFunction(
            self,
            "Indexer",
            shape=FunctionShape(folder="indexer", timeout=_TIMEOUT, memory_mb=512),
            environment=environment,
            layers=layers,
            settings=IndexerSettings(
                table=index.table.table_name,
                # Of roots outside AWS it is told what searches saw there; it reads none of them (Z-5).
                storage_roots=(*(root.settings for root in documents.roots), *external.roots),
                dead_letter_queue_url=self.dead_letters.queue_url,
                index_queue_url=self.queue.queue_url,
                event_bus=verdicts.bus.event_bus_name,
            ).environment(),
        )
        self.function = self._service.function
        self.role = self._service.role
        self._service.alias.add_event_source(
            SqsEventSource(
                self.queue,
                batch_size=10,
                max_concurrency=environment.limits.indexer_concurrency,
                report_batch_item_failures=True,
            )
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

    def _rule(self, root: DeployedRoot) -> None:
        objects: dict[str, object] = {"bucket": {"name": [root.bucket.bucket_name]}}
        if root.declared.folder:
            objects["object"] = {"key": [{"prefix": root.declared.folder}]}
        Rule(
            self,
            f"Objects-{root.declared.name}",
            # Every object of the root, whatever its type: nothing is ignored without a count.
            event_pattern=EventPattern(source=["aws.s3"], detail_type=_OBJECT_EVENTS, detail=objects),
            targets=[
                SqsQueue(
                    self.queue,
                    dead_letter_queue=self.dead_letters,
                    retry_attempts=185,
                    max_event_age=Duration.hours(24),
                )
            ],
        )
