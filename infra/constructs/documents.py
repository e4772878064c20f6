"""The storage roots' buckets, each telling EventBridge what happens to its objects.

A bucket that exists already is imported: its notification settings are read, merged and put back, never
replaced. A bucket of ours goes the same way: the bucket's own property would overwrite what others add later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Acknowledgment, RemovalPolicy, Stack, Token, Validations
from aws_cdk.aws_iam import Effect, PolicyStatement, Role
from aws_cdk.aws_s3 import BlockPublicAccess, Bucket, BucketEncryption, CfnBucket, IBucket
from constructs import Construct

from groundwire.settings import StorageRootSettings
from infra.environments import StorageRoot

MANAGED_LOG_POLICY = (
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]"
)


@dataclass(frozen=True)
class DeployedRoot:
    """A storage root and the bucket it turned out to be in."""

    declared: StorageRoot
    bucket: IBucket

    @property
    def objects(self) -> str:
        """The ARN pattern of the root's objects, and of no others in the bucket."""
        return self.bucket.arn_for_objects(f"{self.declared.folder}*")

    @property
    def inbox(self) -> str:
        """The ARN pattern of the uploads that wait to be placed."""
        return self.bucket.arn_for_objects(f"{self.declared.folder}{self.declared.inbox_prefix}*")

    def lies_in(self, outer: "DeployedRoot") -> bool:
        """Whether this root is nested in the other."""
        bucket = self.declared.bucket
        same = bucket is not None and bucket == outer.declared.bucket
        return same and self is not outer and self.declared.folder.startswith(outer.declared.folder)

    @property
    def settings(self) -> StorageRootSettings:
        """The root as functions read it from their environment; the bucket may be a CDK token."""
        return StorageRootSettings(
            name=self.declared.name,
            bucket=self.bucket.bucket_name,
            prefix=self.declared.prefix,
            region=self.declared.region,
            readers=self.declared.readers,
            writers=self.declared.writers,
            inbox_prefix=self.declared.inbox_prefix,
            inbox_destinations=self.declared.inbox_destinations,
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
        hosts = {name: self._imported(name) for name in dict.fromkeys(root.bucket for root in roots) if name}
        self.roots = tuple(
            DeployedRoot(root, hosts[root.bucket] if root.bucket else self._created(root.name))
            for root in roots
        )
        for child in Stack.of(self).node.children:
            if child.node.id.startswith("BucketNotificationsHandler"):
                Validations.of(child).acknowledge(
                    Acknowledgment(
                        id=MANAGED_LOG_POLICY,
                        reason="CDK's own function, which changes notification settings during a deployment.",
                    )
                )

    def grant_read(self, role: Role) -> None:
        """Lets the role read the roots' objects and list their buckets: else a missing key is a 403."""
        role.add_to_policy(
            PolicyStatement(
                actions=["s3:GetObject", "s3:GetObjectVersion"],
                resources=[root.objects for root in self.roots],
            )
        )
        role.add_to_policy(
            PolicyStatement(
                actions=["s3:ListBucket"],
                resources=list(dict.fromkeys(root.bucket.bucket_arn for root in self.roots)),
            )
        )
        Validations.of(role).acknowledge(
            *(
                Acknowledgment(
                    id=f"AwsSolutions-IAM5[Resource::{self._as_reported(root)}]",
                    reason="Any document of a root may be asked for; the pattern ends where it does.",
                )
                for root in self.roots
            )
        )

    def grant_place(self, role: Role) -> None:
        """Lets the role, which may read, move uploads from the inboxes to where they belong (C-4).

        IAM cannot say "outside the inbox": writing is allowed in the whole root, removing in the inbox only.
        An object's tags go with its copy, and need rights of their own.
        """
        role.add_to_policy(
            PolicyStatement(
                actions=["s3:PutObject", "s3:PutObjectTagging"],
                resources=[root.objects for root in self.roots],
            )
        )
        role.add_to_policy(
            PolicyStatement(
                actions=["s3:DeleteObject", "s3:GetObjectTagging"],
                resources=[root.inbox for root in self.roots],
            )
        )
        Validations.of(role).acknowledge(
            *(
                Acknowledgment(
                    id=f"AwsSolutions-IAM5[Resource::{self._as_reported(root, root.declared.inbox_prefix)}]",
                    reason="Uploads have names of their authors' choice; the pattern ends at the inbox.",
                )
                for root in self.roots
            )
        )

    def grant_upload(self, role: Role) -> None:
        """Lets the role store documents in the roots that have writers, but in no inbox (Z-5).

        A root without writers that lies in one of those stays closed, whatever the function may think.
        """
        open_to_writers = [root for root in self.roots if root.declared.writers]
        closed = [root.inbox for root in open_to_writers]
        closed += [
            root.objects
            for root in self.roots
            if not root.declared.writers and any(root.lies_in(outer) for outer in open_to_writers)
        ]
        role.add_to_policy(
            PolicyStatement(actions=["s3:PutObject"], resources=[root.objects for root in open_to_writers])
        )
        role.add_to_policy(PolicyStatement(effect=Effect.DENY, actions=["s3:PutObject"], resources=closed))
        Validations.of(role).acknowledge(
            *(
                Acknowledgment(
                    id=f"AwsSolutions-IAM5[Resource::{self._as_reported(root)}]",
                    reason="Writers name their documents; the pattern ends where the root does.",
                )
                for root in open_to_writers
            )
        )

    def _imported(self, name: str) -> IBucket:
        bucket = Bucket.from_bucket_name(self, name, name)
        bucket.enable_event_bridge_notification()
        return bucket

    def _created(self, name: str) -> IBucket:
        bucket = Bucket(
            self,
            name,
            encryption=BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=BlockPublicAccess.BLOCK_ALL,
            versioned=True,
            removal_policy=self._removal_policy,
            auto_delete_objects=self._removal_policy is RemovalPolicy.DESTROY,
        )
        bucket.enable_event_bridge_notification()
        Validations.of(bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions-S1",
                reason="Who was given which document is in our audit records (Z-3).",
            )
        )
        return bucket

    def _as_reported(self, root: DeployedRoot, folder: str = "") -> str:
        """An ARN pattern of objects as cdk-nag names its finding: after the template's text."""
        below = f"{root.declared.folder}{folder}*"
        stack = Stack.of(self)
        if root.declared.bucket:
            partition = "<AWS::Partition>" if Token.is_unresolved(stack.partition) else stack.partition
            return f"arn:{partition}:s3:::{root.declared.bucket}/{below}"
        bucket = root.bucket.node.default_child
        assert isinstance(bucket, CfnBucket)
        return f"<{stack.get_logical_id(bucket)}.Arn>/{below}"
