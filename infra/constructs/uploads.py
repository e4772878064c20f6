"""The upload API's function, where any root has writers: it signs for S3 and may do nothing else (Z-5)."""

from aws_cdk import Duration
from aws_cdk.aws_apigatewayv2 import HttpMethod
from constructs import Construct

from groundwire.settings import UploadSettings
from infra.constructs.documents import Documents
from infra.constructs.function import FunctionShape, ServiceFunction
from infra.constructs.grounding import Grounding
from infra.constructs.layers import Layers
from infra.environments import Environment


class Uploads(Construct):
    """The function behind `POST /v1/uploads` (`function`, `role`)."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        layers: Layers,
        documents: Documents,
        grounding: Grounding,
    ) -> None:
        super().__init__(scope, construct_id)
        service = ServiceFunction(
            self,
            "Uploads",
            # It asks nobody anything: the seconds are for a cold start.
            shape=FunctionShape(folder="uploads", timeout=Duration.seconds(10), memory_mb=512),
            environment=environment,
            layers=layers,
            # All roots, those without writers too: a path may lead into one that is nested.
            settings=UploadSettings(
                storage_roots=tuple(root.settings for root in documents.roots)
            ).environment(),
        )
        self.function = service.function
        self.role = service.role
        # What it signs, it has to be allowed to do itself.
        documents.grant_upload(self.role)
        grounding.add_route(HttpMethod.POST, "/v1/uploads", service.alias)
