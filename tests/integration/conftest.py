"""The functions wired as in the cloud, on moto's server: real HTTP, real clients."""

from tests.cloud import cloud, moto_endpoint, shared_cloud
from tests.integration.deployed import deployed

__all__ = ["cloud", "deployed", "moto_endpoint", "shared_cloud"]
