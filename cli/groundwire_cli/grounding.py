"""Ground: asks a Groundwire API for documents, as an application would, through the client it would use."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from groundwire.client import GroundwireClient, IamAuth
from groundwire.errors import ConfigurationError, InvalidRequest
from groundwire.grounded import GroundedResult
from groundwire_cli.wording import visible

API = "GROUNDWIRE_API"
"""The variable that names the API where `--api` does not."""


class GroundUsage(Exception):
    """Arguments that cannot be used."""


def ground(options: argparse.Namespace, policy: Mapping[str, Any]) -> tuple[GroundedResult, str]:
    """The answer for the URIs or the search results that were given, and with `--text` its text for a model.

    GroundUsage where the arguments cannot be used; a ClientError where the API does not answer.
    """
    found = _found(options)
    try:
        with api_client(options) as client:
            result = client.ground(
                found,
                composition_policy=policy or None,
                user_id="command-line",
                dry_run=not (options.json or options.text),
            )
            # Bodies behind URLs are read while there is a client.
            return result, result.to_text() if options.text else ""
    except InvalidRequest as error:
        named = f"--metadata {options.metadata}" if options.metadata else "URI"
        raise GroundUsage(f"{named}: {error.problem}") from error
    except ConfigurationError as error:
        raise GroundUsage(str(error)) from error


def print_warnings(result: GroundedResult) -> None:
    """What cannot be seen in the bodies, to standard error: the text itself stays as it is."""
    for each in result.warnings:
        where = visible(f"{each.uri}: line {each.line}")
        print(f"groundwire: {where}: {each.character} ({each.count} in all)", file=sys.stderr)


def api_client(options: argparse.Namespace) -> GroundwireClient:
    """A client for the API that the options name, with the credentials that they name."""
    url = options.api or os.environ.get(API)
    if not url:
        raise GroundUsage(f"name the API: --api URL, or the variable {API}")
    if options.iam:
        return GroundwireClient(url, auth=IamAuth())
    if options.token_env is None:
        return GroundwireClient(url)
    token = os.environ.get(options.token_env)
    if not token:
        raise GroundUsage(f"--token-env {options.token_env}: there is no such variable, or it is empty")
    return GroundwireClient(url, token=token)


def _found(options: argparse.Namespace) -> Any:
    """What to ask for: the URIs, or the JSON of `--metadata`."""
    if bool(options.uris) == bool(options.metadata):
        raise GroundUsage("give either URIs or --metadata FILE")
    if options.uris:
        return options.uris
    try:
        content = sys.stdin.buffer.read() if options.metadata == "-" else Path(options.metadata).read_bytes()
        return orjson.loads(content)
    except OSError as error:
        raise GroundUsage(f"--metadata {options.metadata}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise GroundUsage(f"--metadata {options.metadata}: is no JSON") from error
