"""An answer of POST /v1/ground, laid out for a person: trees, sources, findings.

Everything shown is in the JSON; nothing here decides anything. Colour repeats what a symbol and a word say.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from groundwire_cli.tree import bundle_tree
from groundwire_cli.wording import ATTACHED, FINDING_STYLES, LOST, SKIP_STYLES, VERDICT_STYLES, size

Json = Mapping[str, Any]

_BUCKET = re.compile(r"s3://[^/\s]+/")


def include_trees(answer: Json) -> Iterator[Tree]:
    """One tree for each root document: what was attached, what was not and why."""
    yield from map(bundle_tree, filter(None, answer["compositionBundles"]))


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
    meanings = (
        (ATTACHED, "attached"),
        (SKIP_STYLES["cycle"], "attached already, nothing is lost"),
        (SKIP_STYLES["depth_exceeded"], "over a bound"),
        (LOST, "lost"),
    )
    return Text("  ").join(Text.assemble((symbol, style), f" {words}") for (style, symbol), words in meanings)


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
    yield Text.assemble((key, "bold"), "  ", (document["verdict"], VERDICT_STYLES[document["verdict"]][0]))
    for finding in document["findings"]:
        style, symbol = FINDING_STYLES[finding["severity"]]
        place = f"line {finding['line']}: " if finding["line"] is not None else ""
        yield Text.assemble(f"  {symbol} ", place, (finding["code"], style), f": {finding['message']}")
        if finding["hint"]:
            yield Text.assemble("    → ", (finding["hint"], "cyan"))


def complete(value: bool) -> Text:
    """Yes or no to "is anything missing from what the model will read?"."""
    return Text("complete", "green") if value else Text("not complete", "red")


def _name(text: str) -> str:
    """A document's key, or a sentence with keys in it: in one knowledge base the bucket says nothing."""
    return _BUCKET.sub("", text)
