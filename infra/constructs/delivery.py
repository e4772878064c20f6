"""The bucket that bodies are laid out in when no store of theirs gives them out by URL (G-7)."""

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk.aws_iam import PolicyStatement, Role
from aws_cdk.aws_s3 import BlockPublicAccess, Bucket, BucketEncryption, CfnBucket, LifecycleRule
from constructs import Construct


class DeliveryShelf(Construct):
    """Encrypted, not versioned, and empty after a day: copies for whoever was given a URL of minutes."""

    def __init__(self, scope: Construct, construct_id: str, *, removal_policy: RemovalPolicy) -> None:
        super().__init__(scope, construct_id)
        self.bucket = Bucket(
            self,
            "Bucket",
            encryption=BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=BlockPublicAccess.BLOCK_ALL,
            lifecycle_rules=[
                LifecycleRule(
                    expiration=Duration.days(1), abort_incomplete_multipart_upload_after=Duration.days(1)
                )
            ],
            removal_policy=removal_policy,
            auto_delete_objects=removal_policy is RemovalPolicy.DESTROY,
        )
        Validations.of(self.bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions-S1", reason="Who was given which document is in our audit records (Z-3)."
            )
        )

    def grant_deliver(self, role: Role) -> None:
        """Lets the role lay bodies out and sign URLs of them, and nothing else."""
        objects = self.bucket.arn_for_objects("*")
        role.add_to_policy(PolicyStatement(actions=["s3:PutObject", "s3:GetObject"], resources=[objects]))
        bucket = self.bucket.node.default_child
        assert isinstance(bucket, CfnBucket)
        Validations.of(role).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::<{Stack.of(self).get_logical_id(bucket)}.Arn>/*]",
                reason="Bodies are laid out under random names; nothing else is in this bucket.",
            )
        )
