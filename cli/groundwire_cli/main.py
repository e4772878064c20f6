"""The `groundwire` command. Exit 0: fine; 1: errors found, or a bundle incomplete with --strict; 2: usage."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groundwire.errors import ClientError, ConfigurationError, FetchError, InvalidRequest
from groundwire.invisible import visible

FINE, FOUND, USAGE = 0, 1, 2


class UsageError(Exception):
    """A usage error found after the arguments were parsed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the return value is the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except UsageError as error:
        return _usage(str(error))
    except InvalidRequest as error:
        flag = "--" + "".join(f"-{c.lower()}" if c.isupper() else c for c in error.field).replace("_", "-")
        return _usage(f"{flag.replace('--traversable-mime-types', '--traversable-mime')} {error.problem}")
    except FetchError as error:
        return _usage(f"cannot read {error.uri!a}: {error.detail}")


def _usage(problem: str) -> int:
    print(f"groundwire: {problem}", file=sys.stderr)
    return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="groundwire", description="Documents and the documents they include, before they are uploaded."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    lint = commands.add_parser("lint", help="check frontmatter and includes of files and folders")
    lint.add_argument("paths", nargs="+", metavar="PATH", help="a document, or a folder of documents")
    lint.set_defaults(run=_lint)
    explain = commands.add_parser("explain", help="show the bundle each document would be grounded with")
    explain.add_argument(
        "paths", nargs="+", metavar="DOC", help="a document, explained on its own; or a folder of them"
    )
    explain.add_argument("--strict", action="store_true", help="exit 1 where a bundle is incomplete")
    _add_policy(explain)
    explain.set_defaults(run=_explain)
    dependents = commands.add_parser(
        "dependents", help="show which documents include one, and by which chain"
    )
    dependents.add_argument("path", metavar="DOC", help="a document, which need not exist any more")
    dependents.add_argument("--direct", action="store_true", help="only documents that include it themselves")
    dependents.set_defaults(run=_dependents)
    push = _add_push(commands)
    _add_ground(commands)
    _add_deployed(commands)
    for command in (lint, explain, dependents, push):
        command.add_argument(
            "--root",
            type=Path,
            metavar="DIR",
            help="the storage root; default: the nearest folder up with groundwire.toml or .git",
        )
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_policy(command: argparse.ArgumentParser) -> None:
    """The bounds of the search."""
    for flag in ("--max-depth", "--max-docs", "--max-include-bytes", "--timeout-ms"):
        command.add_argument(flag, type=int, metavar="N", help="overrides the policy's default")
    command.add_argument("--on-fetch-error", choices=("skip", "abort"))
    command.add_argument(
        "--traversable-mime",
        action="append",
        metavar="TYPE",
        help="a type to look for includes in; repeatable",
    )


def _add_push(commands: Any) -> argparse.ArgumentParser:
    """The command that uploads; its PATH, --root and --json are those of lint."""
    push: argparse.ArgumentParser = commands.add_parser(
        "push", help="upload documents to where they belong, through a Groundwire API"
    )
    push.add_argument("paths", nargs="+", metavar="PATH", help="a document, or a folder of documents")
    push.add_argument("--to", metavar="NAME", help="the API's storage root; needed where you may use several")
    push.add_argument("--dry-run", action="store_true", help="judge everything, upload nothing")
    push.add_argument(
        "--force", action="store_true", help="upload documents with errors, and unchanged ones too"
    )
    _add_api(push)
    push.set_defaults(run=_push)
    return push


def _add_api(command: argparse.ArgumentParser) -> None:
    """Which API is asked, and as whom."""
    command.add_argument("--api", metavar="URL", help="the API's address; default: $GROUNDWIRE_API")
    who = command.add_mutually_exclusive_group()
    who.add_argument("--token-env", metavar="NAME", help="the variable that holds a bearer token")
    who.add_argument("--iam", action="store_true", help="sign with AWS credentials")


def _add_ground(commands: Any) -> None:
    """The command that asks an API, as an application does."""
    ground = commands.add_parser("ground", help="ask a Groundwire API for documents and all they include")
    ground.add_argument("uris", nargs="*", metavar="URI", help="a document's, as s3://bucket/key")
    ground.add_argument("--metadata", metavar="FILE", help="Gemini's grounding metadata as JSON; - is stdin")
    _add_api(ground)
    shown = ground.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print the answer as it came, bodies included")
    shown.add_argument("--text", action="store_true", help="print the text that a model is given")
    ground.add_argument("--strict", action="store_true", help="exit 1 where the answer is incomplete")
    _add_policy(ground)
    ground.set_defaults(run=_ground)


def _add_deployed(commands: Any) -> None:
    """Commands that ask a deployed stack."""
    reindex = commands.add_parser("reindex", help="index every document of a deployed stack again")
    reindex.add_argument("--root", metavar="NAME", help="one storage root; default: all of them")
    reindex.add_argument("--prefix", default="", metavar="P", help="only what is below this path of the root")
    reindex.add_argument("--resume", metavar="EXECUTION", help="go on with a run that failed")
    reindex.set_defaults(run=_reindex)
    redrive = commands.add_parser("redrive", help="give the indexer its dead letters again")
    redrive.set_defaults(run=_redrive)
    for command in (reindex, redrive):
        which = command.add_mutually_exclusive_group(required=True)
        which.add_argument("--stack", metavar="NAME", help="the stack's name")
        which.add_argument("--environment", metavar="NAME", help="the environment it was deployed for")
        command.add_argument("--json", action="store_true", help="print JSON")


def _paths(options: argparse.Namespace) -> list[Path]:
    """The paths that were given; UsageError where one is not there, or outside the storage root."""
    paths = [Path(each) for each in options.paths]
    for path in (*paths, *([options.root] if options.root else [])):
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder")
    if options.root and not options.root.is_dir():
        raise UsageError(f"--root {options.root}: this is not a folder")
    for path in paths:
        absolute = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
        if options.root and not absolute.is_relative_to(options.root.resolve()):
            raise UsageError(f"{path}: lies outside the storage root {options.root}")
    return paths


def _lint(options: argparse.Namespace) -> int:
    from groundwire_cli.linting import lint

    paths = _paths(options)
    if options.json:
        result = lint(paths, options.root)
        _print_json(result.as_json())
    else:
        from groundwire_cli.report import print_lint, watched

        result = lint(paths, options.root, watched)
        print_lint(result)
    return FOUND if result.failed else FINE


def _explain(options: argparse.Namespace) -> int:
    from groundwire.shapes import bundle_json
    from groundwire_cli.explaining import explain

    paths = _paths(options)
    bundles = explain(paths, options.root, _policy(options))
    shapes = [bundle_json(bundle, bodies=False) for bundle in bundles]
    if options.json:
        single = len(paths) == 1 and not paths[0].is_dir()
        _print_json(shapes[0] if single else {"bundles": shapes})
    else:
        from groundwire_cli.report import print_bundles

        print_bundles(shapes)
    incomplete = any(not bundle.complete for bundle in bundles)
    return FOUND if options.strict and incomplete else FINE


def _dependents(options: argparse.Namespace) -> int:
    from groundwire_cli.includers import as_json, dependents

    try:
        location, found = dependents(Path(options.path), options.root, transitive=not options.direct)
    except ValueError as error:
        raise UsageError(f"{options.path}: lies outside the storage root") from error
    if not found and not Path(options.path).is_file():
        raise UsageError(f"{options.path}: there is no such file, and no document includes it")
    if options.json:
        _print_json(as_json(location, found))
    else:
        from groundwire_cli.report import print_dependents

        print_dependents(location, found)
    return FINE


def _push(options: argparse.Namespace) -> int:
    from groundwire_cli.grounding import GroundUsage, api_client
    from groundwire_cli.push_report import bar, print_push
    from groundwire_cli.pushing import Push, PushUsage, as_json, failed

    try:
        with api_client(options) as client:
            push = Push(_paths(options), options.root, client, to=options.to, force=options.force)
            documents = push.run(bar, dry_run=options.dry_run)
    except (GroundUsage, PushUsage, ConfigurationError, ClientError) as error:
        raise UsageError(visible(str(error))) from error
    if options.json:
        _print_json(as_json(documents))
    else:
        print_push(documents)
    return FOUND if failed(documents) else FINE


def _ground(options: argparse.Namespace) -> int:
    from groundwire_cli.grounding import GroundUsage, ground, print_warnings

    try:
        result, text = ground(options, _policy(options))
    except (GroundUsage, ClientError) as error:
        raise UsageError(visible(str(error))) from error
    if options.json:
        _print_json(dict(result.raw))
    elif options.text:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()
        print_warnings(result)
    else:
        from groundwire_cli.report import print_grounded

        print_grounded(result.raw)
    return FOUND if options.strict and not result.complete else FINE


def _stack_name(options: argparse.Namespace) -> str:
    return str(options.stack or f"groundwire-{options.environment}")


def _reindex(options: argparse.Namespace) -> int:
    from groundwire_cli.progress import print_runs, watch
    from groundwire_cli.reindexing import DeployedStack, StackRefused

    try:
        stack = DeployedStack(_stack_name(options))
        started = (
            [stack.resume(options.resume)] if options.resume else stack.start(options.root, options.prefix)
        )
        runs = watch(stack, started, bars=not options.json)
    except StackRefused as error:
        raise UsageError(str(error)) from error
    except KeyboardInterrupt:
        print("groundwire: no longer watching; what was started goes on", file=sys.stderr)
        return FOUND
    if options.json:
        _print_json({"runs": [run.as_json() for run in runs]})
    else:
        print_runs(runs)
    return FINE if all(run.is_fine for run in runs) else FOUND


def _redrive(options: argparse.Namespace) -> int:
    from groundwire_cli.reindexing import DeployedStack, StackRefused

    try:
        moved = DeployedStack(_stack_name(options)).redrive()
    except StackRefused as error:
        raise UsageError(str(error)) from error
    if options.json:
        _print_json({"moved": moved})
    else:
        print(f"Dead letters back on the indexer's queue: {moved:,}.")
    return FINE


def _policy(options: argparse.Namespace) -> dict[str, Any]:
    given = {
        "maxDepth": options.max_depth,
        "maxDocs": options.max_docs,
        "maxIncludeBytes": options.max_include_bytes,
        "timeoutMs": options.timeout_ms,
        "onFetchError": options.on_fetch_error,
        "traversableMimeTypes": options.traversable_mime,
    }
    return {name: value for name, value in given.items() if value is not None}


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
