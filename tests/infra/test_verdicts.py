"""Verdicts are heard on a bus of their own; invalid documents are mailed where there is an address (X-7)."""

from groundwire.adapters.eventbridge import DETAIL_TYPE, SOURCE
from tests.infra.synthesized import Synthesized, rendered


def test_the_bus_is_the_stacks_own(any_deployment: Synthesized) -> None:
    (bus,) = any_deployment.resources("AWS::Events::EventBus")
    assert any_deployment.template["Outputs"]["EventBusName"]["Value"] == {"Ref": bus}
    assert any_deployment.variables("indexer")["GROUNDWIRE_EVENT_BUS"] == bus


def test_mail_about_invalid_documents_only_and_only_where_there_is_an_address(
    guest: Synthesized, prod: Synthesized
) -> None:
    (bus,) = guest.resources("AWS::Events::EventBus")
    rule = guest.properties("AWS::Events::Rule", "VerdictsInvalid")
    assert rule["EventBusName"] == {"Ref": bus}
    assert rule["EventPattern"] == {
        "source": [SOURCE],
        "detail-type": [DETAIL_TYPE],
        "detail": {"verdict": ["invalid"]},
    }
    (target,) = rule["Targets"]
    (topic,) = guest.resources("AWS::SNS::Topic")
    assert rendered(target["Arn"]) == topic
    transformer = target["InputTransformer"]
    assert set(transformer["InputPathsMap"].values()) == {"$.detail.uri", "$.detail.findings"}
    assert "is invalid" in transformer["InputTemplate"]
    assert not [name for name in prod.resources("AWS::Events::Rule") if "Verdicts" in name]
