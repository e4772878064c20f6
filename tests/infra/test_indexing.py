"""No event is lost without a trace: rule, queue, dead letters, partial batch failures (X-8)."""

from collections.abc import Mapping

from tests.infra.synthesized import Json, Synthesized

_TYPES = {"Object Created", "Object Deleted", "Object Restore Completed"}


def _named_rules(deployment: Synthesized) -> dict[str, Json]:
    """The rules that hear of objects, by logical id."""
    rules = deployment.resources("AWS::Events::Rule").items()
    return {
        name: rule["Properties"]
        for name, rule in rules
        if rule["Properties"].get("EventPattern", {}).get("source") == ["aws.s3"]
    }


def _rules(deployment: Synthesized) -> list[Json]:
    return list(_named_rules(deployment).values())


def _queues(deployment: Synthesized) -> tuple[str, str]:
    return (
        deployment.logical_id("AWS::SQS::Queue", "IndexingQueue"),
        deployment.logical_id("AWS::SQS::Queue", "DeadLetters"),
    )


def test_every_object_of_an_own_bucket_is_heard_of(deployments: Mapping[str, Synthesized]) -> None:
    for name in ("dev", "staging", "prod", "local"):
        (rule,) = _rules(deployments[name])
        bucket = deployments[name].own_bucket()
        assert rule["State"] == "ENABLED"
        assert rule["EventPattern"]["source"] == ["aws.s3"]
        assert set(rule["EventPattern"]["detail-type"]) == _TYPES
        assert rule["EventPattern"]["detail"] == {"bucket": {"name": [{"Ref": bucket}]}}


def test_a_root_below_a_prefix_hears_of_that_folder_only(guest: Synthesized) -> None:
    details = [rule["EventPattern"]["detail"] for rule in _rules(guest)]
    assert {"bucket": {"name": ["acme-handbook"]}, "object": {"key": [{"prefix": "published/"}]}} in details
    assert {"bucket": {"name": ["acme-handbook"]}, "object": {"key": [{"prefix": "recipes/"}]}} in details
    assert len(details) == 3


def test_rules_deliver_to_the_queue_and_give_up_into_the_dead_letters(any_deployment: Synthesized) -> None:
    queue, dead_letters = _queues(any_deployment)
    for rule in _rules(any_deployment):
        (target,) = rule["Targets"]
        assert target["Arn"] == {"Fn::GetAtt": [queue, "Arn"]}
        assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [dead_letters, "Arn"]}}
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 185}
        assert "InputPath" not in target
        assert "InputTransformer" not in target


def test_each_rule_may_send_to_both_queues(any_deployment: Synthesized) -> None:
    rules = set(_named_rules(any_deployment))
    for part in ("IndexingQueue", "DeadLetters"):
        statements = any_deployment.properties("AWS::SQS::QueuePolicy", part)["PolicyDocument"]["Statement"]
        senders = [s for s in statements if s["Effect"] == "Allow"]
        assert all(s["Principal"] == {"Service": "events.amazonaws.com"} for s in senders)
        assert rules == {s["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::GetAtt"][0] for s in senders}
        assert any(s["Effect"] == "Deny" and "aws:SecureTransport" in str(s["Condition"]) for s in statements)


def test_five_failures_and_two_weeks(any_deployment: Synthesized) -> None:
    queue, dead_letters = _queues(any_deployment)
    properties = any_deployment.properties("AWS::SQS::Queue", queue)
    assert properties["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": [dead_letters, "Arn"]},
        "maxReceiveCount": 5,
    }
    for name in (queue, dead_letters):
        properties = any_deployment.properties("AWS::SQS::Queue", name)
        assert properties["MessageRetentionPeriod"] == 14 * 24 * 3600
        assert properties["SqsManagedSseEnabled"] is True


def test_a_batch_in_work_is_not_handed_out_again(any_deployment: Synthesized) -> None:
    queue, _ = _queues(any_deployment)
    timeout = any_deployment.function("indexer")["Properties"]["Timeout"]
    assert timeout == 60
    assert any_deployment.properties("AWS::SQS::Queue", queue)["VisibilityTimeout"] >= 6 * timeout


def test_one_bad_record_does_not_fail_its_batch(any_deployment: Synthesized) -> None:
    queue, _ = _queues(any_deployment)
    source = any_deployment.properties("AWS::Lambda::EventSourceMapping")
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source["BatchSize"] == 10
    assert source["EventSourceArn"] == {"Fn::GetAtt": [queue, "Arn"]}
    assert source["ScalingConfig"]["MaximumConcurrency"] >= 2
    alias = any_deployment.logical_id("AWS::Lambda::Alias", "Indexer")
    assert alias in str(source["FunctionName"])


def test_concurrency_is_the_environments(guest: Synthesized) -> None:
    source = guest.properties("AWS::Lambda::EventSourceMapping")
    assert source["ScalingConfig"] == {"MaximumConcurrency": 3}
