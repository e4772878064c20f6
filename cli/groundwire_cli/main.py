"""The `groundwire` command. Exit 0: fine; 1: errors found, or a bundle incomplete with --strict; 2: usage."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groundwire.errors import FetchError, InvalidRequest

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
    for flag in ("--max-depth", "--max-docs", "--max-include-bytes", "--timeout-ms"):
        explain.add_argument(flag, type=int, metavar="N", help="overrides the policy's default")
    explain.add_argument("--on-fetch-error", choices=("skip", "abort"))
    explain.add_argument(
        "--traversable-mime",
        action="append",
        metavar="TYPE",
        help="a type to look for includes in; repeatable",
    )
    explain.set_defaults(run=_explain)
    dependents = commands.add_parser(
        "dependents", help="show which documents include one, and by which chain"
    )
    dependents.add_argument("path", metavar="DOC", help="a document, which need not exist any more")
    dependents.add_argument("--direct", action="store_true", help="only documents that include it themselves")
    dependents.set_defaults(run=_dependents)
    _add_deployed(commands)
    for command in (lint, explain, dependents):
        command.add_argument(
            "--root",
            type=Path,
            metavar="DIR",
            help="the storage root; default: the nearest folder up with groundwire.toml or .git",
        )
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


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
    if options.json:
        _print_json(as_json(location, found))
    else:
        from groundwire_cli.report import print_dependents

        print_dependents(location, found)
    return FINE


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
        task = DeployedStack(_stack_name(options)).redrive()
    except StackRefused as error:
        raise UsageError(str(error)) from error
    if options.json:
        _print_json({"task": task})
    else:
        print("The dead letters are on their way back to the indexer's queue.")
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
