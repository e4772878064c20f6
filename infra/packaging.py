"""What is shipped to Lambda: the wheels of the lock, our own package, and the functions' folders.

The dependency layer is built without Docker: uv installs, for Lambda's platform, exactly what uv.lock says.
Its folder is named by a hash of what went into it and appears by one rename, so a folder with the right name
is whole, however many builds ran or failed beside it.
"""

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from aws_cdk import IgnoreMode
from aws_cdk.aws_lambda import AssetCode, Code

PROJECT = Path(__file__).resolve().parents[1]

# Lambda's python3.13 runs on Amazon Linux 2023, glibc 2.34; obstore has no older wheels than 2_28.
_PLATFORMS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}

# *.dist-info stays: versions are read from it at run time.
_PRUNED = ("**/tests", "**/*.pyi")

# The CDK command line forces colours on everything below it, and uv then colours what pip has to read.
_PLAIN = ("--no-header", "--no-annotate", "--color", "never", "--quiet")


class PackagingFailed(Exception):
    """A layer that could not be built; the text is one sentence and what the tool said."""


def dependency_layer(architecture: str, *, project: Path = PROJECT) -> Path:
    """The folder of the dependency layer (`python/` inside), built from the lock if it is not there."""
    uv = _uv()
    requirements = _run(
        [*uv, "export", "--frozen", "--no-default-groups", "--no-emit-project", *_PLAIN], project
    )
    install = _install_arguments(_PLATFORMS[architecture])
    recipe = json.dumps([requirements, install, _PRUNED])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    layer = project / ".build" / f"dependencies-{architecture}-{digest}"
    if layer.is_dir():
        return layer
    layer.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=layer.parent, prefix="building-") as scratch:
        built = Path(scratch, "layer")
        _build(built, [*uv, *install], requirements, project)
        try:
            built.rename(layer)
        except OSError:
            # Another build of the same recipe was faster; anything else is an error of the file system.
            if not layer.is_dir():
                raise
    return layer


def shared_layer() -> AssetCode:
    """Our own package; what Python cached on this machine stays here."""
    return Code.from_asset(
        str(PROJECT / "layers" / "shared"), exclude=["__pycache__"], ignore_mode=IgnoreMode.GIT
    )


def function_code(name: str) -> AssetCode:
    """One function's folder, under its own name: the handler is `<name>.handler.handler`."""
    # The slashes matter: "*" matches at every depth, and "!name" brings back an empty folder, in silence.
    return Code.from_asset(
        str(PROJECT / "functions"),
        exclude=["/*", f"!/{name}", "__pycache__"],
        ignore_mode=IgnoreMode.GIT,
    )


def _install_arguments(platform: str) -> list[str]:
    return [
        *("pip", "install", "--quiet", "--color", "never", "--no-installer-metadata", "--link-mode", "copy"),
        *("--python-platform", platform, "--python-version", "3.13", "--only-binary", ":all:"),
    ]


def _build(layer: Path, install: list[str], requirements: str, project: Path) -> None:
    packages = layer / "python"
    packages.mkdir(parents=True)
    listing = layer.parent / "requirements.txt"
    listing.write_text(requirements)
    _run(
        [*install, "--python", sys.executable, "--requirement", str(listing), "--target", str(packages)],
        project,
    )
    for pattern in _PRUNED:
        for path in packages.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    # Without bytecode in this read-only layer each cold start compiles: 867 ms for boto3, 274 with it. The
    # zip resets modification times, so the bytecode must not be checked against them.
    _run(
        [
            *(sys.executable, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(packages), "-p", "/opt/python", str(packages)),
        ],
        project,
    )


def _uv() -> list[str]:
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    if found := shutil.which("uv"):
        return [found]
    raise PackagingFailed("uv builds the dependency layer and is not here: python -m pip install uv")


def _run(command: list[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise PackagingFailed(
            f"the dependency layer could not be built, {Path(command[0]).name} said: {said}"
        )
    return done.stdout
