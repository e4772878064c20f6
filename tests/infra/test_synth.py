"""`npx cdk synth` as a reader runs it: no Docker, no AWS credentials, no warnings."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.packaging import PROJECT


@pytest.mark.parametrize("name", ["dev", "prod"])  # conftest.py synthesizes every environment
def test_as_the_readme_says(name: str, tmp_path: Path) -> None:
    outdir = tmp_path / "cdk.out"
    done = subprocess.run(
        [
            *("npx", "--no-install", "cdk", "synth", "--quiet", "--no-notices"),
            *("-c", f"environment={name}", "--output", str(outdir)),
        ],
        cwd=PROJECT,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    for unwelcome in ("WARNING", "warning", "deprecated", "feature flags"):
        assert unwelcome not in said
    template = json.loads((outdir / f"groundwire-{name}.template.json").read_text())
    assert template["Outputs"]
    assert "AWS::CDK::Metadata" not in str(template)


def _environment(home: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    return ours | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "AWS_CONFIG_FILE": str(home / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DOCKER": "false",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
    }
