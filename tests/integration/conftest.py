"""The functions wired as in the cloud, on moto's server: real HTTP, real clients."""

from tests.cloud import cloud, moto_endpoint, shared_cloud

__all__ = ["cloud", "moto_endpoint", "shared_cloud"]
