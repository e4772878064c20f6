"""Who may call what: every route has an authorizer, and nothing is open in prod (Z-1)."""

from collections.abc import Mapping

import pytest

from tests.infra.synthesized import Synthesized

_CLOSED = {
    "POST /v1/ground",
    "POST /v1/compose",
    "POST /v1/validate",
    "GET /v1/documents",
    "GET /v1/graph",
    "GET /v1/dependents",
}
_DESCRIPTION = {"GET /openapi.json", "GET /docs", "GET /healthz"}


def _authorization(deployment: Synthesized) -> dict[str, str]:
    routes = (route["Properties"] for route in deployment.resources("AWS::ApiGatewayV2::Route").values())
    return {route["RouteKey"]: route["AuthorizationType"] for route in routes}


@pytest.mark.parametrize("name", ["dev", "local"])
def test_documents_are_for_known_callers_and_the_description_for_anyone(
    name: str, deployments: Mapping[str, Synthesized]
) -> None:
    closed = _CLOSED | ({"POST /v1/uploads"} if name == "local" else set())  # where a root has writers
    assert _authorization(deployments[name]) == {
        **dict.fromkeys(closed, "AWS_IAM"),
        **dict.fromkeys(_DESCRIPTION, "NONE"),
    }
    assert deployments[name].variables("grounding")["GROUNDWIRE_OPEN_DESCRIPTION"] == "true"


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_nothing_is_open_where_the_description_is_not(
    name: str, deployments: Mapping[str, Synthesized]
) -> None:
    assert _authorization(deployments[name]) == dict.fromkeys(_CLOSED | _DESCRIPTION, "AWS_IAM")
    assert deployments[name].variables("grounding")["GROUNDWIRE_AUTHENTICATION"] == "iam"
    assert deployments[name].variables("grounding")["GROUNDWIRE_OPEN_DESCRIPTION"] == "false"


def test_tokens_of_the_issuer_where_there_is_one(guest: Synthesized) -> None:
    assert _authorization(guest) == dict.fromkeys(_CLOSED | _DESCRIPTION, "JWT")
    assert guest.properties("AWS::ApiGatewayV2::Authorizer")["JwtConfiguration"] == {
        "Audience": ["groundwire"],
        "Issuer": "https://login.example/tenant",
    }
    assert guest.variables("grounding")["GROUNDWIRE_AUTHENTICATION"] == "jwt"
    (authorizer,) = guest.resources("AWS::ApiGatewayV2::Authorizer")
    for route in guest.resources("AWS::ApiGatewayV2::Route").values():
        assert route["Properties"]["AuthorizerId"] == {"Ref": authorizer}


def test_one_throttled_stage(guest: Synthesized) -> None:
    stage = guest.properties("AWS::ApiGatewayV2::Stage")
    assert stage["StageName"] == "$default"
    assert stage["AutoDeploy"] is True
    assert stage["DefaultRouteSettings"] == {"ThrottlingBurstLimit": 9, "ThrottlingRateLimit": 7}


def test_the_access_log_holds_no_address_that_names_a_document(any_deployment: Synthesized) -> None:
    format_ = any_deployment.properties("AWS::ApiGatewayV2::Stage")["AccessLogSettings"]["Format"]
    assert "$context.routeKey" in format_
    assert "path" not in format_.lower()
    assert "query" not in format_.lower()


def test_the_function_answers_through_its_published_alias(any_deployment: Synthesized) -> None:
    aliases = any_deployment.resources("AWS::Lambda::Alias")
    called = set()
    for integration in any_deployment.resources("AWS::ApiGatewayV2::Integration").values():
        called.add(integration["Properties"]["IntegrationUri"]["Ref"])
        assert integration["Properties"]["PayloadFormatVersion"] == "2.0"
    assert any_deployment.logical_id("AWS::Lambda::Alias", "Grounding") in called
    assert called <= aliases.keys()
    for permission in any_deployment.resources("AWS::Lambda::Permission").values():
        assert permission["Properties"]["FunctionName"]["Ref"] in called
