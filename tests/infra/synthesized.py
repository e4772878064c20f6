"""The app as tests synthesize it, and questions to the templates that come out."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aws_cdk import App

from infra.environments import (
    EntraApplication,
    Environment,
    GcsRoot,
    GoogleFederation,
    JwtIssuer,
    Limits,
    SharePointRoot,
    StorageRoot,
)
from infra.packaging import PROJECT

type Json = Any

GUEST = Environment(
    name="guest",
    account="111111111111",
    region="eu-north-1",
    storage_roots=(
        StorageRoot(
            name="handbook",
            bucket="acme-handbook",
            prefix="published",
            readers=("group:staff",),
            inbox_prefix="in/",
            inbox_destinations=("sops", "shared"),
        ),
        StorageRoot(name="recipes", bucket="acme-handbook", prefix="recipes"),
        StorageRoot(name="own"),
    ),
    external_roots=(
        GcsRoot(name="labs", bucket="acme-labs", prefix="published", readers=("group:staff",)),
        SharePointRoot(name="hr", drive_id="b!acme-hr", prefix="Policies", readers=("scope:hr",)),
        SharePointRoot(name="own-hr", drive_id="b!acme-people", readers=("*",), delegated=True),
    ),
    google=GoogleFederation(
        audience="//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/acme/providers/aws"
    ),
    microsoft=EntraApplication(tenant_id="acme", client_id="groundwire"),
    limits=Limits(indexer_concurrency=3, requests_per_second=7, request_burst=9),
    jwt=JwtIssuer(issuer="https://login.example/tenant", audience=("groundwire",)),
    debug_callers=("group:operations",),
    alarms_address="operations@example.com",
)
"""An environment in somebody else's bucket, drives and clouds, with tokens instead of signatures."""


def app(outdir: Path) -> App:
    """An app with the feature flags of cdk.json, which only the command line would read."""
    flags = json.loads((PROJECT / "cdk.json").read_text())["context"]
    return App(context=flags, outdir=str(outdir), analytics_reporting=False)


@dataclass(frozen=True)
class Synthesized:
    """One stack's template in the cloud assembly at `folder`."""

    folder: Path
    template: Json

    @classmethod
    def read(cls, folder: Path, environment: str) -> Self:
        """The stack of that environment, from the assembly at `folder`."""
        return cls(folder, json.loads((folder / f"groundwire-{environment}.template.json").read_text()))

    def resources(self, kind: str) -> dict[str, Json]:
        """The resources of a CloudFormation type, by logical id; at least one."""
        found = {name: r for name, r in self.template["Resources"].items() if r["Type"] == kind}
        assert found, f"no {kind} in the template"
        return found

    def properties(self, kind: str, part_of_id: str = "") -> Json:
        """The properties of the one resource of that type whose logical id contains `part_of_id`."""
        (found,) = (r for name, r in self.resources(kind).items() if part_of_id in name)
        return found["Properties"]

    def logical_id(self, kind: str, part_of_id: str) -> str:
        """The logical id of the one resource of that type that contains `part_of_id`."""
        (found,) = (name for name in self.resources(kind) if part_of_id in name)
        return found

    def own_bucket(self) -> str:
        """The logical id of the one bucket of documents that the stack creates."""
        return self.logical_id("AWS::S3::Bucket", "Documents")

    def function(self, folder: str, entry: str = "handler") -> Json:
        """The whole resource of the function whose handler is in `functions/<folder>`."""
        (found,) = (
            resource
            for resource in self.resources("AWS::Lambda::Function").values()
            if resource["Properties"]["Handler"] == f"{folder}.handler.{entry}"
        )
        return found

    def asset(self, resource: Json) -> Path:
        """The folder that a function's code or a layer's content was staged in."""
        content = resource["Properties"].get("Code") or resource["Properties"]["Content"]
        return self.folder / f"asset.{content['S3Key'].removesuffix('.zip')}"

    def variables(self, folder: str, entry: str = "handler") -> dict[str, str]:
        """A function's environment after deployment, with logical ids for what is not known yet."""
        declared = self.function(folder, entry)["Properties"]["Environment"]["Variables"]
        return {name: rendered(value) for name, value in declared.items()}

    def allowed(self, folder: str, entry: str = "handler") -> dict[str, set[str]]:
        """What a function's role may do: resource to actions, from every policy that names the role."""
        return self.allowed_to(self.function(folder, entry)["Properties"]["Role"]["Fn::GetAtt"][0])

    def allowed_to(self, role: str) -> dict[str, set[str]]:
        """What the role with this logical id may do."""
        assert "ManagedPolicyArns" not in self.template["Resources"][role]["Properties"]
        assert "Policies" not in self.template["Resources"][role]["Properties"]
        allowed: dict[str, set[str]] = {}
        for policy in self.resources("AWS::IAM::Policy").values():
            if {"Ref": role} not in policy["Properties"]["Roles"]:
                continue
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                assert statement["Effect"] == "Allow"
                for resource in _listed(statement["Resource"]):
                    allowed.setdefault(rendered(resource), set()).update(_listed(statement["Action"]))
        return allowed


def rendered(value: Json) -> str:
    """A template's value as text: literals as they are, references as the logical id they lead to."""
    match value:
        case str():
            return value
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(rendered(part) for part in parts)
        case {"Ref": name} | {"Fn::GetAtt": [name, *_]}:
            return str(name)
        case {"Fn::Sub": str(text)}:
            return text
        case {"Fn::Select": [_, {"Fn::Split": [_, whole]}]}:
            return rendered(whole)
    raise AssertionError(f"not a text: {json.dumps(value)}")


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]
