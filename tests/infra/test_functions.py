"""What every function has, and that the environment CDK writes is the one the function reads."""

import json
from collections.abc import Mapping

import pytest

from groundwire.settings import GroundingSettings, IndexerSettings, ReindexSettings
from infra.environments import NAMES, environment
from tests.infra.synthesized import Synthesized

_FOLDERS = ("indexer", "grounding", "reindex")


@pytest.mark.parametrize("folder", _FOLDERS)
@pytest.mark.parametrize("name", NAMES)
def test_runtime_platform_and_logs(name: str, folder: str, deployments: Mapping[str, Synthesized]) -> None:
    deployment, declared = deployments[name], environment(name)
    function = deployment.function(folder)["Properties"]
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == [declared.architecture]
    assert len(function["Layers"]) == 2
    assert ("SnapStart" in function) is declared.snap_start
    log = deployment.template["Resources"][function["LoggingConfig"]["LogGroup"]["Ref"]]
    assert log["Type"] == "AWS::Logs::LogGroup"
    assert log["Properties"]["RetentionInDays"] >= 1


def test_snap_start_is_for_where_people_wait(deployments: Mapping[str, Synthesized]) -> None:
    on = {
        name
        for name in NAMES
        if deployments[name].function("grounding")["Properties"].get("SnapStart")
        == {"ApplyOn": "PublishedVersions"}
    }
    assert on == {"staging", "prod"}


def test_layers_fit_the_functions(any_deployment: Synthesized) -> None:
    platform = any_deployment.function("indexer")["Properties"]["Architectures"]
    layers = any_deployment.resources("AWS::Lambda::LayerVersion")
    for layer in layers.values():
        assert layer["Properties"]["CompatibleRuntimes"] == ["python3.13"]
        assert layer["Properties"]["CompatibleArchitectures"] == platform
    for folder in _FOLDERS:
        used = {layer["Ref"] for layer in any_deployment.function(folder)["Properties"]["Layers"]}
        assert used == set(layers)


def test_grounding_answers_before_the_api_gives_up(any_deployment: Synthesized) -> None:
    assert any_deployment.function("grounding")["Properties"]["Timeout"] == 29


@pytest.mark.parametrize("folder", _FOLDERS)
def test_powertools_is_told_who_speaks_and_never_to_print_events(
    folder: str, any_deployment: Synthesized
) -> None:
    variables = any_deployment.variables(folder)
    assert {name: value for name, value in variables.items() if name.startswith("POWERTOOLS_")} == {
        "POWERTOOLS_SERVICE_NAME": folder,
        "POWERTOOLS_METRICS_NAMESPACE": "Groundwire",
        "POWERTOOLS_LOG_LEVEL": "INFO",
    }


def test_the_environment_is_what_the_functions_read(guest: Synthesized) -> None:
    grounding = GroundingSettings.model_validate(guest.variables("grounding"))
    indexer = IndexerSettings.model_validate(guest.variables("indexer"))
    own = guest.own_bucket()
    in_aws, external = grounding.storage_roots[:3], grounding.storage_roots[3:]
    assert indexer.storage_roots == grounding.storage_roots
    for entry in ("handler", "reconcile"):
        again = ReindexSettings.model_validate(guest.variables("reindex", entry))
        same = ReindexSettings.model_validate(indexer.environment())
        assert again == same.model_copy(update={"storage_roots": in_aws})
    assert {root.source_type for root in external} == {"gcs", "sharepoint"}
    assert [(root.name, root.bucket, root.prefix, root.readers) for root in in_aws] == [
        ("handbook", "acme-handbook", "published", ("group:staff",)),
        ("recipes", "acme-handbook", "recipes", ()),
        ("own", own, "", ()),
    ]
    assert [(root.inbox_prefix, root.inbox_destinations) for root in in_aws] == [
        ("in/", ("sops", "shared")),
        ("inbox/", ()),
        ("inbox/", ()),
    ]
    assert grounding.debug_callers == ("group:operations",)
    (table,) = guest.resources("AWS::DynamoDB::GlobalTable")
    assert indexer.table == grounding.table == table
    assert indexer.dead_letter_queue_url == guest.logical_id("AWS::SQS::Queue", "DeadLetters")
    queue = guest.logical_id("AWS::SQS::Queue", "IndexingQueue")
    assert indexer.index_queue_url == grounding.index_queue_url == queue
    assert indexer.event_bus == guest.logical_id("AWS::Events::EventBus", "Verdicts")


def test_names_not_known_before_deployment_are_joined_into_the_json(prod: Synthesized) -> None:
    own = prod.own_bucket()
    for folder in _FOLDERS:
        value = prod.function(folder)["Properties"]["Environment"]["Variables"]["GROUNDWIRE_STORAGE_ROOTS"]
        assert {"Ref": own} in value["Fn::Join"][1]
        (root,) = json.loads(prod.variables(folder)["GROUNDWIRE_STORAGE_ROOTS"])
        assert root["bucket"] == own
    assert "TOKEN" not in json.dumps(prod.template)
