"""Who may read one secret, named as an environment names it."""

from aws_cdk import ArnFormat, Stack
from aws_cdk.aws_iam import PolicyStatement, Role


def grant_secret(role: Role, secret: str) -> None:
    """Lets the role read the secret of this name in the stack's region, or of this whole ARN."""
    if not secret.startswith("arn:"):
        # Six characters of Secrets Manager's choice end the ARN of a secret.
        secret = Stack.of(role).format_arn(
            service="secretsmanager",
            resource="secret",
            resource_name=f"{secret}-??????",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
    role.add_to_policy(PolicyStatement(actions=["secretsmanager:GetSecretValue"], resources=[secret]))
