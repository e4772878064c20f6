"""Documents outside AWS: what the grounding function is told of them, and what reading them takes (Z-4).

No other function reads them (Z-5). Google takes the function's role itself, and needs nothing of ours.
"""

from aws_cdk import Acknowledgment, Validations
from aws_cdk.aws_iam import PolicyStatement, Role

from groundwire.settings import GoogleSettings, MicrosoftSettings, StorageRootSettings
from infra.environments import EntraApplication, Environment, GcsRoot, GoogleFederation, SharePointRoot

_ENTRA = "api://AzureADTokenExchange"


class ExternalDocuments:
    """The environment's roots outside AWS (`roots`), and how they are read (`google`, `microsoft`)."""

    def __init__(self, environment: Environment) -> None:
        self.roots = tuple(_root(each) for each in environment.external_roots)
        self.google = _google(environment.google) if environment.google else None
        self.microsoft = _microsoft(environment.microsoft) if environment.microsoft else None

    def grant_read(self, role: Role) -> None:
        """Lets the role become the application that reads SharePoint, where there is one."""
        if not self.microsoft:
            return
        if self.microsoft.certificate_secret:
            role.add_to_policy(
                PolicyStatement(
                    actions=["secretsmanager:GetSecretValue"], resources=[self.microsoft.certificate_secret]
                )
            )
            return
        role.add_to_policy(
            PolicyStatement(
                actions=["sts:GetWebIdentityToken"],
                resources=["*"],
                conditions={"ForAllValues:StringEquals": {"sts:IdentityTokenAudience": [_ENTRA]}},
            )
        )
        Validations.of(role).acknowledge(
            Acknowledgment(
                id="AwsSolutions-IAM5[Resource::*]",
                reason="The action knows no resources; the condition bounds whom the token is for.",
            )
        )


def _root(root: GcsRoot | SharePointRoot) -> StorageRootSettings:
    if isinstance(root, GcsRoot):
        return StorageRootSettings(
            name=root.name, source_type="gcs", bucket=root.bucket, prefix=root.prefix, readers=root.readers
        )
    return StorageRootSettings(
        name=root.name,
        source_type="sharepoint",
        bucket=root.drive_id,
        prefix=root.prefix,
        readers=root.readers,
        delegated=root.delegated,
    )


def _google(google: GoogleFederation) -> GoogleSettings:
    return GoogleSettings(audience=google.audience, impersonation_url=google.impersonation_url)


def _microsoft(microsoft: EntraApplication) -> MicrosoftSettings:
    return MicrosoftSettings(
        tenant_id=microsoft.tenant_id,
        client_id=microsoft.client_id,
        certificate_secret=microsoft.certificate_secret,
        keyless=microsoft.certificate_secret is None,
    )
