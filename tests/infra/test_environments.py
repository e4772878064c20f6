"""Environments are values: known by name, consistent, and careful with what they keep."""

import pytest

from infra.app import main
from infra.environments import NAMES, Environment, EnvironmentRefused, Limits, StorageRoot, environment

_LIMITS = Limits(indexer_concurrency=2, requests_per_second=1, request_burst=1)


def test_four_are_known() -> None:
    assert set(NAMES) == {"dev", "staging", "prod", "local"}
    assert [environment(name).name for name in NAMES] == list(NAMES)


@pytest.mark.parametrize("name", ["prdo", "", "Dev", None])
def test_unknown_name_is_refused_with_the_known_ones(name: str | None) -> None:
    with pytest.raises(EnvironmentRefused, match="dev, staging, prod, local"):
        environment(name)


@pytest.mark.parametrize("context", ["{}", '{"environment": "prdo"}'])
def test_the_app_ends_with_one_sentence(context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_CONTEXT_JSON", context)
    with pytest.raises(SystemExit, match=r"^groundwire: .*the known ones are dev, staging, prod, local$"):
        main()


def test_a_bucket_in_another_region_is_refused() -> None:
    with pytest.raises(EnvironmentRefused, match="us-east-1"):
        Environment(
            name="there",
            region="eu-west-1",
            storage_roots=(StorageRoot(name="kb", bucket="b", region="us-east-1"),),
            limits=_LIMITS,
        )


def test_a_deployment_without_documents_is_refused() -> None:
    with pytest.raises(EnvironmentRefused, match="storage root"):
        Environment(name="nothing", storage_roots=(), limits=_LIMITS)


def test_the_region_of_a_root_may_be_said_when_it_is_the_deployments() -> None:
    Environment(
        name="here",
        region="eu-west-1",
        storage_roots=(StorageRoot(name="kb", bucket="b", region="eu-west-1"),),
        limits=_LIMITS,
    )


def test_a_root_ends_at_a_slash() -> None:
    assert StorageRoot(name="kb", prefix="kb").folder == "kb/"
    assert StorageRoot(name="kb").folder == ""


def test_local_is_this_machine_and_the_others_are_graviton() -> None:
    assert {name: environment(name).architecture for name in NAMES} == {
        "dev": "arm64",
        "staging": "arm64",
        "prod": "arm64",
        "local": "x86_64",
    }
    assert (environment("local").account, environment("local").region) == ("000000000000", "eu-west-1")
