"""An answer of POST /v1/ground, laid out for a person: trees, sources, findings.

Everything shown is in the JSON; nothing here decides anything. Colour repeats what a symbol and a word say.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

Json = Mapping[str, Any]

_LOSS = ("✗", "red")
_SKIPS = {"cycle": ("↻", "yellow")}
"""The only reason that loses nothing (rule B-6)."""
_SEVERITIES = {"error": ("✗", "red"), "warning": ("!", "yellow"), "information": ("i", "cyan")}
_BUCKET = re.compile(r"s3://[^/\s]+/")
_VERDICTS = {"valid": "green", "warnings": "yellow", "invalid": "red"}


def include_trees(answer: Json) -> Iterator[Tree]:
    """One tree for each root document: what was attached, what was not and why."""
    for document, bundle in zip(answer["preparedDocuments"], answer["compositionBundles"], strict=True):
        tree = Tree(_document(document, "●", "bold"), guide_style="dim")
        if bundle is not None:
            _grow(tree, document["uri"], _Bundle(bundle))
        yield tree


def bundle_lines(answer: Json) -> Iterator[Text]:
    """For each bundle, how much was attached of what was allowed."""
    for bundle in answer["compositionBundles"]:
        if bundle is not None:
            included, policy = bundle["included"], bundle["policy"]
            attached = sum(document["sizeBytes"] for document in included)
            yield Text.assemble(
                (_name(bundle["root"]["uri"]), "bold"),
                f": {1 + len(included)} of {policy['maxDocs']} documents,"
                f" {size(attached)} of {size(policy['maxIncludeBytes'])} included,"
                f" depth up to {policy['maxDepth']}, ",
                complete(bundle["complete"]),
            )


def legend() -> Text:
    """What the symbols in the trees mean."""
    return Text.assemble(
        ("✓", "green"),
        " attached  ",
        ("↻", "yellow"),
        " attached already, nothing is lost  ",
        ("✗", "red"),
        " lost",
    )


def source_table(answer: Json, titles: list[str]) -> Table:
    """What became of each source that was sent."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for source in answer["sources"]:
        found = source["code"] is None
        table.add_row(
            Text(f"#{source['index']}", "dim"),
            titles[source["index"]],
            Text("✓ resolved", "green") if found else Text(f"✗ {source['code']}", "red"),
            Text(_name(source["uri"] if found else source["detail"]), "dim"),
        )
    return table


def finding_lines(key: str, document: Json) -> Iterator[Text]:
    """The verdict on one document and what it was found to say wrong, with line and hint."""
    yield Text.assemble((key, "bold"), "  ", (document["verdict"], _VERDICTS[document["verdict"]]))
    for finding in document["findings"]:
        symbol, style = _SEVERITIES[finding["severity"]]
        place = f"line {finding['line']}: " if finding["line"] is not None else ""
        yield Text.assemble(f"  {symbol} ", place, (finding["code"], style), f": {finding['message']}")
        if finding["hint"]:
            yield Text.assemble("    → ", (finding["hint"], "cyan"))


def complete(value: bool) -> Text:
    """Yes or no to "is anything missing from what the model will read?"."""
    return Text("complete", "green") if value else Text("not complete", "red")


def size(count: int) -> str:
    """A number of bytes, three digits or so of it."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


class _Bundle:
    def __init__(self, bundle: Json) -> None:
        self.included = {document["uri"]: document for document in bundle["included"]}
        self.edges = bundle["edges"]
        self.skipped = bundle["skipped"]

    def includes(self, parent: str) -> Iterator[tuple[str, Json | None, Json | None]]:
        """Each include of one document: its path, the document if it was attached here, else the skip."""
        skips = {skip["relativePath"]: skip for skip in self.skipped if skip["parentUri"] == parent}
        for edge in self.edges:
            if edge["from"] == parent:
                skip = skips.pop(edge["relativePath"], None)
                yield edge["relativePath"], None if skip else self.included.get(edge["to"]), skip
        for path, skip in skips.items():  # those that did not even resolve have no edge
            yield path, None, skip


def _grow(tree: Tree, parent: str, bundle: _Bundle, depth: int = 1) -> None:
    for path, document, skip in bundle.includes(parent):
        if document is not None:
            branch = tree.add(_document(document, "✓", "green", f"depth {depth}  "))
            _grow(branch, document["uri"], bundle, depth + 1)
        elif skip is not None:
            tree.add(_skip(path, skip))


def _document(document: Json, symbol: str, style: str, depth: str = "") -> Text:
    return Text.assemble(
        (f"{symbol} ", style),
        (_name(document["uri"]), style),
        (f"  {depth}{size(document['sizeBytes'])}  {document['mimeType']}", "dim"),
    )


def _skip(path: str, skip: Json) -> Text:
    symbol, style = _SKIPS.get(skip["reason"], _LOSS)
    code = f" ({skip['code']})" if skip.get("code") else ""
    return Text.assemble(
        (f"{symbol} {path}  {skip['reason']}{code}", style),
        (f"  {_name(skip['detail'])}" if skip.get("detail") else "", "dim"),
    )


def _name(text: str) -> str:
    """A document's key, or a sentence with keys in it: in one knowledge base the bucket says nothing."""
    return _BUCKET.sub("", text)
