"""Two layers: the wheels of the lock, and our own package. Functions carry only their handlers."""

from pathlib import Path

from aws_cdk.aws_lambda import Architecture, Code, LayerVersion, Runtime
from constructs import Construct

from infra.packaging import shared_layer


class Layers(Construct):
    """Both layers, in `versions`, with the runtime and the architecture that they fit."""

    def __init__(self, scope: Construct, construct_id: str, *, architecture: str, dependencies: Path) -> None:
        super().__init__(scope, construct_id)
        self.runtime = Runtime.PYTHON_3_13
        self.architecture = Architecture.ARM_64 if architecture == "arm64" else Architecture.X86_64
        # The wheels' bytecode stays in: __pycache__ is built on purpose there (infra/packaging.py).
        wheels = LayerVersion(
            self,
            "Dependencies",
            description="What uv.lock says, for Lambda",
            code=Code.from_asset(str(dependencies)),
            compatible_runtimes=[self.runtime],
            compatible_architectures=[self.architecture],
        )
        shared = LayerVersion(
            self,
            "Shared",
            description="The groundwire package",
            code=shared_layer(),
            compatible_runtimes=[self.runtime],
            compatible_architectures=[self.architecture],
        )
        self.versions = (wheels, shared)
