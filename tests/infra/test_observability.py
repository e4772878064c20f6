"""Somebody is told of lost and late events, drift, broken-off runs and failing answers, by mail."""

from reindex.handler import metrics
from tests.infra.synthesized import Json, Synthesized

ONCE = {
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "Maximum"),
    ("AWS/Lambda", "Errors", "FunctionName", "Sum"),
    ("AWS/Lambda", "Throttles", "FunctionName", "Sum"),
    ("AWS/States", "ExecutionsFailed", "StateMachineArn", "Sum"),
    ("AWS/States", "ExecutionsTimedOut", "StateMachineArn", "Sum"),
    ("AWS/States", "ExecutionsAborted", "StateMachineArn", "Sum"),
    ("Groundwire", "Drift", "service", "Sum"),
    ("AWS/ApiGateway", "5xx", "ApiId", "Sum"),
}
LATE = ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "Maximum")


def alarms(deployment: Synthesized) -> list[Json]:
    return [each["Properties"] for each in deployment.resources("AWS::CloudWatch::Alarm").values()]


def watched(alarm: Json) -> tuple[str, ...]:
    (dimension,) = alarm["Dimensions"]
    return alarm["Namespace"], alarm["MetricName"], dimension["Name"], alarm["Statistic"]


def test_each_alarm_is_at_the_first_occurrence(any_deployment: Synthesized) -> None:
    found = alarms(any_deployment)
    assert {watched(alarm) for alarm in found} == {*ONCE, LATE}
    for alarm in found:
        assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
        assert (alarm["Threshold"] == 0) == (watched(alarm) != LATE)
        assert (alarm["TreatMissingData"], alarm["EvaluationPeriods"]) == ("notBreaching", 1)
        assert alarm["AlarmDescription"]


def test_a_record_that_is_tried_again_does_not_count_as_a_late_one(any_deployment: Synthesized) -> None:
    (late,) = (alarm for alarm in alarms(any_deployment) if watched(alarm) == LATE)
    name = any_deployment.logical_id("AWS::SQS::Queue", "IndexingQueue")
    queue = any_deployment.properties("AWS::SQS::Queue", "IndexingQueue")
    assert late["Dimensions"][0]["Value"] == {"Fn::GetAtt": [name, "QueueName"]}
    assert late["Threshold"] >= queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"]
    assert late["Threshold"] < queue["MessageRetentionPeriod"] / 100


def test_drift_is_what_the_reconcile_counts(prod: Synthesized) -> None:
    (drift,) = (alarm for alarm in alarms(prod) if alarm["MetricName"] == "Drift")
    assert drift["Namespace"] == metrics.namespace
    assert drift["Dimensions"] == [{"Name": "service", "Value": metrics.service}]


def test_a_run_over_any_root_that_does_not_succeed_is_told(guest: Synthesized) -> None:
    machines = guest.resources("AWS::StepFunctions::StateMachine")
    runs = [alarm for alarm in alarms(guest) if alarm["Namespace"] == "AWS/States"]
    for outcome in ("Failed", "TimedOut", "Aborted"):
        told = [
            each["Dimensions"][0]["Value"] for each in runs if each["MetricName"] == f"Executions{outcome}"
        ]
        assert sorted(value["Ref"] for value in told) == sorted(machines)
    for root in ("handbook", "recipes", "own"):
        assert sum(f"over {root} " in each["AlarmDescription"] for each in runs) == 3


def test_the_dead_letters_are_what_is_watched(prod: Synthesized) -> None:
    dead_letters = prod.logical_id("AWS::SQS::Queue", "DeadLetters")
    (dimension,) = prod.properties("AWS::CloudWatch::Alarm", "DeadLetters")["Dimensions"]
    assert dimension["Value"] == {"Fn::GetAtt": [dead_letters, "QueueName"]}


def test_mail_goes_to_the_address_and_nowhere_without_one(guest: Synthesized, prod: Synthesized) -> None:
    assert guest.properties("AWS::SNS::Subscription")["Endpoint"] == "operations@example.com"
    (topic,) = guest.resources("AWS::SNS::Topic")
    for alarm in guest.resources("AWS::CloudWatch::Alarm").values():
        assert alarm["Properties"]["AlarmActions"] == [{"Ref": topic}]
    assert "AWS::SNS::" not in str(prod.template)
    for alarm in prod.resources("AWS::CloudWatch::Alarm").values():
        assert "AlarmActions" not in alarm["Properties"]


def test_alarms_may_publish_on_the_topic_that_mails(guest: Synthesized) -> None:
    policy = guest.properties("AWS::SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    allowed = {each["Principal"]["Service"]: each for each in policy if each["Effect"] == "Allow"}
    assert set(allowed) == {"cloudwatch.amazonaws.com", "events.amazonaws.com"}
    for statement in allowed.values():
        assert statement["Action"] == "sns:Publish"
    (denied,) = (each for each in policy if each["Effect"] == "Deny")
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert allowed["cloudwatch.amazonaws.com"]["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "111111111111"}
    }
