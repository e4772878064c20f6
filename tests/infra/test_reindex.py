"""Every root can be looked at again, by hand and by the clock, without losing what one batch fails (X-9)."""

import json
from collections.abc import Mapping

import pytest

from infra.environments import NAMES, environment
from tests.infra.synthesized import Json, Synthesized, rendered


def _definition(deployment: Synthesized, root: str) -> Json:
    machine = deployment.properties("AWS::StepFunctions::StateMachine", f"Reindexing{root}")
    return json.loads(rendered(machine["DefinitionString"]))


def test_one_state_machine_for_each_root(guest: Synthesized) -> None:
    machines = {
        root: guest.logical_id("AWS::StepFunctions::StateMachine", f"Reindexing{root}")
        for root in ("handbook", "recipes", "own")
    }
    assert len(guest.resources("AWS::StepFunctions::StateMachine")) == 3
    assert json.loads(rendered(guest.template["Outputs"]["ReindexStateMachines"]["Value"])) == machines


def test_objects_of_the_root_are_listed_and_handed_over_in_batches(guest: Synthesized) -> None:
    states = _definition(guest, "handbook")["States"]
    assert states["Begin"]["Parameters"]["listed.$"] == "States.Format('published/{}', $.prefix)"
    documents = states["Documents"]
    assert documents["ItemReader"]["Resource"].endswith(":states:::s3:listObjectsV2")
    assert documents["ItemReader"]["Parameters"] == {"Bucket": "acme-handbook", "Prefix.$": "$.listed"}
    assert documents["ItemSelector"] == {"root": "handbook", "Key.$": "$$.Map.Item.Value.Key"}
    assert documents["ItemBatcher"] == {"MaxItemsPerBatch": 50}
    assert documents["MaxConcurrency"] == 10
    assert documents["ItemProcessor"]["ProcessorConfig"] == {
        "Mode": "DISTRIBUTED",
        "ExecutionType": "EXPRESS",
    }
    own = _definition(guest, "own")["States"]
    assert own["Documents"]["ItemReader"]["Parameters"]["Bucket"] == guest.own_bucket()
    assert own["Begin"]["Parameters"]["listed.$"] == "States.Format('{}', $.prefix)"


def test_a_batch_is_tried_again_and_few_failures_do_not_end_a_run(prod: Synthesized) -> None:
    documents = _definition(prod, "kb")["States"]["Documents"]
    assert documents["ToleratedFailurePercentage"] == 5
    (retry,) = documents["ItemProcessor"]["States"]["Index"]["Retry"]
    assert {"Unavailable", "Lambda.TooManyRequestsException"} <= set(retry["ErrorEquals"])
    assert (retry["MaxAttempts"], retry["BackoffRate"], retry["JitterStrategy"]) == (5, 2, "FULL")
    # an express execution ends after five minutes
    assert prod.function("reindex")["Properties"]["Timeout"] * 2 < 300


def test_results_of_any_number_of_batches_fit(prod: Synthesized) -> None:
    writer = _definition(prod, "kb")["States"]["Documents"]["ResultWriter"]
    assert writer["Parameters"]["Bucket"] == prod.logical_id("AWS::S3::Bucket", "Results")
    assert writer["WriterConfig"] == {"OutputType": "JSONL", "Transformation": "COMPACT"}
    (rule,) = prod.properties("AWS::S3::Bucket", "Results")["LifecycleConfiguration"]["Rules"]
    assert (rule["ExpirationInDays"], rule["Status"]) == (7, "Enabled")


def test_the_index_is_then_looked_through_to_its_end(prod: Synthesized) -> None:
    states = _definition(prod, "kb")["States"]
    assert (states["Begin"]["Next"], states["Documents"]["Next"]) == ("Documents", "Reconcile")
    assert states["Documents"]["ResultPath"] == "$.results"
    assert states["Reconcile"]["Resource"] == prod.logical_id("AWS::Lambda::Alias", "Reconciler")
    assert states["Documents"]["ItemProcessor"]["States"]["Index"]["Resource"] == prod.logical_id(
        "AWS::Lambda::Alias", "Worker"
    )
    after = states[states["Reconcile"]["Next"]]
    assert after["Choices"] == [{"Variable": "$.cursor", "IsNull": True, "Next": "Done"}]
    assert after["Default"] == "Reconcile"
    for step in (states["Reconcile"], states["Documents"]["ItemProcessor"]["States"]["Index"]):
        assert "Parameters" not in step


def test_logs_say_what_failed_without_saying_about_what(any_deployment: Synthesized) -> None:
    for machine in any_deployment.resources("AWS::StepFunctions::StateMachine").values():
        logging = machine["Properties"]["LoggingConfiguration"]
        assert (logging["Level"], logging["IncludeExecutionData"]) == ("ERROR", False)


@pytest.mark.parametrize("name", NAMES)
def test_reconciled_every_night_except_on_this_machine(
    name: str, deployments: Mapping[str, Synthesized]
) -> None:
    rules = [
        rule["Properties"]
        for rule in deployments[name].resources("AWS::Events::Rule").values()
        if "ScheduleExpression" in rule["Properties"]
    ]
    scheduled = environment(name).reconcile_schedule
    assert [rule["ScheduleExpression"] for rule in rules] == ([scheduled] if scheduled else [])
    assert (scheduled is None) is (name == "local")
    for rule in rules:
        (target,) = rule["Targets"]
        assert json.loads(target["Input"]) == {"root": "kb", "prefix": ""}
        assert target["Arn"] == {
            "Ref": deployments[name].logical_id("AWS::StepFunctions::StateMachine", "Reindexingkb")
        }


def test_an_existing_bucket_is_indexed_when_its_root_comes_in(guest: Synthesized, prod: Synthesized) -> None:
    """Once a root, after its events arrive; a bucket of ours is empty then."""
    runs = guest.resources("Custom::AWS")
    started = {}
    for run in runs.values():
        call = json.loads(rendered(run["Properties"]["Create"]))
        assert (call["service"], call["action"]) == ("SFN", "startExecution")
        assert not run["Properties"].keys() & {"Update", "Delete"}
        name = json.loads(call["parameters"]["input"])["root"]
        started[name] = call["parameters"]["stateMachineArn"]
        needed = set(run["DependsOn"])
        assert needed >= set(guest.resources("Custom::S3BucketNotifications"))
        assert needed >= set(guest.resources("AWS::Lambda::EventSourceMapping"))
    machines = guest.resources("AWS::StepFunctions::StateMachine")
    assert set(started) == {"handbook", "recipes"}
    assert set(started.values()) < set(machines)
    assert "Custom::AWS" not in {resource["Type"] for resource in prod.template["Resources"].values()}


def test_the_first_run_may_start_its_machine_and_nothing_else(guest: Synthesized) -> None:
    functions = guest.resources("AWS::Lambda::Function")
    (function,) = (name for name in functions if name.startswith("AWS679f53fac"))
    role = guest.template["Resources"][function]["Properties"]["Role"]["Fn::GetAtt"][0]
    allowed = {
        rendered(statement["Resource"]): statement["Action"]
        for policy in guest.resources("AWS::IAM::Policy").values()
        if {"Ref": role} in policy["Properties"]["Roles"]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    }
    assert set(allowed.values()) == {"states:StartExecution"}
    assert len(allowed) == 2
