"""One environment of Groundwire: constructs put together, and who may do what to whom."""

from pathlib import Path

import aws_cdk
from aws_cdk import CfnOutput, Stack
from aws_cdk.aws_iam import Role
from constructs import Construct

from infra.constructs.delivery import DeliveryShelf
from infra.constructs.documents import Documents
from infra.constructs.external import ExternalDocuments
from infra.constructs.grounding import Grounding
from infra.constructs.importer import Importer
from infra.constructs.index import Index
from infra.constructs.indexer import Indexer
from infra.constructs.layers import Layers
from infra.constructs.observability import Observability
from infra.constructs.reindex import Reindex
from infra.constructs.secrets import grant_secret
from infra.constructs.uploads import Uploads
from infra.constructs.verdicts import Verdicts
from infra.environments import Environment, FileSearch


class GroundwireStack(Stack):
    """The stack `groundwire-<environment>`; `dependencies` is the folder of the dependency layer."""

    def __init__(self, scope: Construct, *, environment: Environment, dependencies: Path) -> None:
        super().__init__(
            scope,
            f"groundwire-{environment.name}",
            description="Groundwire: grounds answers in whole documents and the documents they include",
            env=aws_cdk.Environment(account=environment.account, region=environment.region),
        )
        self.documents = Documents(
            self,
            "Documents",
            roots=environment.storage_roots,
            removal_policy=environment.removal_policy,
        )
        self.external = ExternalDocuments(environment)
        self.index = Index(self, "Index", removal_policy=environment.removal_policy)
        self.verdicts = Verdicts(self, "Verdicts")
        layers = Layers(self, "Layers", architecture=environment.architecture, dependencies=dependencies)
        self.indexer = Indexer(
            self,
            "Indexing",
            environment=environment,
            layers=layers,
            documents=self.documents,
            external=self.external,
            index=self.index,
            verdicts=self.verdicts,
        )
        self.reindex = Reindex(
            self,
            "Reindexing",
            environment=environment,
            layers=layers,
            documents=self.documents,
            index=self.index,
            indexer=self.indexer,
            verdicts=self.verdicts,
        )
        self.shelf = DeliveryShelf(self, "Delivery", removal_policy=environment.removal_policy)
        self.grounding = Grounding(
            self,
            "Answering",
            environment=environment,
            layers=layers,
            documents=self.documents,
            external=self.external,
            index=self.index,
            indexer=self.indexer,
            shelf=self.shelf,
        )
        if any(root.writers for root in environment.storage_roots):
            Uploads(
                self,
                "Uploading",
                environment=environment,
                layers=layers,
                documents=self.documents,
                grounding=self.grounding,
            )
        self._grant(environment.file_search)
        observability = Observability(
            self,
            "Observability",
            queue=self.indexer.queue,
            dead_letters=self.indexer.dead_letters,
            indexer=self.indexer.function,
            state_machines=self.reindex.state_machines,
            api=self.grounding.api,
            alarms_address=environment.alarms_address,
        )
        if environment.file_search:
            importer = Importer(
                self,
                "Importing",
                environment=environment,
                file_search=environment.file_search,
                layers=layers,
                documents=self.documents,
                index=self.index,
                verdicts=self.verdicts,
            )
            observability.watch(importer.watched())
            CfnOutput(self, "ImportQueueUrl", value=importer.queue.queue_url)
        if observability.topic:
            self.verdicts.tell_of_invalid_documents(observability.topic)
        self._outputs()

    def _grant(self, file_search: FileSearch | None) -> None:
        for role in (self.indexer.role, self.reindex.worker_role, self.reindex.reconciler_role):
            self._grant_indexing(role)
        self.index.grant_scan(self.reindex.reconciler_role)
        # A message that means nothing is kept for an operator instead of being tried five times.
        self.indexer.dead_letters.grant(self.indexer.role, "sqs:SendMessage")
        self.documents.grant_read(self.grounding.role)
        self.external.grant_read(self.grounding.role)
        self.index.grant_read(self.grounding.role)
        self.shelf.grant_deliver(self.grounding.role)
        if file_search:
            self.index.grant_lookups(self.grounding.role)
            grant_secret(self.grounding.role, file_search.api_key_secret)
        # A stale index entry is repaired by its only writer, who is asked by a message (B-9).
        self.indexer.queue.grant(self.grounding.role, "sqs:SendMessage")

    def _grant_indexing(self, role: Role) -> None:
        """What it takes to make the index say what an object says, and to do what follows from that."""
        self.documents.grant_read(role)
        self.documents.grant_place(role)
        self.index.grant_read_write(role)
        # A hub's dependents are judged again message by message.
        self.indexer.queue.grant(role, "sqs:SendMessage")
        self.verdicts.grant_publish(role)

    def _outputs(self) -> None:
        outputs = {
            "ApiUrl": self.grounding.stage.url,
            "ApiId": self.grounding.api.api_id,
            "TableName": self.index.table.table_name,
            "IndexerQueueUrl": self.indexer.queue.queue_url,
            "DeadLetterQueueUrl": self.indexer.dead_letters.queue_url,
            "EventBusName": self.verdicts.bus.event_bus_name,
            "DocumentsBucket": self.documents.roots[0].bucket.bucket_name,
            "IndexerFunctionName": self.indexer.function.function_name,
            "ReindexStateMachines": self.to_json_string(
                {name: each.state_machine_arn for name, each in self.reindex.state_machines.items()}
            ),
            "GroundingFunctionName": self.grounding.function.function_name,
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)
