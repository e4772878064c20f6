"""Documents and index: a good guest in others' buckets, and nothing lost outside dev."""

from collections.abc import Mapping

import pytest

from tests.infra.synthesized import Synthesized


def test_the_table_is_the_designs(any_deployment: Synthesized) -> None:
    table = any_deployment.properties("AWS::DynamoDB::GlobalTable")
    assert table["KeySchema"] == [
        {"AttributeName": "PK", "KeyType": "HASH"},
        {"AttributeName": "SK", "KeyType": "RANGE"},
    ]
    assert table["AttributeDefinitions"] == [
        {"AttributeName": "PK", "AttributeType": "S"},
        {"AttributeName": "SK", "AttributeType": "S"},
    ]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    (replica,) = table["Replicas"]
    assert replica["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


@pytest.mark.parametrize(
    ("name", "policy"), [("dev", "Delete"), ("staging", "Retain"), ("prod", "Retain"), ("local", "Retain")]
)
def test_what_is_kept_when_a_stack_goes(
    name: str, policy: str, deployments: Mapping[str, Synthesized]
) -> None:
    for kind in ("AWS::S3::Bucket", "AWS::DynamoDB::GlobalTable", "AWS::Logs::LogGroup"):
        for resource in deployments[name].resources(kind).values():
            assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == (policy, policy)
    kinds = {resource["Type"] for resource in deployments[name].template["Resources"].values()}
    assert ("Custom::S3AutoDeleteObjects" in kinds) is (name == "dev")


def test_own_buckets_are_private_encrypted_and_versioned(any_deployment: Synthesized) -> None:
    bucket = any_deployment.properties("AWS::S3::Bucket", "Documents")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert "NotificationConfiguration" not in bucket
    denied = [
        statement
        for statement in any_deployment.properties("AWS::S3::BucketPolicy", "Documents")["PolicyDocument"][
            "Statement"
        ]
        if statement["Effect"] == "Deny"
    ]
    assert [statement["Condition"] for statement in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]


def test_notification_settings_are_merged_never_replaced(guest: Synthesized) -> None:
    merges = [r["Properties"] for r in guest.resources("Custom::S3BucketNotifications").values()]
    own = guest.own_bucket()
    names = [merge["BucketName"] for merge in merges]
    assert len(names) == 2, "two roots in one bucket must not merge at the same moment"
    assert "acme-handbook" in names
    assert {"Ref": own} in names
    for merge in merges:
        assert merge["Managed"] is False
        assert merge["NotificationConfiguration"] == {"EventBridgeConfiguration": {}}


def test_a_hosts_bucket_is_not_part_of_the_stack(guest: Synthesized) -> None:
    buckets = [name for name in guest.resources("AWS::S3::Bucket") if "Documents" in name]
    assert len(buckets) == 1
    for policy in guest.resources("AWS::S3::BucketPolicy").values():
        assert policy["Properties"]["Bucket"] != "acme-handbook"


def test_outputs_say_where_everything_is(any_deployment: Synthesized) -> None:
    assert set(any_deployment.template["Outputs"]) == {
        "ApiUrl",
        "ApiId",
        "TableName",
        "IndexerQueueUrl",
        "DeadLetterQueueUrl",
        "EventBusName",
        "DocumentsBucket",
        "IndexerFunctionName",
        "GroundingFunctionName",
        "ReindexStateMachines",
    }


def test_the_documents_bucket_is_the_first_roots(prod: Synthesized, guest: Synthesized) -> None:
    own = prod.own_bucket()
    assert prod.template["Outputs"]["DocumentsBucket"]["Value"] == {"Ref": own}
    assert guest.template["Outputs"]["DocumentsBucket"]["Value"] == "acme-handbook"


def test_queue_outputs_are_not_mixed_up(prod: Synthesized) -> None:
    outputs = prod.template["Outputs"]
    queue = prod.logical_id("AWS::SQS::Queue", "IndexingQueue")
    assert outputs["IndexerQueueUrl"]["Value"] == {"Ref": queue}
    assert outputs["DeadLetterQueueUrl"]["Value"] == {
        "Ref": prod.logical_id("AWS::SQS::Queue", "DeadLetters")
    }
