"""Every environment is synthesized once per worker process, with an empty folder as its dependency layer."""

import compileall
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from infra.environments import NAMES, environment
from infra.packaging import PROJECT
from infra.stack import GroundwireStack
from tests.infra.synthesized import GUEST, Synthesized, app


@pytest.fixture(scope="session")
def empty_layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dependencies")


@pytest.fixture(scope="session")
def deployments(tmp_path_factory: pytest.TempPathFactory, empty_layer: Path) -> Mapping[str, Synthesized]:
    """What each environment, and `guest`, is synthesized to, by name."""
    # As on any machine that has run the code: bytecode lies about, and must not be shipped.
    for folder in ("functions", "layers/shared"):
        compileall.compile_dir(PROJECT / folder, quiet=1)
    outdir = tmp_path_factory.mktemp("assembly")
    assembly = app(outdir)
    environments = (*(environment(name) for name in NAMES), GUEST)
    for one in environments:
        GroundwireStack(assembly, environment=one, dependencies=empty_layer)
    assembly.synth()
    return {
        one.name: Synthesized(
            outdir, json.loads((outdir / f"groundwire-{one.name}.template.json").read_text())
        )
        for one in environments
    }


@pytest.fixture(params=[*NAMES, GUEST.name])
def any_deployment(request: pytest.FixtureRequest, deployments: Mapping[str, Synthesized]) -> Synthesized:
    return deployments[request.param]


@pytest.fixture
def prod(deployments: Mapping[str, Synthesized]) -> Synthesized:
    return deployments["prod"]


@pytest.fixture
def guest(deployments: Mapping[str, Synthesized]) -> Synthesized:
    return deployments["guest"]
