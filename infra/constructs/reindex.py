"""Looks at every document of a root again, on demand and on a schedule (X-9).

One state machine a storage root: a distributed map lists the objects and hands them to the worker in batches,
then the index is looked through for what is gone. A batch that fails is tried again; where too many fail, the
execution fails and can be redriven, which repeats those alone. Running it anew is as good: what is unchanged
is not written.
"""

import json

from aws_cdk import Acknowledgment, CfnElement, Duration, RemovalPolicy, Stack, Token, Validations
from aws_cdk.aws_events import Rule, RuleTargetInput, Schedule
from aws_cdk.aws_events_targets import SfnStateMachine
from aws_cdk.aws_iam import PolicyStatement
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_logs import LogGroup
from aws_cdk.aws_s3 import BlockPublicAccess, Bucket, BucketEncryption, LifecycleRule
from aws_cdk.aws_stepfunctions import (
    Choice,
    Condition,
    DefinitionBody,
    DistributedMap,
    IChainable,
    ItemBatcher,
    JitterType,
    JsonPath,
    LogLevel,
    LogOptions,
    OutputType,
    Pass,
    ResultWriterV2,
    S3ObjectsItemReader,
    StateMachine,
    StateMachineType,
    Succeed,
    Transformation,
    WriterConfig,
)
from aws_cdk.aws_stepfunctions_tasks import LambdaInvoke
from aws_cdk.custom_resources import (
    AwsCustomResource,
    AwsCustomResourcePolicy,
    AwsSdkCall,
    PhysicalResourceId,
)
from constructs import Construct

from groundwire.settings import ReindexSettings
from infra.constructs.documents import MANAGED_LOG_POLICY, DeployedRoot, Documents
from infra.constructs.function import FunctionShape, ServiceFunction
from infra.constructs.index import Index
from infra.constructs.indexer import Indexer
from infra.constructs.layers import Layers
from infra.constructs.verdicts import Verdicts
from infra.environments import Environment

_BATCH = 50
# An express execution has five minutes for a batch and its retries.
_WORKER_TIMEOUT = Duration.seconds(60)
# One whole processor: a document takes more of it than of waiting, and less of it for longer costs the same.
_WORKER_MEMORY_MB = 1769
_RECONCILER_TIMEOUT = Duration.minutes(15)
_TOLERATED_PERCENT = 5
_RESULTS_KEPT = Duration.days(7)
_WORTH_A_RETRY = [
    "Unavailable",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.TooManyRequestsException",
]


class Reindex(Construct):
    """The state machines by root's name (`state_machines`), and the roles of their two functions."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        layers: Layers,
        documents: Documents,
        index: Index,
        indexer: Indexer,
        verdicts: Verdicts,
    ) -> None:
        super().__init__(scope, construct_id)
        self._environment = environment
        self._settings = ReindexSettings(
            table=index.table.table_name,
            storage_roots=tuple(root.settings for root in documents.roots),
            index_queue_url=indexer.queue.queue_url,
            event_bus=verdicts.bus.event_bus_name,
        ).environment()
        self._worker = self._function(
            "Worker",
            FunctionShape(folder="reindex", timeout=_WORKER_TIMEOUT, memory_mb=_WORKER_MEMORY_MB),
            layers,
        )
        self._reconciler = self._function(
            "Reconciler",
            FunctionShape(folder="reindex", entry="reconcile", timeout=_RECONCILER_TIMEOUT, memory_mb=512),
            layers,
        )
        self.worker_role, self.reconciler_role = self._worker.role, self._reconciler.role
        self._results = self._bucket()
        # Not CDK's grant, which also reads the bucket's settings and every version.
        self.reconciler_role.add_to_policy(
            PolicyStatement(actions=["s3:GetObject"], resources=[self._results.arn_for_objects("*")])
        )
        Validations.of(self.reconciler_role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::<{_logical_id(self._results)}.Arn>/*]",
                reason="Step Functions names the files of a run's results.",
            )
        )
        self._log = LogGroup(
            self, "Log", retention=environment.log_retention, removal_policy=environment.removal_policy
        )
        self.state_machines = {root.declared.name: self._state_machine(root) for root in documents.roots}
        if environment.reconcile_schedule:
            for name, machine in self.state_machines.items():
                self._rule(name, machine, environment.reconcile_schedule)
        for root in documents.roots:
            if root.declared.bucket:
                self._first_run(root.declared.name).node.add_dependency(documents, indexer)

    def _function(self, construct_id: str, shape: FunctionShape, layers: Layers) -> ServiceFunction:
        return ServiceFunction(
            self,
            construct_id,
            shape=shape,
            environment=self._environment,
            layers=layers,
            settings=self._settings,
        )

    def _bucket(self) -> Bucket:
        bucket = Bucket(
            self,
            "Results",
            encryption=BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=BlockPublicAccess.BLOCK_ALL,
            lifecycle_rules=[LifecycleRule(expiration=_RESULTS_KEPT)],
            removal_policy=self._environment.removal_policy,
            auto_delete_objects=self._environment.removal_policy is RemovalPolicy.DESTROY,
        )
        Validations.of(bucket).acknowledge(
            Acknowledgment(id="AwsSolutions-S1", reason="Holds counts of documents, for a week.")
        )
        return bucket

    def _state_machine(self, root: DeployedRoot) -> StateMachine:
        scope = Construct(self, root.declared.name)
        machine = StateMachine(
            scope,
            "StateMachine",
            state_machine_type=StateMachineType.STANDARD,
            definition_body=DefinitionBody.from_chainable(self._definition(scope, root)),
            # Without execution data: keys and counts stay out of this log.
            logs=LogOptions(destination=self._log, level=LogLevel.ERROR, include_execution_data=False),
        )
        written = f"arn:<AWS::Partition>:s3:::<{_logical_id(self._results)}>/*"
        reasons = {
            "SF1": "Errors are logged; what every batch came to is in the results and the metrics.",
            "SF2": "A run's batches are traced by Step Functions itself; nothing of ours is traced yet.",
            "IAM5[Resource::*]": "Log delivery knows no narrower resource.",
            f"IAM5[Resource::{written}]": "Step Functions names the files of a run's results.",
        }
        executions = _executions(machine)
        for run in (f"{executions}:*", f"{executions}/*:*"):
            reasons[f"IAM5[Resource::{run}]"] = "The executions of this one state machine."
        Validations.of(machine).acknowledge(
            *(Acknowledgment(id=f"AwsSolutions-{rule}", reason=why) for rule, why in reasons.items())
        )
        return machine

    def _definition(self, scope: Construct, root: DeployedRoot) -> IChainable:
        """Begin → every listed object, in batches → the index page by page → done."""
        below = JsonPath.string_at("$.prefix")
        begin = Pass(
            scope,
            "Begin",
            parameters={
                "root": root.declared.name,
                "prefix": below,
                "listed": JsonPath.format(f"{root.declared.folder}{{}}", below),
                "counts": {},
                "failures": [],
            },
        )
        documents = DistributedMap(
            scope,
            "Documents",
            item_reader=S3ObjectsItemReader(bucket=root.bucket, prefix=JsonPath.string_at("$.listed")),
            item_selector={
                "root": root.declared.name,
                "Key": JsonPath.string_at("$$.Map.Item.Value.Key"),
            },
            item_batcher=ItemBatcher(max_items_per_batch=_BATCH),
            max_concurrency=self._environment.limits.reindex_concurrency,
            map_execution_type=StateMachineType.EXPRESS,
            tolerated_failure_percentage=_TOLERATED_PERCENT,
            result_writer_v2=ResultWriterV2(
                bucket=self._results,
                prefix=root.declared.name,
                writer_config=WriterConfig(
                    output_type=OutputType.JSONL, transformation=Transformation.COMPACT
                ),
            ),
            result_path="$.results",
        )
        documents.item_processor(self._invoke(scope, "Index", self._worker.alias))
        reconcile = self._invoke(scope, "Reconcile", self._reconciler.alias)
        done = Choice(scope, "Looked through?")
        done.when(Condition.is_null("$.cursor"), Succeed(scope, "Done")).otherwise(reconcile)
        return begin.next(documents).next(reconcile).next(done)

    def _invoke(self, scope: Construct, construct_id: str, function: IFunction) -> LambdaInvoke:
        step = LambdaInvoke(
            scope,
            construct_id,
            lambda_function=function,
            payload_response_only=True,
            retry_on_service_exceptions=False,
        )
        step.add_retry(
            errors=_WORTH_A_RETRY,
            interval=Duration.seconds(2),
            max_attempts=5,
            backoff_rate=2,
            max_delay=Duration.seconds(20),
            jitter_strategy=JitterType.FULL,
        )
        return step

    def _first_run(self, name: str) -> AwsCustomResource:
        """Indexes what an existing bucket holds already, when its root comes into the stack (X-9)."""
        machine = self.state_machines[name]
        run = AwsCustomResource(
            self,
            f"FirstRun-{name}",
            on_create=AwsSdkCall(
                service="SFN",
                action="startExecution",
                parameters={
                    "stateMachineArn": machine.state_machine_arn,
                    "input": json.dumps({"root": name, "prefix": ""}),
                },
                physical_resource_id=PhysicalResourceId.of(f"first-run-{name}"),
                output_paths=["executionArn"],
            ),
            policy=AwsCustomResourcePolicy.from_statements(
                [PolicyStatement(actions=["states:StartExecution"], resources=[machine.state_machine_arn])]
            ),
            install_latest_aws_sdk=False,
        )
        _first_run_reasons(Stack.of(self))
        return run

    def _rule(self, name: str, machine: StateMachine, schedule: str) -> None:
        Rule(
            self,
            f"Reconcile-{name}",
            description=f"Scans the storage root {name} and mends its index",
            schedule=Schedule.expression(schedule),
            targets=[
                SfnStateMachine(
                    machine,
                    input=RuleTargetInput.from_object({"root": name, "prefix": ""}),
                    # The next run does what this one would have done.
                    retry_attempts=10,
                    max_event_age=Duration.hours(1),
                )
            ],
        )


def _first_run_reasons(stack: Stack) -> None:
    """What cdk-nag is told of the one function behind all first runs, which is CDK's own."""
    for child in stack.node.children:
        if child.node.id.startswith("AWS679f53fac002430cb0da5b7982bd2287"):
            Validations.of(child).acknowledge(
                Acknowledgment(
                    id=MANAGED_LOG_POLICY, reason="CDK's own function, which runs at a deployment."
                ),
                Acknowledgment(
                    id="AwsSolutions-L1", reason="CDK's own function, of the runtime CDK gives it."
                ),
            )


def _logical_id(construct: Bucket | StateMachine) -> str:
    resource = construct.node.default_child
    assert isinstance(resource, CfnElement)
    return Stack.of(construct).get_logical_id(resource)


def _executions(machine: StateMachine) -> str:
    """The ARN of a state machine's executions as cdk-nag names its finding: after the template's text."""
    stack = Stack.of(machine)
    place = {"Partition": stack.partition, "Region": stack.region, "AccountId": stack.account}
    partition, region, account = (
        f"<AWS::{name}>" if Token.is_unresolved(value) else value for name, value in place.items()
    )
    name = json.dumps(
        {"Fn::Select": [6, {"Fn::Split": [":", {"Ref": _logical_id(machine)}]}]}, separators=(",", ":")
    )
    return f"arn:{partition}:states:{region}:{account}:execution:{name}"
