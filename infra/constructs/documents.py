"""The storage roots' buckets, each telling EventBridge what happens to its objects.

A bucket that exists already is imported: its notification settings are read, merged and put back, never
replaced. A bucket of ours goes the same way: the bucket's own property would overwrite what others add later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import RemovalPolicy
from aws_cdk.aws_iam import PolicyStatement, Role
from aws_cdk.aws_s3 import BlockPublicAccess, Bucket, BucketEncryption, IBucket
from constructs import Construct
from groundwire.settings import StorageRootSettings

from infra.environments import StorageRoot


@dataclass(frozen=True)
class DeployedRoot:
    """A storage root and the bucket it turned out to be in."""

    declared: StorageRoot
    bucket: IBucket

    @property
    def settings(self) -> StorageRootSettings:
        """The root as functions read it from their environment; the bucket may be a CDK token."""
        return StorageRootSettings(
            name=self.declared.name,
            bucket=self.bucket.bucket_name,
            prefix=self.declared.prefix,
            region=self.declared.region,
            readers=self.declared.readers,
            inbox_prefix=self.declared.inbox_prefix,
        )


class Documents(Construct):
    """The deployed `roots`, in the order they were declared."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        roots: Sequence[StorageRoot],
        removal_policy: RemovalPolicy,
    ) -> None:
        super().__init__(scope, construct_id)
        self._removal_policy = removal_policy
        # Two roots may share an existing bucket: one merge of its settings, or the two would race.
        existing = {
            name: self._imported(name) for name in dict.fromkeys(root.bucket for root in roots) if name
        }
        self.roots = tuple(
            DeployedRoot(root, existing[root.bucket] if root.bucket else self._created(root.name))
            for root in roots
        )
        for bucket in {deployed.bucket.node.path: deployed.bucket for deployed in self.roots}.values():
            bucket.enable_event_bridge_notification()

    def grant_read(self, role: Role) -> None:
        """Lets the role read the roots' objects and list their buckets: else a missing key is a 403."""
        role.add_to_policy(
            PolicyStatement(
                actions=["s3:GetObject", "s3:GetObjectVersion"],
                resources=[root.bucket.arn_for_objects(f"{root.declared.folder}*") for root in self.roots],
            )
        )
        role.add_to_policy(
            PolicyStatement(
                actions=["s3:ListBucket"],
                resources=list(dict.fromkeys(root.bucket.bucket_arn for root in self.roots)),
            )
        )

    def _imported(self, name: str) -> IBucket:
        return Bucket.from_bucket_name(self, name, name)

    def _created(self, name: str) -> IBucket:
        return Bucket(
            self,
            name,
            encryption=BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=BlockPublicAccess.BLOCK_ALL,
            versioned=True,
            removal_policy=self._removal_policy,
            auto_delete_objects=self._removal_policy is RemovalPolicy.DESTROY,
        )
