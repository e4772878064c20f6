"""What is shipped is there and is all of it: an asset that is empty in silence is the usual way to fail."""

from pathlib import Path

import pytest

from tests.infra.synthesized import Synthesized


def _files(asset: Path) -> set[str]:
    return {path.relative_to(asset).as_posix() for path in asset.rglob("*") if path.is_file()}


@pytest.mark.parametrize("folder", ["indexer", "grounding", "reindex"])
def test_a_function_is_its_own_folder_and_nothing_else(folder: str, prod: Synthesized) -> None:
    asset = prod.asset(prod.function(folder))
    files = _files(asset)
    assert f"{folder}/handler.py" in files
    assert {path.name for path in asset.iterdir()} == {folder}
    assert not [name for name in files if "__pycache__" in name or name.endswith(".pyc")]


def test_the_shared_layer_is_the_package(prod: Synthesized) -> None:
    (layer,) = (r for name, r in prod.resources("AWS::Lambda::LayerVersion").items() if "Shared" in name)
    asset = prod.asset(layer)
    files = _files(asset)
    assert {path.name for path in asset.iterdir()} == {"python"}
    assert {"python/groundwire/__init__.py", "python/groundwire/adapters/__init__.py"} <= files
    assert not [name for name in files if "__pycache__" in name or name.endswith(".pyc")]
