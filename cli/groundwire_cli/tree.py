"""A bundle as a tree for people: who includes whom, sizes, depths and why something is not there.

Draws the JSON of a bundle, so that what came over HTTPS and what was found in a folder look alike.
Every colour has a symbol beside it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from groundwire_cli.wording import ATTACHED, FINDING_STYLES, LOST, SKIP_STYLES, size, visible

Json = Mapping[str, Any]


def bundle_tree(bundle: Json) -> Tree:
    """The tree of one bundle; documents that are skipped stand where they are declared."""
    documents = {each["uri"]: each for each in (bundle["root"], *bundle["included"])}
    prefix = _common_prefix(list(documents))
    edges: defaultdict[str, list[Json]] = defaultdict(list)
    for edge in bundle["edges"]:
        edges[edge["from"]].append(edge)
    skips: defaultdict[str, list[Json]] = defaultdict(list)
    for skip in bundle["skipped"]:
        skips[skip["parentUri"]].append(skip)
    root = bundle["root"]
    tree = Tree(_document_line(root, prefix, 0), guide_style="dim")
    _grow(tree, root["uri"], 1, documents, edges, skips, prefix)
    return tree


def _grow(
    tree: Tree,
    uri: str,
    depth: int,
    documents: Mapping[str, Json],
    edges: Mapping[str, Sequence[Json]],
    skips: Mapping[str, Sequence[Json]],
    prefix: str,
) -> None:
    reasons = list(skips.get(uri, ()))
    for edge in edges.get(uri, ()):
        skip = next((each for each in reasons if each["relativePath"] == edge["relativePath"]), None)
        if skip:
            reasons.remove(skip)
            tree.add(_skip_line(skip, prefix))
        else:
            branch = tree.add(_document_line(documents[edge["to"]], prefix, depth))
            _grow(branch, edge["to"], depth + 1, documents, edges, skips, prefix)
    for skip in reasons:
        tree.add(_skip_line(skip, prefix))


def _document_line(document: Json, prefix: str, depth: int) -> Text:
    line = Text.assemble(
        (f"{ATTACHED[1]} ", ATTACHED[0]),
        (visible(document["uri"].removeprefix(prefix)), "bold"),
        f"  {size(document['sizeBytes'])}",
        (f"  depth {depth}" if depth else "  root", "dim"),
    )
    for finding in document["findings"]:
        style, symbol = FINDING_STYLES[finding["severity"]]
        where = f" line {finding['line']}" if finding["line"] else ""
        line.append(f"\n  {symbol} {finding['code']}{where}", style)
    return line


def _skip_line(skip: Json, prefix: str) -> Text:
    style, symbol = SKIP_STYLES.get(skip["reason"], LOST)
    why = skip["reason"] + (f": {skip['code']}" if skip["code"] else "")
    line = Text.assemble((f"{symbol} {visible(skip['relativePath'])}", style), (f"  {why}", style))
    if skip["detail"]:
        line.append(f"  ({visible(skip['detail']).replace(prefix, '')})", "dim")
    return line


def _common_prefix(uris: Sequence[str]) -> str:
    """The storage root's part of the URIs: the scheme and the bucket."""
    scheme, _, rest = uris[0].partition("://")
    return f"{scheme}://{rest.split('/', 1)[0]}/"
