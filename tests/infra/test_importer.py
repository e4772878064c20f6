"""The importer is deployed where an environment asks for it, and may do what importing takes (X-10)."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from groundwire.adapters.eventbridge import DETAIL_TYPE, SOURCE
from groundwire.limits import IMPORT_CLAIM_S
from groundwire.settings import ImporterSettings
from infra.environments import NAMES, EnvironmentRefused, FileSearch
from infra.stack import GroundwireStack
from tests.infra.synthesized import GUEST, Json, Synthesized, app, rendered

STORE, LISTED = "fileSearchStores/handbook-x1", ("fileSearchStores/faq-y2", "fileSearchStores/hr-z3")
SECRET = "arn:aws:secretsmanager:eu-north-1:111111111111:secret:gemini-AbC123"
IMPORTING = replace(
    GUEST,
    name="importing",
    file_search=FileSearch(api_key_secret="groundwire/gemini", stores=LISTED, import_into=STORE),
)
LISTING = replace(
    GUEST,
    name="listing",
    file_search=FileSearch(api_key_secret=SECRET, stores=LISTED[:1], refresh_schedule="rate(1 hour)"),
)


@pytest.fixture(scope="session")
def searching(tmp_path_factory: pytest.TempPathFactory, empty_layer: Path) -> Mapping[str, Synthesized]:
    """Two deployments by name: one that imports and lists, one that only lists."""
    outdir = tmp_path_factory.mktemp("searching")
    assembly = app(outdir)
    for one in (IMPORTING, LISTING):
        GroundwireStack(assembly, environment=one, dependencies=empty_layer)
    assembly.synth()
    return {one.name: Synthesized.read(outdir, one.name) for one in (IMPORTING, LISTING)}


@pytest.fixture
def importing(searching: Mapping[str, Synthesized]) -> Synthesized:
    return searching["importing"]


def _queue(deployment: Synthesized) -> str:
    return deployment.logical_id("AWS::SQS::Queue", "ImportingQueue")


def _given_up(deployment: Synthesized) -> str:
    return deployment.logical_id("AWS::SQS::Queue", "ImportingGivenUp")


def _rules(deployment: Synthesized) -> list[Json]:
    """The rules that send to the importer's queue."""
    return [
        rule["Properties"]
        for rule in deployment.resources("AWS::Events::Rule").values()
        if rule["Properties"]["Targets"][0]["Arn"] == {"Fn::GetAtt": [_queue(deployment), "Arn"]}
    ]


def _source(deployment: Synthesized) -> Json:
    (found,) = (
        each["Properties"]
        for each in deployment.resources("AWS::Lambda::EventSourceMapping").values()
        if each["Properties"]["EventSourceArn"] == {"Fn::GetAtt": [_queue(deployment), "Arn"]}
    )
    return found


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_it_is_there_unless_it_is_asked_for(
    name: str, deployments: Mapping[str, Synthesized]
) -> None:
    text = json.dumps(deployments[name].template)
    assert "importer.handler" not in text
    assert "secretsmanager" not in text


def test_verdicts_and_schedules_go_to_one_queue(importing: Synthesized) -> None:
    (bus,) = importing.resources("AWS::Events::EventBus")
    rules = _rules(importing)
    heard = [rule for rule in rules if "EventPattern" in rule]
    assert [(rule["EventBusName"], rule["EventPattern"]) for rule in heard] == [
        ({"Ref": bus}, {"source": [SOURCE], "detail-type": [DETAIL_TYPE]})
    ]
    scheduled = {
        rule["ScheduleExpression"] + rule["Targets"][0]["Input"]
        for rule in rules
        if "EventPattern" not in rule
    }
    assert scheduled == {
        'cron(0 4 * * ? *){"sweep":true}',
        'rate(30 minutes){"list":"fileSearchStores/faq-y2"}',
        'rate(30 minutes){"list":"fileSearchStores/hr-z3"}',
    }
    assert importing.template["Outputs"]["ImportQueueUrl"]["Value"] == {"Ref": _queue(importing)}
    for rule in rules:
        (target,) = rule["Targets"]
        assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [_given_up(importing), "Arn"]}}
        assert "InputTransformer" not in target


def test_where_nothing_is_imported_stores_are_listed_and_that_is_all(
    searching: Mapping[str, Synthesized],
) -> None:
    listing = searching["listing"]
    (rule,) = _rules(listing)
    assert (rule["ScheduleExpression"], json.loads(rule["Targets"][0]["Input"])) == (
        "rate(1 hour)",
        {"list": LISTED[0]},
    )
    actions = set().union(*listing.allowed("importer").values())
    assert not [action for action in actions if action.startswith("s3:")]


def test_five_failures_two_weeks_and_one_document_at_a_time(importing: Synthesized) -> None:
    queue = importing.properties("AWS::SQS::Queue", "ImportingQueue")
    assert queue["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": [_given_up(importing), "Arn"]},
        "maxReceiveCount": 5,
    }
    for part in ("ImportingQueue", "ImportingGivenUp"):
        properties = importing.properties("AWS::SQS::Queue", part)
        assert properties["MessageRetentionPeriod"] == 14 * 24 * 3600
        assert properties["SqsManagedSseEnabled"] is True
    source = _source(importing)
    assert (source["BatchSize"], source["FunctionResponseTypes"]) == (1, ["ReportBatchItemFailures"])
    assert source["ScalingConfig"] == {"MaximumConcurrency": 2}
    assert importing.logical_id("AWS::Lambda::Alias", "Importer") in str(source["FunctionName"])


def test_whoever_claims_a_document_is_dead_before_its_claim_is(importing: Synthesized) -> None:
    timeout = importing.function("importer")["Properties"]["Timeout"]
    assert timeout < IMPORT_CLAIM_S
    assert importing.properties("AWS::SQS::Queue", "ImportingQueue")["VisibilityTimeout"] >= 6 * timeout


def test_the_function_is_told_where_and_never_the_key(importing: Synthesized) -> None:
    variables = importing.variables("importer")
    settings = ImporterSettings.model_validate(variables)
    assert (settings.import_store, settings.listed_stores) == (STORE, LISTED)
    assert settings.gemini_key_secret == "groundwire/gemini"
    assert settings.gemini_endpoint is None
    assert settings.import_queue_url == _queue(importing)
    assert settings.dead_letter_queue_url == _given_up(importing)
    assert [root.name for root in settings.storage_roots] == ["handbook", "recipes", "own"]
    assert not [name for name in variables if "KEY" in name and name != "GROUNDWIRE_GEMINI_KEY_SECRET"]


def test_the_function_is_its_own_folder(importing: Synthesized) -> None:
    asset = importing.asset(importing.function("importer"))
    assert (asset / "importer" / "handler.py").is_file()
    assert {path.name for path in asset.iterdir()} == {"importer"}


def test_it_reads_documents_and_writes_what_is_its_own(importing: Synthesized) -> None:
    (table,) = importing.resources("AWS::DynamoDB::GlobalTable")
    own = importing.own_bucket()
    objects = {"s3:GetObject", "s3:GetObjectVersion"}
    assert importing.allowed("importer") == {
        importing.logical_id("AWS::Logs::LogGroup", "ImporterLog"): {
            "logs:CreateLogStream",
            "logs:PutLogEvents",
        },
        "arn:aws:s3:::acme-handbook/published/*": objects,
        "arn:aws:s3:::acme-handbook/recipes/*": objects,
        f"{own}/*": objects,
        "arn:aws:s3:::acme-handbook": {"s3:ListBucket"},
        own: {"s3:ListBucket"},
        table: {
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:DeleteItem",
            "dynamodb:BatchWriteItem",
        },
        _queue(importing): {
            "sqs:SendMessage",
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:GetQueueUrl",
            "sqs:GetQueueAttributes",
        },
        _given_up(importing): {"sqs:SendMessage"},
        "arn:aws:secretsmanager:eu-north-1:111111111111:secret:groundwire/gemini-??????": {
            "secretsmanager:GetSecretValue"
        },
    }


def test_the_index_is_out_of_its_reach(importing: Synthesized) -> None:
    partitions: dict[str, list[str]] = {}
    for statement in _statements(importing):
        for action in statement["Action"]:
            if action.startswith("dynamodb:"):
                assert action not in partitions
                partitions[action] = statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
    own, all_it_reads = ["C#*", "I#*"], ["D#*", "C#*", "I#*"]
    assert partitions == {
        "dynamodb:GetItem": all_it_reads,
        "dynamodb:BatchGetItem": all_it_reads,
        "dynamodb:PutItem": own,
        "dynamodb:DeleteItem": own,
        "dynamodb:BatchWriteItem": own,
    }


def _statements(deployment: Synthesized) -> list[Json]:
    role = deployment.function("importer")["Properties"]["Role"]["Fn::GetAtt"][0]
    return [
        statement | {"Action": [actions] if isinstance(actions := statement["Action"], str) else actions}
        for policy in deployment.resources("AWS::IAM::Policy").values()
        if {"Ref": role} in policy["Properties"]["Roles"]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def test_a_secret_may_be_named_by_its_arn(searching: Mapping[str, Synthesized]) -> None:
    assert searching["listing"].allowed("importer")[SECRET] == {"secretsmanager:GetSecretValue"}


def test_somebody_is_told_of_imports_that_were_given_up(importing: Synthesized) -> None:
    alarm = importing.properties("AWS::CloudWatch::Alarm", "ImportsGivenUp")
    (dimension,) = alarm["Dimensions"]
    assert dimension["Value"] == {"Fn::GetAtt": [_given_up(importing), "QueueName"]}
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
    assert [rendered(action) for action in alarm["AlarmActions"]] == list(
        importing.resources("AWS::SNS::Topic")
    )


def test_nothing_is_left_unexplained(tmp_path: Path, empty_layer: Path) -> None:
    checked: App = app(tmp_path)
    Validations.of(checked).add_plugins(AwsSolutionsChecks(checked))
    elsewhere = replace(IMPORTING, name="elsewhere", account=None, region=None)
    for one in (IMPORTING, LISTING, elsewhere):
        GroundwireStack(checked, environment=one, dependencies=empty_layer)
    checked.synth()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "name stores"),
        ({"stores": ("handbook",)}, "fileSearchStores/<id>"),
        ({"import_into": "fileSearchStores/a/documents/b"}, "fileSearchStores/<id>"),
        ({"stores": (STORE,), "import_into": STORE}, "filled from here"),
        ({"import_into": STORE, "api_key_secret": "arn:aws:secretsmanager:eu-north-1:1:secret:x"}, "ARN"),
    ],
)
def test_what_cannot_work_is_refused(options: Json, problem: str) -> None:
    with pytest.raises(EnvironmentRefused, match=problem):
        FileSearch(**{"api_key_secret": "gemini"} | options)
