"""`make demo` and `make up`: from an upload to a grounded answer, through the stack that is deployed to AWS.

    python -m local.demo [--stay] [--port PORT]

However it ends, nothing stays: no process, no file outside `.build/`. A failure is one sentence and the place
of a log.
"""

import argparse
import http
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any
from urllib.parse import quote

from rich.console import Console
from rich.text import Text

from local.answer import bundle_lines, complete, finding_lines, include_trees, legend, source_table
from local.api import Api
from local.deployment import STACK, Deployment, deploy
from local.emulator import ACCOUNT, REGION, SECRET, Emulator, EmulatorError, install
from local.handbook import documents, grounding_request, source_titles, upload, wait_until_indexed
from local.steps import step
from local.workshop import StackError, shown

Json = Mapping[str, Any]

_CLI = ".venv/bin/groundwire"
_INTERRUPTED = 130


class AnswerError(StackError):
    """The API did not answer as it should."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 when all was shown and taken down, 1 after a told failure, 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="python -m local.demo")
    parser.add_argument("--stay", action="store_true", help="keep the stack until Ctrl-C")
    parser.add_argument("--port", type=int, help="the emulator's port (default: a free one)")
    options = parser.parse_args(arguments)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _leave)
    # Elsewhere than on a terminal nobody's width counts: lines stay whole.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    try:
        _run(console, stay=options.stay, port=options.port)
    except StackError as error:
        print(f"groundwire: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("groundwire: interrupted; everything is stopped.", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _leave(number: int, _frame: FrameType | None) -> None:
    """Ends by way of every `with` on the stack: the default would leave without taking anything down."""
    sys.exit(128 + number)


def _run(console: Console, *, stay: bool, port: int | None) -> None:
    purpose = "up" if stay else "demo"
    with step(console, "prepare the AWS emulator"):
        install()
    with ExitStack() as stack:
        with step(console, "start it") as starting:
            emulator = stack.enter_context(Emulator(purpose, port=port))
            starting.result = f"{emulator.url}, account {ACCOUNT}, {REGION}"
        with step(console, "deploy this repository's CDK app to it") as deploying:
            deployment = deploy(emulator, purpose)
            deploying.result = f"stack {STACK}, API {deployment.api_id}"
        api = Api(emulator, deployment.api_id)
        verdicts = _fill(console, emulator, api, deployment.bucket)
        _ground(console, emulator, api, deployment.bucket)
        _show_verdicts(console, verdicts)
        if stay:
            _show_addresses(console, emulator, api, deployment)
            _wait_for_the_end(emulator)
        else:
            _show_next(console)
        with step(console, "take everything down"):
            stack.close()


def _fill(console: Console, emulator: Emulator, api: Api, bucket: str) -> Mapping[str, Json]:
    chosen = documents()
    with step(console, "upload examples/knowledge-base", len(chosen)) as uploading:
        upload(emulator, bucket, chosen, uploading.advance)
        uploading.result = f"{len(chosen)} documents to s3://{bucket}"
    with step(console, "wait until they are indexed", len(chosen)) as indexing:
        verdicts = wait_until_indexed(emulator, api, bucket, chosen, indexing.advance)
        invalid = sum(1 for verdict in verdicts.values() if verdict["verdict"] == "invalid")
        indexing.result = f"{len(verdicts)} indexed, {invalid} of them invalid"
    return verdicts


def _ground(console: Console, emulator: Emulator, api: Api, bucket: str) -> None:
    request = grounding_request(bucket)
    with step(console, "ask: POST /v1/ground, signed") as asking:
        reply = api.post("/v1/ground", request)
        if reply.status != http.HTTPStatus.OK:
            said = reply.body.decode(errors="replace")[:300]
            raise AnswerError(f"POST /v1/ground answered {reply.status}: {said}.", emulator.log)
        answer = reply.json()
        asking.result = f"{len(answer['allDocumentsForAttachment'])} documents to attach"
    console.rule("What became of each source", align="left")
    console.print(source_table(answer, source_titles(request)))
    console.rule("What each root brought along", align="left")
    for tree in include_trees(answer):
        console.print(tree)
    console.print(legend())
    for line in bundle_lines(answer):
        console.print(line)
    timings = answer["timings"]
    console.print(
        Text.assemble(
            "The answer is ",
            complete(answer["complete"]),
            f". In the function: resolve {timings['resolveMs']} ms, fetch {timings['fetchMs']} ms,"
            f" compose {timings['composeMs']} ms, together {timings['totalMs']} ms."
            " On an emulator: no benchmark.",
        )
    )


def _show_verdicts(console: Console, verdicts: Mapping[str, Json]) -> None:
    console.rule("What the index says of documents that are not in order", align="left")
    for key, document in verdicts.items():
        if document["findings"]:
            for line in finding_lines(key, document):
                console.print(line)


def _show_next(console: Console) -> None:
    console.rule("How to look further", align="left")
    for command, what in (
        ("make up", "this stack until Ctrl-C, with its addresses and a ready curl"),
        (f"{_CLI} lint examples/knowledge-base", "every finding, with line and hint"),
        (f"{_CLI} explain examples/knowledge-base/sops/water-leak.md", "one document's include tree"),
    ):
        console.print(Text.assemble((command, "bold"), (f"  # {what}", "dim")), soft_wrap=True)


def _show_addresses(console: Console, emulator: Emulator, api: Api, deployment: Deployment) -> None:
    console.rule("It stays until Ctrl-C", align="left")
    sign = f"--aws-sigv4 aws:amz:{REGION}:execute-api --user {ACCOUNT}:{SECRET}"
    curl = f"curl --silent {sign} --header 'Host: {api.host}'"
    uri = f"s3://{deployment.bucket}/sops/water-leak.md"
    credentials = f"AWS_ACCESS_KEY_ID={ACCOUNT} AWS_SECRET_ACCESS_KEY={SECRET} AWS_REGION={REGION}"
    lines = f"""\
In a browser   http://{api.host}/docs
Bucket         s3://{deployment.bucket}
AWS tools      export AWS_ENDPOINT_URL={emulator.url} {credentials}
Log            {shown(emulator.log)}

{curl} '{emulator.url}/v1/documents?uri={quote(uri, safe="")}'

{curl} --json '{json.dumps({"uri": uri})}' {emulator.url}/v1/compose"""
    console.print(lines, highlight=False, soft_wrap=True)


def _wait_for_the_end(emulator: Emulator) -> None:
    """Returns at Ctrl-C. Raises EmulatorError when the emulator ends first."""
    try:
        emulator.wait()
    except KeyboardInterrupt:
        return
    raise EmulatorError("The AWS emulator ended by itself.", emulator.log)


if __name__ == "__main__":
    sys.exit(main())
