"""The bus that hears of every document's verdict (X-7), and who is written to about the invalid ones.

The events' schema is in docs/events.md. A bus of its own: whoever listens needs no right on the account's
default bus, and rules here see nothing but verdicts.
"""

from aws_cdk.aws_events import EventBus, EventField, EventPattern, Rule, RuleTargetInput
from aws_cdk.aws_events_targets import SnsTopic
from aws_cdk.aws_iam import IGrantable
from aws_cdk.aws_sns import ITopic
from constructs import Construct

from groundwire.adapters.eventbridge import DETAIL_TYPE, SOURCE


class Verdicts(Construct):
    """The event `bus`; who publishes on it is granted that right, and nobody else has it."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.bus = EventBus(self, "Bus", description="Groundwire: what became of documents")

    def grant_publish(self, grantee: IGrantable) -> None:
        """Lets the grantee put events on this bus, and on no other."""
        self.bus.grant_put_events_to(grantee)

    def tell_of_invalid_documents(self, topic: ITopic) -> None:
        """Sends one plain sentence to the topic whenever a document turns out invalid."""
        uri, findings = EventField.from_path("$.detail.uri"), EventField.from_path("$.detail.findings")
        Rule(
            self,
            "Invalid",
            description="Documents that became invalid",
            event_bus=self.bus,
            event_pattern=EventPattern(
                source=[SOURCE], detail_type=[DETAIL_TYPE], detail={"verdict": ["invalid"]}
            ),
            targets=[
                SnsTopic(topic, message=RuleTargetInput.from_text(f"{uri} is invalid. Findings: {findings}"))
            ],
        )
