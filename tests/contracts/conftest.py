"""Real adapters stand on moto's server, or on one that misbehaves: real HTTP, real clients."""

from tests.cloud import cloud, moto_endpoint, shared_cloud
from tests.contracts.apis import api
from tests.contracts.cloud_storage import gcs_endpoint
from tests.contracts.drives import drive, graph_server, make_drive
from tests.contracts.geminis import cabinet, gemini, gemini_cabinet, gemini_files, gemini_server
from tests.contracts.misbehaving import misbehaving
from tests.contracts.shelves import bucket, cloud_storage, exact_shelf, indexed_shelf, shelf
from tests.contracts.token_servers import token_server

__all__ = [
    "api",
    "bucket",
    "cabinet",
    "cloud",
    "cloud_storage",
    "drive",
    "exact_shelf",
    "gcs_endpoint",
    "gemini",
    "gemini_cabinet",
    "gemini_files",
    "gemini_server",
    "graph_server",
    "indexed_shelf",
    "make_drive",
    "misbehaving",
    "moto_endpoint",
    "shared_cloud",
    "shelf",
    "token_server",
]
