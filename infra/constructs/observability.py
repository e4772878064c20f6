"""What somebody should be told about; everything else is in the logs and metrics."""

from collections.abc import Mapping

from aws_cdk import Duration, Stack
from aws_cdk.aws_apigatewayv2 import HttpApi
from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, IMetric, TreatMissingData
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_iam import PolicyStatement, ServicePrincipal
from aws_cdk.aws_lambda import Function
from aws_cdk.aws_sns import Topic
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from aws_cdk.aws_sqs import Queue
from constructs import Construct

_PERIOD = Duration.minutes(5)


class Observability(Construct):
    """Alarms on lost events, a failing or throttled indexer and 5xx answers; mail if there is an address.

    `topic` is what mails; None where there is no address.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        dead_letters: Queue,
        indexer: Function,
        api: HttpApi,
        alarms_address: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        alarms = self._alarms(
            {
                "DeadLetters": (
                    dead_letters.metric_approximate_number_of_messages_visible(period=_PERIOD),
                    "Events that were given up: mend the cause, then redrive the dead-letter queue.",
                ),
                "IndexerErrors": (
                    indexer.metric_errors(period=_PERIOD),
                    "The indexer ends with an error: a fault in the code or a dependency that is away.",
                ),
                "IndexerThrottles": (
                    indexer.metric_throttles(period=_PERIOD),
                    "The indexer is refused concurrency: uploads are indexed late.",
                ),
                "ApiServerErrors": (
                    api.metric_server_error(period=_PERIOD, statistic="Sum"),
                    "Callers get 5xx answers.",
                ),
            }
        )
        self.topic = self._mailing(alarms_address) if alarms_address else None
        if self.topic:
            for alarm in alarms:
                alarm.add_alarm_action(SnsAction(self.topic))

    def _mailing(self, address: str) -> Topic:
        topic = Topic(self, "Topic", enforce_ssl=True)
        topic.add_subscription(EmailSubscription(address))
        # A policy replaces the one that lets the account publish: without this, alarms are told to nobody.
        topic.add_to_resource_policy(
            PolicyStatement(
                actions=["sns:Publish"],
                principals=[ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )
        return topic

    def _alarms(self, watched: Mapping[str, tuple[IMetric, str]]) -> list[Alarm]:
        return [
            Alarm(
                self,
                name,
                metric=metric,
                alarm_description=description,
                threshold=0,
                comparison_operator=ComparisonOperator.GREATER_THAN_THRESHOLD,
                evaluation_periods=1,
                treat_missing_data=TreatMissingData.NOT_BREACHING,
            )
            for name, (metric, description) in watched.items()
        ]
