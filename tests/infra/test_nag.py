"""cdk-nag's AwsSolutions pack: its findings are mended, or acknowledged beside the construct with a reason."""

import json
from pathlib import Path

from aws_cdk import Validations
from cdk_nag import AwsSolutionsChecks

from infra.environments import environment
from infra.stack import GroundwireStack
from tests.infra.synthesized import GUEST, app


def test_nothing_is_left_unexplained(tmp_path: Path, empty_layer: Path) -> None:
    checked = app(tmp_path)
    Validations.of(checked).add_plugins(AwsSolutionsChecks(checked))
    for one in (environment("dev"), environment("prod"), GUEST):
        GroundwireStack(checked, environment=one, dependencies=empty_layer)
    checked.synth()
    report = json.loads((tmp_path / "validation-report.json").read_text())
    assert {plugin["pluginName"]: plugin["conclusion"] for plugin in report["pluginReports"]}[
        "AwsSolutions"
    ] == "success"
