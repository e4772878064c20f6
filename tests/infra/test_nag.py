"""cdk-nag's AwsSolutions pack: findings are mended, or acknowledged beside the construct with a reason."""

from dataclasses import replace
from pathlib import Path

import pytest
from aws_cdk import App, Stack, Validations
from aws_cdk.aws_s3 import Bucket
from cdk_nag import AwsSolutionsChecks

from infra.environments import EntraApplication, environment
from infra.stack import GroundwireStack
from tests.infra.synthesized import GUEST, app


@pytest.fixture
def checked(tmp_path: Path) -> App:
    """An app whose synthesis fails on a finding that nobody acknowledged."""
    checked = app(tmp_path)
    Validations.of(checked).add_plugins(AwsSolutionsChecks(checked))
    return checked


def test_nothing_is_left_unexplained(checked: App, empty_layer: Path) -> None:
    secret = "arn:aws:secretsmanager:eu-north-1:111111111111:secret:entra-AbC123"
    application = EntraApplication(tenant_id="acme", client_id="groundwire", certificate_secret=secret)
    elsewhere = replace(GUEST, name="elsewhere", account=None, region=None, microsoft=application)
    for one in (environment("dev"), environment("prod"), GUEST, elsewhere):
        GroundwireStack(checked, environment=one, dependencies=empty_layer)
    checked.synth()


def test_the_pack_is_really_run(checked: App) -> None:
    Bucket(Stack(checked, "careless"), "Bucket")
    with pytest.raises(RuntimeError, match="AwsSolutions-S10"):
        checked.synth()
