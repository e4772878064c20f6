"""The include graph's one table (docs: the item layout is in groundwire/adapters/dynamodb.py)."""

from aws_cdk import RemovalPolicy
from aws_cdk.aws_dynamodb import (
    Attribute,
    AttributeType,
    Billing,
    PointInTimeRecoverySpecification,
    TableV2,
)
from aws_cdk.aws_iam import IGrantable, PolicyStatement, Role
from constructs import Construct

_READ = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query")
_WRITE = (
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
)


class Index(Construct):
    """The table, and the ways it may be used: who writes does so as the indexer does (B-9), and only
    reconciling scans."""

    def __init__(self, scope: Construct, construct_id: str, *, removal_policy: RemovalPolicy) -> None:
        super().__init__(scope, construct_id)
        self.table = TableV2(
            self,
            "Table",
            partition_key=Attribute(name="PK", type=AttributeType.STRING),
            sort_key=Attribute(name="SK", type=AttributeType.STRING),
            billing=Billing.on_demand(),
            time_to_live_attribute="expires",
            point_in_time_recovery_specification=PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=removal_policy,
        )

    def grant_read(self, grantee: IGrantable) -> None:
        """Lets the grantee read items it can name."""
        self.table.grant(grantee, *_READ)

    def grant_read_write(self, grantee: IGrantable) -> None:
        """Lets the grantee read, and write single items, batches and transactions."""
        self.table.grant(grantee, *_READ, *_WRITE)

    def grant_import(self, role: Role) -> None:
        """Lets the role read documents' nodes, and write what the catalogue and importers know (X-10)."""
        own, nodes = ("C#*", "I#*"), "D#*"
        for actions, partitions in (
            (("dynamodb:GetItem", "dynamodb:BatchGetItem"), (nodes, *own)),
            (("dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"), own),
        ):
            role.add_to_policy(
                PolicyStatement(
                    actions=list(actions),
                    resources=[self.table.table_arn],
                    conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(partitions)}},
                )
            )

    def grant_lookups(self, role: Role) -> None:
        """Lets the role, which may read, keep what it found out about File Search stores and the Files API.

        The index itself has one writer, which this is not (Z-5).
        """
        role.add_to_policy(
            PolicyStatement(
                actions=["dynamodb:PutItem", "dynamodb:BatchWriteItem"],
                resources=[self.table.table_arn],
                conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["C#*", "F#*"]}},
            )
        )

    def grant_scan(self, grantee: IGrantable) -> None:
        """Lets the grantee look through the whole table (X-9)."""
        self.table.grant(grantee, "dynamodb:Scan")
