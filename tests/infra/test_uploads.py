"""The upload API: there where a root has writers, for the same callers, and its role only stores (Z-5)."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Validations
from cdk_nag import AwsSolutionsChecks

from groundwire.settings import UploadSettings
from infra.environments import EnvironmentRefused, StorageRoot, environment
from infra.stack import GroundwireStack
from tests.infra.synthesized import GUEST, Synthesized, app, rendered

_HANDBOOK, _OWN = "arn:aws:s3:::acme-handbook", StorageRoot(name="own", writers=("group:authors",))
OPEN = replace(
    GUEST,
    storage_roots=(
        StorageRoot(name="all", bucket="acme-handbook", writers=("scope:kb.write",), inbox_prefix="in/"),
        StorageRoot(name="people", bucket="acme-handbook", prefix="hr", readers=("group:hr",)),
        StorageRoot(name="elsewhere", bucket="acme-archive", prefix="hr"),
        _OWN,
    ),
)
"""A root with writers that holds one without, one in another bucket, and one whose bucket is made here."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, empty_layer: Path) -> Synthesized:
    """OPEN as it would be deployed, with cdk-nag's word that nothing is left unexplained."""
    outdir = tmp_path_factory.mktemp("opened")
    assembly = app(outdir)
    Validations.of(assembly).add_plugins(AwsSolutionsChecks(assembly))
    GroundwireStack(assembly, environment=OPEN, dependencies=empty_layer)
    assembly.synth()
    return Synthesized.read(outdir, OPEN.name)


def statements(deployment: Synthesized, folder: str) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    """Effect, actions and resources of everything a function's role has to say about S3 and DynamoDB."""
    role = deployment.function(folder)["Properties"]["Role"]["Fn::GetAtt"][0]
    found: list[Any] = []
    for policy in deployment.resources("AWS::IAM::Policy").values():
        if {"Ref": role} in policy["Properties"]["Roles"]:
            found += policy["Properties"]["PolicyDocument"]["Statement"]
    return [(each["Effect"], _texts(each["Action"]), _texts(each["Resource"])) for each in found]


def _texts(value: Any) -> frozenset[str]:
    return frozenset(rendered(each) for each in (value if isinstance(value, list) else [value]))


def test_the_role_stores_where_writers_are_and_does_nothing_else(opened: Synthesized) -> None:
    own = opened.own_bucket()
    logs, *others = sorted(statements(opened, "uploads"), key=lambda each: each[1] == {"s3:PutObject"})
    assert logs[1] == {"logs:CreateLogStream", "logs:PutLogEvents"}
    put = frozenset({"s3:PutObject"})
    assert others == [
        ("Allow", put, frozenset({f"{_HANDBOOK}/*", f"{own}/*"})),
        ("Deny", put, frozenset({f"{_HANDBOOK}/in/*", f"{own}/inbox/*", f"{_HANDBOOK}/hr/*"})),
    ]


def test_the_route_has_the_authorizer_of_the_others(opened: Synthesized) -> None:
    routes = {
        route["Properties"]["RouteKey"]: route["Properties"]
        for route in opened.resources("AWS::ApiGatewayV2::Route").values()
    }
    ours, theirs = routes["POST /v1/uploads"], routes["POST /v1/ground"]
    assert ours["AuthorizationType"] == "JWT"
    assert ours["AuthorizerId"] == theirs["AuthorizerId"]
    assert ours["ApiId"] == theirs["ApiId"]
    (target,) = (
        each["Properties"]["IntegrationUri"]
        for name, each in opened.resources("AWS::ApiGatewayV2::Integration").items()
        if name in rendered(ours["Target"])
    )
    alias = opened.logical_id("AWS::Lambda::Alias", "Uploading")
    assert target == {"Ref": alias}
    (permission,) = (
        each["Properties"]
        for each in opened.resources("AWS::Lambda::Permission").values()
        if each["Properties"]["FunctionName"] == {"Ref": alias}
    )
    assert permission["Principal"] == "apigateway.amazonaws.com"
    assert rendered(permission["SourceArn"]).endswith("/*/*/v1/uploads")


def test_the_function_is_told_of_every_root_in_s3_and_of_no_table(opened: Synthesized) -> None:
    variables = opened.variables("uploads")
    settings = UploadSettings.model_validate(variables)
    assert [(root.name, root.prefix, root.writers) for root in settings.storage_roots] == [
        ("all", "", ("scope:kb.write",)),
        ("people", "hr", ()),
        ("elsewhere", "hr", ()),
        ("own", "", ("group:authors",)),
    ]
    assert {name for name in variables if name.startswith("GROUNDWIRE_")} == {"GROUNDWIRE_STORAGE_ROOTS"}


def test_the_function_is_its_own_folder_and_nothing_else(opened: Synthesized) -> None:
    asset = opened.asset(opened.function("uploads"))
    assert {path.name for path in asset.iterdir()} == {"uploads"}
    assert (asset / "uploads" / "handler.py").is_file()


def test_what_the_functions_share_is_in_the_layer(opened: Synthesized) -> None:
    (layer,) = (r for name, r in opened.resources("AWS::Lambda::LayerVersion").items() if "Shared" in name)
    packages = opened.asset(layer) / "python"
    assert {path.name for path in packages.iterdir()} == {"groundwire", "groundwire_api"}
    assert (packages / "groundwire_api" / "problems.py").is_file()


def test_other_functions_may_store_no_more_than_before(opened: Synthesized) -> None:
    assert not any("s3:PutObject" in actions for _, actions, _ in _of_documents(opened, "grounding"))


def _of_documents(deployment: Synthesized, folder: str) -> list[Any]:
    buckets = (_HANDBOOK, deployment.own_bucket())
    return [
        each
        for each in statements(deployment, folder)
        if any(resource.startswith(buckets) for resource in each[2])
    ]


@pytest.mark.parametrize("name", ["dev", "prod", "guest"])
def test_without_writers_there_is_no_upload_api(name: str, deployments: Mapping[str, Synthesized]) -> None:
    template = json.dumps(deployments[name].template)
    assert "uploads.handler" not in template
    assert "/v1/uploads" not in template


def test_writers_are_judged_as_readers_are() -> None:
    roots = (StorageRoot(name="kb", writers=("group:a b",)),)
    with pytest.raises(EnvironmentRefused, match="writer 'group:a b'"):
        replace(environment("dev"), storage_roots=roots)
