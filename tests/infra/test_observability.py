"""Somebody is told of lost events and failing answers, by mail where there is an address."""

from tests.infra.synthesized import Synthesized


def test_four_alarms_at_the_first_occurrence(any_deployment: Synthesized) -> None:
    alarms = [alarm["Properties"] for alarm in any_deployment.resources("AWS::CloudWatch::Alarm").values()]
    watched = {
        (alarm["Namespace"], alarm["MetricName"], alarm["Dimensions"][0]["Name"], alarm["Statistic"])
        for alarm in alarms
    }
    assert watched == {
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "Maximum"),
        ("AWS/Lambda", "Errors", "FunctionName", "Sum"),
        ("AWS/Lambda", "Throttles", "FunctionName", "Sum"),
        ("AWS/ApiGateway", "5xx", "ApiId", "Sum"),
    }
    for alarm in alarms:
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
        assert alarm["TreatMissingData"] == "notBreaching"


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
