"""What is imported and what is not: cold starts and the command line pay for every library."""

import json
import subprocess
import sys

import pytest

import groundwire

CLOUDS = ("boto3", "botocore", "obstore", "google", "httpx2", "msal")
HEAVY = (*CLOUDS, "pydantic", "aws_lambda_powertools", "rich")


def imported(*modules: str) -> list[str]:
    """The heavy libraries that a fresh interpreter has after importing these."""
    code = (
        f"import sys, json\nfor name in {modules!r}: __import__(name)\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return list(json.loads(run.stdout))


@pytest.mark.parametrize(
    "modules",
    [
        ("groundwire.composition", "groundwire.grounding", "groundwire.delivery", "groundwire.shapes"),
        ("groundwire.indexing", "groundwire.graph", "groundwire.resolution"),
        ("groundwire.importing", "groundwire.listing"),
        ("groundwire_cli.main",),
    ],
    ids=["search", "index", "import", "command-line"],
)
def test_the_core_and_the_command_line_import_nothing_heavy(modules: tuple[str, ...]) -> None:
    assert imported(*modules) == []


def test_the_functions_import_nothing_of_google() -> None:
    """X-10: that would be half a second to a second and a half of a cold start."""
    functions = imported("indexer.messages", "indexer.wiring", "grounding.wiring", "grounding.application")
    assert not {"google", "httpx2", "msal", "rich"} & set(functions)


def test_signing_uploads_takes_aws_and_little_else() -> None:
    assert set(imported("uploads.handler")) == {"boto3", "botocore", "pydantic", "aws_lambda_powertools"}


def test_cloud_storage_imports_nothing_of_google_before_there_is_a_root_in_it() -> None:
    """google-auth and an HTTP client are another fifth of a second."""
    assert imported("groundwire.adapters.gcs") == ["obstore"]


def test_importing_the_package_imports_none_of_it() -> None:
    code = "import sys, groundwire; print([name for name in sys.modules if name.startswith('groundwire.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"


def test_every_name_of_the_seeds_is_exported() -> None:
    """P-1."""
    assert {"CompositionLoader", "CanonicalGroundingService", "SkippedInclude"} <= set(groundwire.__all__)
    for name in groundwire.__all__:
        # The union of the pointers has no name of its own.
        assert getattr(getattr(groundwire, name), "__name__", name) in (name, "Union")
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = groundwire.Nothing
