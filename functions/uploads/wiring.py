"""Puts the upload function together, on first use: the only place here that knows the adapters."""

import os
from dataclasses import dataclass
from functools import cache

import boto3

from groundwire.adapters.quiet import quiet
from groundwire.adapters.s3_uploads import S3UploadSigner
from groundwire.roots import StorageRoots
from groundwire.settings import UploadSettings


@dataclass(frozen=True, slots=True)
class Wired:
    """What the route needs."""

    roots: StorageRoots
    signer: S3UploadSigner


@cache
def wired() -> Wired:
    """The upload API of this environment."""
    quiet()
    settings = UploadSettings.model_validate(os.environ)
    return Wired(settings.roots(), S3UploadSigner(boto3.Session(), settings.aws_endpoint))
