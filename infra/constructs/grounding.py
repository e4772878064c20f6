"""The HTTPS API and the function behind it: it reads documents and index, and writes neither (Z-5)."""

import json
from typing import Any

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk.aws_apigatewayv2 import (
    CfnStage,
    HttpApi,
    HttpMethod,
    HttpNoneAuthorizer,
    HttpStage,
    IHttpRouteAuthorizer,
    ThrottleSettings,
)
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from aws_cdk.aws_lambda import IFunction
from aws_cdk.aws_logs import LogGroup
from constructs import Construct

from groundwire.settings import GroundingSettings
from infra.constructs.delivery import DeliveryShelf
from infra.constructs.documents import Documents
from infra.constructs.external import ExternalDocuments
from infra.constructs.function import FunctionShape, ServiceFunction
from infra.constructs.index import Index
from infra.constructs.indexer import Indexer
from infra.constructs.layers import Layers
from infra.environments import Environment, FileSearch

# The API waits 30 s for its integration; the function has to have answered by then (G-7).
_TIMEOUT = Duration.seconds(29)

_ROUTES = (
    (HttpMethod.POST, "/v1/ground"),
    (HttpMethod.POST, "/v1/compose"),
    (HttpMethod.POST, "/v1/validate"),
    (HttpMethod.GET, "/v1/documents"),
    (HttpMethod.GET, "/v1/graph"),
    (HttpMethod.GET, "/v1/dependents"),
)
_DESCRIPTION = ("/openapi.json", "/docs", "/healthz")

# Who asked for which document is in the function's audit record (Z-3); this log has what never got there.
_ACCESS_LOG = {
    "requestId": "$context.requestId",
    "routeKey": "$context.routeKey",
    "status": "$context.status",
    "latencyMs": "$context.responseLatency",
    "responseBytes": "$context.responseLength",
    "authorizerError": "$context.authorizer.error",
    "integrationError": "$context.integrationErrorMessage",
}


class Grounding(Construct):
    """The API (`api`, `stage`) and its function (`function`, `role`)."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        layers: Layers,
        documents: Documents,
        external: ExternalDocuments,
        index: Index,
        indexer: Indexer,
        shelf: DeliveryShelf,
    ) -> None:
        super().__init__(scope, construct_id)
        service = ServiceFunction(
            self,
            "Grounding",
            shape=FunctionShape(
                folder="grounding",
                timeout=_TIMEOUT,
                memory_mb=1024,
                # Google's workload identity names the role, and has 127 bytes for role and function name.
                fixed_name=f"groundwire-{environment.name}-grounding",
            ),
            environment=environment,
            layers=layers,
            settings=GroundingSettings(
                table=index.table.table_name,
                storage_roots=(*(root.settings for root in documents.roots), *external.roots),
                google=external.google,
                microsoft=external.microsoft,
                index_queue_url=indexer.queue.queue_url,
                delivery_bucket=shelf.bucket.bucket_name,
                **_file_search(environment.file_search),
                debug_callers=environment.debug_callers,
                authentication="jwt" if environment.jwt else "iam",
                open_description=environment.open_description,
            ).environment(),
        )
        self.function = service.function
        self.role = service.role
        self.api = HttpApi(self, "Api", create_default_stage=False)
        self._callers = _authorizer(environment)
        self.stage = self._stage(environment)
        self._routes(HttpLambdaIntegration("Function", service.alias), environment)

    def add_route(self, method: HttpMethod, path: str, function: IFunction) -> None:
        """Another function's route, for the same callers."""
        self.api.add_routes(
            path=path,
            methods=[method],
            integration=HttpLambdaIntegration(path, function),
            authorizer=self._callers,
        )

    def _stage(self, environment: Environment) -> HttpStage:
        log = LogGroup(
            self, "AccessLog", retention=environment.log_retention, removal_policy=environment.removal_policy
        )
        stage = HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=ThrottleSettings(
                rate_limit=environment.limits.requests_per_second,
                burst_limit=environment.limits.request_burst,
            ),
        )
        resource = stage.node.default_child
        assert isinstance(resource, CfnStage)
        resource.access_log_settings = CfnStage.AccessLogSettingsProperty(
            destination_arn=log.log_group_arn, format=json.dumps(_ACCESS_LOG)
        )
        return stage

    def _routes(self, integration: HttpLambdaIntegration, environment: Environment) -> None:
        anyone = HttpNoneAuthorizer() if environment.open_description else self._callers
        for method, path in _ROUTES:
            self.api.add_routes(
                path=path, methods=[method], integration=integration, authorizer=self._callers
            )
        for path in _DESCRIPTION:
            self._describe(path, integration, anyone)

    def _describe(
        self, path: str, integration: HttpLambdaIntegration, authorizer: IHttpRouteAuthorizer
    ) -> None:
        routes = self.api.add_routes(
            path=path, methods=[HttpMethod.GET], integration=integration, authorizer=authorizer
        )
        for route in routes:
            Validations.of(route).acknowledge(
                Acknowledgment(
                    id="AwsSolutions-APIG4",
                    reason="Describes the API, holds no document; open only where the environment says so.",
                )
            )


def _file_search(file_search: FileSearch | None) -> dict[str, Any]:
    if file_search is None:
        return {}
    own = (file_search.import_into,) if file_search.import_into else ()
    return {
        "file_search_stores": (*file_search.stores, *own),
        "gemini_key_secret": file_search.api_key_secret,
    }


def _authorizer(environment: Environment) -> IHttpRouteAuthorizer:
    if environment.jwt is None:
        return HttpIamAuthorizer()
    return HttpJwtAuthorizer("Callers", environment.jwt.issuer, jwt_audience=list(environment.jwt.audience))
