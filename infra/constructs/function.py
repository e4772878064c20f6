"""The one place for what every function of ours has: runtime, layers, logs, role, alias, Powertools."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk.aws_iam import Role, ServicePrincipal
from aws_cdk.aws_lambda import Alias, Function, SnapStartConf
from aws_cdk.aws_logs import LogGroup
from constructs import Construct

from infra.constructs.layers import Layers
from infra.environments import Environment
from infra.packaging import function_code


@dataclass(frozen=True, kw_only=True)
class FunctionShape:
    """What tells one function from another."""

    folder: str
    """Its folder below `functions/`, its handler's first name and its name in logs and metrics."""
    timeout: Duration
    memory_mb: int
    entry: str = "handler"
    """The name, in its module `handler`, of what is called."""
    fixed_name: str | None = None
    """A name for function and role that outlives redeployments; None: CloudFormation names them."""


class ServiceFunction(Construct):
    """A function whose role may write its own log and nothing else; whoever invokes it uses `alias`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        shape: FunctionShape,
        environment: Environment,
        layers: Layers,
        settings: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        log_group = LogGroup(
            self, "Log", retention=environment.log_retention, removal_policy=environment.removal_policy
        )
        # Not the role that CDK would make: its managed policy may write to every log of the account.
        self.role = Role(
            self,
            "Role",
            role_name=shape.fixed_name,
            assumed_by=ServicePrincipal("lambda.amazonaws.com"),
        )
        log_group.grant_write(self.role)
        self.function = Function(
            self,
            "Function",
            function_name=shape.fixed_name,
            runtime=layers.runtime,
            architecture=layers.architecture,
            code=function_code(shape.folder),
            handler=f"{shape.folder}.handler.{shape.entry}",
            layers=list(layers.versions),
            timeout=shape.timeout,
            memory_size=shape.memory_mb,
            role=self.role,
            log_group=log_group,
            environment={
                **settings,
                # Never POWERTOOLS_LOGGER_LOG_EVENT or POWERTOOLS_DEV: both print what callers sent (Z-3).
                "POWERTOOLS_SERVICE_NAME": shape.folder,
                "POWERTOOLS_METRICS_NAMESPACE": "Groundwire",
                "POWERTOOLS_LOG_LEVEL": environment.log_level,
            },
            snap_start=SnapStartConf.ON_PUBLISHED_VERSIONS if environment.snap_start else None,
        )
        Validations.of(self.function).acknowledge(
            Acknowledgment(
                id="AwsSolutions-L1",
                reason="Lock, wheels and bytecode are for this one version of Python; it changes with them.",
            ),
            Acknowledgment(
                id="Annotation::@aws-cdk/aws-lambda:snapStartRequirePublish",
                reason="Every caller goes through the alias, which is at a published version.",
            ),
        )
        self.alias = Alias(self, "Live", alias_name="live", version=self.function.current_version)
