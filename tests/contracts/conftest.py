"""Real adapters stand on moto's server, or on one that misbehaves: real HTTP, real clients."""

from tests.cloud import cloud, moto_endpoint, shared_cloud
from tests.contracts.misbehaving import misbehaving
from tests.contracts.shelves import bucket, shelf

__all__ = ["bucket", "cloud", "misbehaving", "moto_endpoint", "shared_cloud", "shelf"]
