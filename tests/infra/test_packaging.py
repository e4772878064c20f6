"""The dependency layer holds what the functions import, for Lambda, and is whole or not there."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from infra import packaging
from infra.packaging import PROJECT, PackagingFailed, dependency_layer

_IMPORTS = """
import sys
sys.path += sys.argv[1:]
import aws_lambda_powertools.event_handler, boto3, obstore, orjson, pydantic, yaml
import aws_lambda_powertools.utilities.batch, aws_lambda_powertools.utilities.parser
import groundwire, importer.handler, indexer.handler, grounding.handler, reindex.handler, uploads.handler
from importlib.metadata import version
assert yaml.__with_libyaml__, "yaml without its C parser"
assert version("boto3") and version("aws-lambda-powertools")
for module in list(sys.modules.values()):
    home = getattr(module, "__file__", None) or ""
    assert "site-packages" not in home, home
    if home.startswith(sys.argv[1]) and home.endswith(".py"):
        assert module.__cached__ and __import__("os").path.exists(module.__cached__), home
print(obstore.__file__)
"""

_UV = """
import pathlib, sys, time
if "export" in sys.argv:
    print("nothing==1")
else:
    target = pathlib.Path(sys.argv[sys.argv.index("--target") + 1])
    (target / "module.py").write_text("answer = 42")
    (target / "module.pyi").write_text("answer: int")
    (target / "tests").mkdir()
    time.sleep({seconds})
    sys.exit({status})
"""


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a uv of ours in uv's place, one that installs a module of its own and then ends as told."""

    def installed(*, status: str = "0", seconds: float = 0) -> None:
        script = tmp_path / "uv.py"
        script.write_text(_UV.format(status=status, seconds=seconds))
        monkeypatch.setattr(packaging, "_uv", lambda: [sys.executable, str(script)])

    return installed


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def _left_in(project: Path) -> list[str]:
    return sorted(path.name for path in (project / ".build").iterdir())


def test_layers_and_functions_need_nothing_else_to_import() -> None:
    layer = dependency_layer("x86_64")
    done = subprocess.run(
        [
            *(sys.executable, "-I", "-S", "-B", "-c", _IMPORTS),
            *(str(layer / "python"), str(PROJECT / "layers/shared/python"), str(PROJECT / "functions")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(layer))


def test_what_lambda_gets_is_for_graviton_and_pruned() -> None:
    packages = dependency_layer("arm64") / "python"
    compiled = [path.name for path in packages.rglob("*.so") if "linux-gnu" in path.name]
    assert "_yaml.cpython-313-aarch64-linux-gnu.so" in compiled
    assert not [name for name in compiled if "x86_64" in name]
    assert not list(packages.rglob("*.pyi"))
    assert not [path for path in packages.rglob("tests") if path.is_dir()]
    assert list(packages.glob("pydantic-*.dist-info"))


def test_a_second_build_is_the_first(project: Path, uv: Callable[..., None]) -> None:
    uv()
    layer = dependency_layer("arm64", project=project)
    bytecode = list((layer / "python" / "__pycache__").iterdir())
    assert [path.name for path in bytecode] == ["module.cpython-313.pyc"]
    # the flags of PEP 552: hash-based, source not checked
    assert bytecode[0].read_bytes()[4:8] == b"\x01\x00\x00\x00"
    assert not (layer / "python" / "module.pyi").exists()
    assert not (layer / "python" / "tests").exists()
    uv(status="'must not be asked to install again'")
    assert dependency_layer("arm64", project=project) == layer
    assert _left_in(project) == [layer.name]


def test_platforms_do_not_share_a_folder(project: Path, uv: Callable[..., None]) -> None:
    uv()
    assert dependency_layer("arm64", project=project) != dependency_layer("x86_64", project=project)


@pytest.mark.parametrize("status", ["'no such wheel'", "3"])
def test_a_failed_build_leaves_nothing_behind(project: Path, uv: Callable[..., None], status: str) -> None:
    uv(status=status)
    with pytest.raises(PackagingFailed, match="the dependency layer could not be built"):
        dependency_layer("arm64", project=project)
    assert _left_in(project) == []
    uv()
    assert (dependency_layer("arm64", project=project) / "python" / "module.py").exists()


def test_what_an_interrupted_build_left_is_not_trusted(
    project: Path, uv: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    uv()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(packaging, "_build", interrupted)
        with pytest.raises(KeyboardInterrupt):
            dependency_layer("arm64", project=project)
    (project / ".build" / "building-killed").mkdir()
    layer = dependency_layer("arm64", project=project)
    assert (layer / "python" / "module.py").exists()


def test_two_builds_at_once_end_in_one_layer(project: Path, uv: Callable[..., None]) -> None:
    uv(seconds=0.5)
    layers: list[Path] = []
    builds = [
        threading.Thread(target=lambda: layers.append(dependency_layer("arm64", project=project)))
        for _ in range(2)
    ]
    for build in builds:
        build.start()
    for build in builds:
        build.join()
    assert len(layers) == 2
    assert layers[0] == layers[1]
    assert _left_in(project) == [layers[0].name]


def test_without_uv_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(PackagingFailed, match="pip install uv"):
        dependency_layer("arm64", project=project)
