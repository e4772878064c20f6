"""What somebody should be told about; everything else is in the logs and metrics."""

from collections.abc import Mapping
from typing import NamedTuple

from aws_cdk import Duration, Stack
from aws_cdk.aws_apigatewayv2 import HttpApi
from aws_cdk.aws_cloudwatch import Alarm, ComparisonOperator, IMetric, Metric, TreatMissingData
from aws_cdk.aws_cloudwatch_actions import SnsAction
from aws_cdk.aws_iam import PolicyStatement, ServicePrincipal
from aws_cdk.aws_lambda import Function
from aws_cdk.aws_sns import Topic
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from aws_cdk.aws_sqs import Queue
from aws_cdk.aws_stepfunctions import StateMachine
from constructs import Construct

_PERIOD = Duration.minutes(5)
_LATE = Duration.minutes(30)
"""As long as a record that fails is tried again: what waits longer than that waits for a free indexer."""


class Watched(NamedTuple):
    """A metric, what somebody is told when it is over `threshold` once, and what to do."""

    metric: IMetric
    description: str
    threshold: float = 0


class Observability(Construct):
    """Alarms on lost and late events, drift, broken-off runs and failing answers, mailed to an address.

    `topic` is what mails; None where there is no address.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        queue: Queue,
        dead_letters: Queue,
        indexer: Function,
        state_machines: Mapping[str, StateMachine],
        api: HttpApi,
        alarms_address: str | None,
    ) -> None:
        super().__init__(scope, construct_id)
        watched = {
            "DeadLetters": Watched(
                dead_letters.metric_approximate_number_of_messages_visible(period=_PERIOD),
                "Events that were given up: mend the cause, then give them to the indexer again with"
                " `groundwire redrive`. The reason, where a message was not understood, is its attribute.",
            ),
            "QueueAge": Watched(
                queue.metric_approximate_age_of_oldest_message(period=_PERIOD),
                "Uploads are indexed late: look whether the indexer is throttled or fails; else raise its"
                " concurrency. Nothing is lost for 14 days.",
                _LATE.to_seconds(),
            ),
            "IndexerErrors": Watched(
                indexer.metric_errors(period=_PERIOD),
                "The indexer ended without an answer: no time, no memory, or wrong settings; see its log.",
            ),
            "IndexerThrottles": Watched(
                indexer.metric_throttles(period=_PERIOD),
                "The indexer is refused concurrency: uploads are indexed late.",
            ),
            "Drift": Watched(
                Metric(
                    namespace="Groundwire",
                    metric_name="Drift",
                    dimensions_map={"service": "reindex"},
                    statistic="Sum",
                    period=_PERIOD,
                ),
                "A run had to mend the index: events were lost or given up. Look at the dead letters and the"
                " rules of the buckets. After a first reindex, or beside uploads, it is to be expected.",
            ),
            "ApiServerErrors": Watched(
                api.metric_server_error(period=_PERIOD, statistic="Sum"),
                "Callers get 5xx answers.",
            ),
        }
        for root, machine in state_machines.items():
            watched |= _runs(root, machine)
        self.topic = self._mailing(alarms_address) if alarms_address else None
        self.watch(watched)

    def watch(self, watched: Mapping[str, Watched]) -> None:
        """An alarm for each metric, mailed where there is an address."""
        for name, each in watched.items():
            alarm = self._alarm(name, each)
            if self.topic:
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

    def _alarm(self, name: str, watched: Watched) -> Alarm:
        return Alarm(
            self,
            name,
            metric=watched.metric,
            alarm_description=watched.description,
            threshold=watched.threshold,
            comparison_operator=ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=TreatMissingData.NOT_BREACHING,
        )


def _runs(root: str, machine: StateMachine) -> dict[str, Watched]:
    """What can become of a run over a root other than its success."""
    resume = "see why in the execution, then go on with `groundwire reindex --resume`."
    return {
        f"ReindexFailed-{root}": Watched(
            machine.metric_failed(period=_PERIOD), f"A run over {root} failed: {resume}"
        ),
        f"ReindexTimedOut-{root}": Watched(
            machine.metric_timed_out(period=_PERIOD), f"A run over {root} took too long: {resume}"
        ),
        f"ReindexAborted-{root}": Watched(
            machine.metric_aborted(period=_PERIOD),
            f"A run over {root} was stopped; if nobody meant to, {resume}",
        ),
    }
