"""One environment of Groundwire: constructs put together, and who may do what to whom."""

from pathlib import Path

import aws_cdk
from aws_cdk import CfnOutput, Stack
from constructs import Construct

from infra.constructs.documents import Documents
from infra.constructs.grounding import Grounding
from infra.constructs.index import Index
from infra.constructs.indexer import Indexer
from infra.constructs.layers import Layers
from infra.constructs.observability import Observability
from infra.environments import Environment


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
        self.index = Index(self, "Index", removal_policy=environment.removal_policy)
        layers = Layers(self, "Layers", architecture=environment.architecture, dependencies=dependencies)
        self.indexer = Indexer(
            self,
            "Indexing",
            environment=environment,
            layers=layers,
            documents=self.documents,
            index=self.index,
        )
        self.grounding = Grounding(
            self,
            "Answering",
            environment=environment,
            layers=layers,
            documents=self.documents,
            index=self.index,
            indexer=self.indexer,
        )
        self._grant()
        Observability(
            self,
            "Observability",
            dead_letters=self.indexer.dead_letters,
            indexer=self.indexer.function,
            api=self.grounding.api,
            alarms_address=environment.alarms_address,
        )
        self._outputs()

    def _grant(self) -> None:
        self.documents.grant_read(self.indexer.role)
        self.index.grant_read_write(self.indexer.role)
        # A message that means nothing is kept for an operator instead of being tried five times.
        self.indexer.dead_letters.grant(self.indexer.role, "sqs:SendMessage")
        self.documents.grant_read(self.grounding.role)
        self.index.grant_read(self.grounding.role)
        # A stale index entry is repaired by its only writer, who is asked by a message (B-9).
        self.indexer.queue.grant(self.grounding.role, "sqs:SendMessage")

    def _outputs(self) -> None:
        outputs = {
            "ApiUrl": self.grounding.stage.url,
            "ApiId": self.grounding.api.api_id,
            "TableName": self.index.table.table_name,
            "IndexerQueueUrl": self.indexer.queue.queue_url,
            "DeadLetterQueueUrl": self.indexer.dead_letters.queue_url,
            "DocumentsBucket": self.documents.roots[0].bucket.bucket_name,
            "IndexerFunctionName": self.indexer.function.function_name,
            "GroundingFunctionName": self.grounding.function.function_name,
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)
