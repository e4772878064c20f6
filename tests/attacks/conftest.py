"""The functions under attack, wired as in the cloud: real HTTP, real clients, nothing but this machine."""

from tests.attacks.keep import entitled, keep, outside, walls
from tests.cloud import cloud, moto_endpoint, shared_cloud
from tests.contracts.cloud_storage import gcs_endpoint

__all__ = ["cloud", "entitled", "gcs_endpoint", "keep", "moto_endpoint", "outside", "shared_cloud", "walls"]
