"""The CDK app: `cdk synth -c environment=dev`, with the project's virtual environment active."""

import sys

from aws_cdk import App

from infra.environments import EnvironmentRefused, environment
from infra.packaging import PackagingFailed, dependency_layer
from infra.stack import GroundwireStack


def main() -> None:
    """Writes the cloud assembly of the chosen environment to where the CDK command line wants it."""
    app = App()
    try:
        chosen = environment(app.node.try_get_context("environment"))
        GroundwireStack(app, environment=chosen, dependencies=dependency_layer(chosen.architecture))
    except (EnvironmentRefused, PackagingFailed) as refusal:
        sys.exit(f"groundwire: {refusal}")
    app.synth()


if __name__ == "__main__":
    main()
