"""The real command line against the reference, over random hostile folders: same input, same answer.

`python -m tests.differential --folders 200 --seed 1` prints each kind of difference once, with the smallest
folder found that shows it, and exits 1 if there is any. A folder depends on its seed and number alone.
"""

import argparse
import json
import os
import posixpath
import random
import shlex
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.reference import search

HEAD = 65_536
ROOT_NAME = "kb"
TRIALS = 150  # runs of the command line spent on making one reproduction smaller
COMMAND_SECONDS = 120

FOLDERS = [
    "",
    "",
    "",
    "sops",
    "sops/winter",
    "reference",
    "inbox",
    "inbox/new",
    "kb",
    ".git",
    "dir.md",
    "läm",
]
STEMS = [
    "a", "b", "c", "d", "e", "f", "terms", "Terms", "index", "a b", "a%20b", "a+b", "a#b", "a*", "...", "~",
    "lämpö", unicodedata.normalize("NFD", "lämpö"), "一覧", "\U0001f525", ".hidden", "._a", "con", "x'y",
    'x"y',
    "soft\u00adhyphen", "\uff0e\uff0e", "-dash", "12:30", "%2e", "trailing ", "k{0}", "[x]", "ﬁ",
]  # fmt: skip
EXTENSIONS = [".md"] * 12 + [".markdown", ".txt", ".txt", ".csv", ".png", ".MD", ".Markdown", ".xyz", ""]
LINE_ENDS = ["\n"] * 12 + ["\r\n", "\r\n", "\r"]


@dataclass(frozen=True)
class Case:
    """One folder and what is asked of it."""

    files: Mapping[str, bytes]
    links: Mapping[str, str]
    docs: Sequence[str]
    policy: Mapping[str, Any]
    strict: bool = False
    linted: Sequence[str] = ("",)


@dataclass(frozen=True)
class Difference:
    """One disagreement. `kind` is what makes two disagreements the same."""

    kind: str
    where: str
    ours: object
    theirs: object


# ------------------------------------------------------------------------------------------ generator


class Dice(random.Random):
    """Random choices; a tame folder has sound documents and a deep graph, the others have everything."""

    tame = False
    ascii_names = False

    def wild(self, chance: float) -> bool:
        """True with this chance, an eighth of it in a tame folder."""
        return self.random() < (chance / 8 if self.tame else chance)


def generate(rng: Dice) -> Case:
    """A folder, documents in it and a policy."""
    rng.tame = rng.random() < 0.5
    keys: list[str] = ["a.md"]
    for _ in range(rng.randint(3, 25)):
        folder = rng.choice(FOLDERS)
        name = rng.choice(STEMS) + rng.choice(EXTENSIONS)
        key = f"{folder}/{name}" if folder else name
        if rng.ascii_names and not key.isascii():
            continue
        # A file may not be where another file needs a folder.
        if any(other.startswith(f"{key}/") or key.startswith(f"{other}/") for other in keys):
            continue
        if key not in keys:
            keys.append(key)
    files = {key: _content(rng, key, keys) for key in keys}
    links: dict[str, str] = {}
    if rng.random() < 0.25:
        for _ in range(rng.randint(1, 3)):
            name, target = _link(rng, keys)
            if name not in files:
                links[name] = target
    readable = [key for key in keys if key.lower().endswith((".md", ".markdown"))]
    docs = [rng.choice(keys if not readable or rng.random() < 0.1 else readable)]
    if readable and rng.random() < 0.7:
        # Most documents are near the leaves; the larger pictures say more.
        docs = [max(rng.choices(readable, k=5), key=lambda key: len(search.search(files, key, {})["edges"]))]
    while rng.random() < 0.3:
        docs.append(rng.choice(readable or keys))
    folders = sorted({posixpath.dirname(key) for key in keys})
    if rng.random() < 0.05:
        docs = [rng.choice(folders)]
    shown = [key for key in keys if not search.is_hidden(key)]
    linted = rng.choice([[""]] * 8 + [[rng.choice(folders)], rng.sample(shown, min(3, len(shown)))])
    return Case(files, links, docs, _policy(rng, files), rng.random() < 0.2, linted)


def _link(rng: Dice, keys: Sequence[str]) -> tuple[str, str]:
    return rng.choice(
        [
            ("link.md", rng.choice(keys)),
            ("sops-link.md", f"./{rng.choice(keys)}"),
            ("out.md", "../kb_secret/payroll.md"),
            ("out-absolute.md", "/etc/hostname"),
            ("broken.md", "nowhere.md"),
            ("circle.md", "circle.md"),
            ("out", "../kb_secret"),
            ("loop", "."),
            ("to-sops", "sops"),
        ]
    )


def _policy(rng: Dice, files: Mapping[str, bytes]) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    if rng.random() < 0.5:
        policy["maxDepth"] = rng.choice([0, 1, 1, 2, 3, 4, 5, 99])
    if rng.random() < 0.5:
        policy["maxDocs"] = rng.choice([1, 2, 3, 4, 6, 12, 25, 64, 1000])
    if rng.random() < 0.4:
        sizes = [len(data) for data in files.values()]
        exact = sum(rng.sample(sizes, rng.randint(1, min(4, len(sizes)))))
        policy["maxIncludeBytes"] = rng.choice([0, exact, max(0, exact - 1), 300, 1000, 10**9])
    if rng.random() < 0.2:
        policy["timeoutMs"] = rng.choice([20_000, 25_000, 60_000])
    if rng.random() < 0.35:
        policy["onFetchError"] = rng.choice(["skip", "abort", "abort"])
    if rng.random() < 0.25:
        policy["traversableMimeTypes"] = rng.choice(
            [
                ["text/markdown", "text/plain"],
                ["text/plain"],
                ["text/csv", "text/markdown"],
                ["text/markdown", "image/png"],
            ]
        )
    return policy


def _content(rng: Dice, key: str, keys: Sequence[str]) -> bytes:
    if key.endswith(".png") and rng.random() < 0.7:
        return b"\x89PNG\r\n\x1a\n" + rng.randbytes(rng.randint(0, 40))
    if not rng.wild(0.28):
        return _document(rng, key, keys)
    chance = rng.random()
    if chance < 0.2:
        return _exact(rng, key, keys)
    if chance < 0.4:
        return _body(rng).encode()
    return _odd(rng, key, keys)


def _body(rng: Dice) -> str:
    return rng.choice(
        ["", "# Title\n", "Text\n---\nincludes: [no.md]\n---\n", "ä" * rng.randint(0, 200), "x" * 500]
    )


def _document(rng: Dice, key: str, keys: Sequence[str]) -> bytes:
    """An honest block, more or less."""
    end = rng.choice(LINE_ENDS)
    opening = "---" + rng.choice([""] * 9 + [" ", "\t", " \t "])
    closing = rng.choice(["---"] * 8 + ["...", "--- ", "...\t"])
    lines = [opening, *_block(rng, key, keys), closing]
    if rng.random() < 0.05:
        text = "".join(line + rng.choice(["\n", "\r\n", "\r"]) for line in lines)
    else:
        text = end.join(lines) + rng.choice([end] * 9 + [""])
    bom = b"\xef\xbb\xbf" if rng.random() < 0.06 else b""
    body = _body(rng)
    tail = body.encode() if rng.random() < 0.95 else b"K\xe4yt\xf6 \xff\xfe"
    return bom + text.encode() + (tail if text.endswith(("\n", "\r")) else b"")


def _block(rng: Dice, key: str, keys: Sequence[str]) -> list[str]:
    parts: list[list[str]] = []
    base = key
    if rng.random() < 0.6:
        parts.append(_title(rng))
    if rng.random() < 0.22:
        declared, lines = _canonical(rng, key, keys)
        base = declared or key
        parts.append(lines)
    if rng.random() < 0.85:
        parts.append(_includes(rng, base, keys))
    if rng.wild(0.3):
        parts.append(_extra(rng))
    rng.shuffle(parts)
    if rng.wild(0.04) and parts:
        parts.append(rng.choice(parts))  # every key of that part twice
    return [line for part in parts for line in part]


def _title(rng: Dice) -> list[str]:
    if not rng.wild(0.5):
        return [
            rng.choice(
                ["title: Plain", 'title: "Quoted: yes"', "title: no", "title: Lämpö", "title: 2024-13-45"]
            )
        ]
    return [
        rng.choice(
            [
                "title: 12", "title: true", "title: [a, b]", "title: {a: b}", "title: !x y", "title: ''",
                "title: x\u2028includes: [y]", "title: x\u2029y", "title: x\u0085- z", "title: 12:30:45",
                "title: a: b", "title: {{ x }}", "title: @x", "title: `x`", "title: %x", "title: 0o17",
                "title: 1e3", "title: .inf", "title: |\n  two\n  lines", "title: \ue000\ue001",
                "title: a\x0cb", "title: a\x0bb", "title: nul\0", "title: \uffff", 'title: "\\ud800"',
            ]
        )
    ]  # fmt: skip


def _canonical(rng: Dice, key: str, keys: Sequence[str]) -> tuple[str | None, list[str]]:
    chance = rng.random()
    if chance < 0.3:
        declared: str | None = key
    elif chance < 0.6:
        declared = rng.choice(keys)
    elif chance < 0.75:
        declared = f"{rng.choice(['sops', 'deep/er', 'reference'])}/canon.md"
    else:
        declared = None
    if declared is not None:
        written = declared if rng.random() < 0.8 else f"./x/../{declared}"
        return declared, [f"canonical_path: {_scalar(rng, written)}"]
    return None, [
        "canonical_path: "
        + rng.choice(
            [
                "/abs.md", "../up.md", "sops/../../up.md", "404", "true", "[a.md]", "''", "~", "",
                "null", ".",
                "sops/", "a//b.md", "https://x/y.md", "C:/x.md", "'a\\b.md'", "%2e%2e/x.md", '"a\\tb.md"',
                "!x a.md", "k" * 1025, "'..'",
            ]
        )
    ]  # fmt: skip


def _extra(rng: Dice) -> list[str]:
    return rng.choice(
        [
            ["Includes: [a.md]"], ["include: a.md"], ["canonicalPath: x.md"], ["Title: x"], ["INCLUDES: []"],
            ["canonical-path: x.md"], ["owner: !!python/object/apply:os.getcwd []"],
            ["<<: {includes: [b.md]}"],
            ["tags: &t [x, *t]"], ["tags: *nowhere"], ["tags: [&a x, *a]"], ["? [complex, key]", ": value"],
            ["# comment"], ["", "# comment", ""], ["\tkey: value"], ["key:\tvalue"],
            ["review: {by: a, by: b}"],
            ["12: x"], ["true: x"], ["~: x"], ["tags: [a, b"], ["text: |", "  ---", "  includes: [x.md]"],
            ["text: >-", "  folded", "  text"], ["date: 2024-02-31"], ["%YAML 1.2"], ["tags: 'open"],
            ["- item"], ["just words"], ["key: {a: {b: {c: [1, 2]}}}"], ["owner: a", "owner: b"],
            ["owner: a", '"owner": b', "owner: c"], ["--- second"], ["x: y # c", "... # not a fence"],
        ]
    )  # fmt: skip


def _includes(rng: Dice, base: str, keys: Sequence[str]) -> list[str]:
    if rng.wild(0.1):
        return [
            rng.choice(
                [
                    "includes:", "includes: ''", 'includes: ""', "includes: ~", "includes: null",
                    "includes: a.md",
                    "includes: {a: b.md}", "includes: 12", "includes: []", "includes: ' '",
                    "includes: !x []",
                    "includes: !!set {a.md}", "includes: !!str ''", "includes: !x ''", "includes: *i",
                    "base: &i [a.md, b.md]\nincludes: *i", "includes: &i [a.md, *i]", "includes: true",
                    "includes: [a.md]\nincludes: [b.md]", '"includes": [a.md]\nincludes: []',
                ]
            )
        ]  # fmt: skip
    count = rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 8, 12])
    if rng.wild(0.03):
        count = rng.choice([99, 100, 101, 130])
    entries = [_entry(rng, base, keys) for _ in range(count)]
    if rng.random() < 0.12:
        entries.append(rng.choice(entries))
    if rng.random() < 0.15 and not any("\n" in entry or "#" in entry for entry in entries):
        return [f"includes: [{', '.join(entry for entry in entries if entry)}]"]
    indent = rng.choice(["  ", "  ", ""])
    return [rng.choice(["includes:", "includes: # list"]), *(f"{indent}- {entry}" for entry in entries)]


def _entry(rng: Dice, base: str, keys: Sequence[str]) -> str:
    """One item as YAML."""
    if not rng.wild(0.4):
        return _scalar(rng, _spell(rng, base, rng.choice(keys)))
    chance = rng.random()
    if chance < 0.3:
        return _scalar(rng, _near(rng, base, keys))
    if chance < 0.45:
        return rng.choice(
            [
                "12", "007", "1.5", "1e3", "0x1F", ".inf", "true", "TRUE", "null", "~", "", "''",
                '"  "', '"\\t"',
                "{a: b.md}", "[a.md]", "path: a.md", "!x a.md", "!!int a.md", "no", "on", "2024-01-01",
                "12:30:45", "1_000", "0b11", "-.INF", ".nan", "+12", "0o7", "&z a.md", "!!binary aGk=",
                "*z",
                "|\n    a.md", ">-\n    a\n    b.md", "a\n    b.md", "a.md #note", "Null", "False",
                "tRUE", ".5",
                "5.", "!!null ''", "*.md", "@a.md", "a: b",
            ]
        )  # fmt: skip
    return _scalar(rng, _hostile(rng, base, keys))


def _spell(rng: Dice, base: str, key: str) -> str:
    """A relative path from the folder of `base` to `key`, spelled one way or another."""
    folder = posixpath.dirname(base)
    up = [] if not folder else folder.split("/")
    down = key.split("/")
    while up and len(down) > 1 and up[0] == down[0]:
        up, down = up[1:], down[1:]
    path = "/".join([".."] * len(up) + down)
    chance = rng.random()
    if chance < 0.3:
        return f"./{path}"
    if chance < 0.36:
        return f"zz/../{path}"
    if chance < 0.4 and folder:
        return f"../{folder.rsplit('/', 1)[-1]}/{path}"
    if chance < 0.43:
        return path.replace("/", "/./")
    if chance < 0.47 or (not path.isascii() and chance < 0.7):
        return unicodedata.normalize(rng.choice(["NFC", "NFD", "NFKC"]), path)
    if chance < 0.5:
        return path.swapcase()
    return path


def _near(rng: Dice, base: str, keys: Sequence[str]) -> str:
    """Something beside an existing document."""
    path = _spell(rng, base, rng.choice(keys))
    return rng.choice(
        [
            path.rsplit(".", 1)[0], f"{path}#part", f"{path}?v=1", f"{path}.md", f"{path}/x.md", f" {path}",
            f"{path} ", path.replace(" ", "%20"), "gone.md", "gone/gone.md", "sops", "reference", "dir.md",
            "n" * 300 + ".md", f"{path}/", f"link.md/{path}", "link.md", "out.md", "broken.md", "circle.md",
            "out/payroll.md", "loop/a.md", "to-sops/a.md", "out-absolute.md", "loop",
            posixpath.basename(base),
            ".hidden.md", "sops-link.md", "loop/link.md",
            *([] if rng.ascii_names else ["g\xf6ne.md", "go\u0308ne.md", "l\xe4m/x.md", "la\u0308m/x.md"]),
        ]
    )  # fmt: skip


def _hostile(rng: Dice, base: str, keys: Sequence[str]) -> str:
    path = _spell(rng, base, rng.choice(keys))
    return rng.choice(
        [
            f"/{path}", "//host/x.md", "/etc/passwd", "https://x.example/a.md", "s3://b/k.md",
            "C:/a.md", "c:a.md",
            "file:a.md", "mailto:x", "1a:b.md", "a.b:c.md", "a_b:c.md", "a\\b.md", "\\\\h\\s",
            "https:\\\\x",
            "a\tb.md", "a\n", "a\0b.md", "a\x7fb.md", "a\u0080b.md", "a\u0085b.md", "a\u202eb.md",
            "a\u2066b.md",
            "a\u200bb.md", "a\u200db.md", "a\u2060b.md", "\ufeffa.md", "a\U000e0041b.md", "a\u2069",
            "a\u202a",
            "../" * 9 + "etc/passwd", "..", ".", "./", "../", "sub/..", "sub/.", "sub/",
            "../../kb_secret/payroll.md",
            "../kb/a.md", "../../kb/a.md", "../kb_secret/payroll.md", "/..", "x/../../..", "../..",
            "a//b.md", "./" + "/x.md", "....//a.md", ".../a.md", "..;/a.md", "a//", "x/..//y.md",
            "..//a.md",
            "%2e%2e/a.md", "%2E./a.md", "..%2fa.md", "a%2fb.md", "a%5cb.md", "a%00.md", "%252e%252e/a.md",
            "a%2525252fb.md", "a%252525252fb.md", "a%25252525252fb.md", "%2e/a.md", "../%2e%2e/a.md",
            "100%.md",
            "%zz.md", "%c0%ae%c0%ae/a.md", "%e4.md", "a%2eb.md", "%2f", "a%252e%252e.md", "%2e.%2e/x.md",
            "k" * 1021 + ".md", "k" * 1022 + ".md", "ä" * 520 + ".md", "d/" * 511 + "x", "d/" * 512 + "x",
            "*.md", "?.md", "[a].md", "~/a.md", "$HOME/a.md", "\uff0e\uff0e/a.md", "\u2024\u2024/a.md",
            "a\u2044b.md", "a.md\u3000", "\ufe68a.md", "-", "a.md;b.md", "a.md\u00a0", "a|b.md", "<a>.md",
        ]
    )  # fmt: skip


def _scalar(rng: Dice, text: str) -> str:
    """`text` as a YAML scalar: plain where that is safe, else quoted."""
    plain = text.isascii() and text.replace("/", "").replace(".", "").replace("-", "").isalnum()
    # A first letter keeps numbers, dates and indicators out; `true.md` and the like are still text.
    if plain and (text[0].isalpha() or text.startswith(("./", "../"))) and rng.random() < 0.8:
        return text
    if text.isprintable() and rng.random() < 0.4:
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_escaped(rng, char) for char in text) + '"'


def _escaped(rng: Dice, char: str) -> str:
    if char in '"\\':
        return "\\" + char
    point = ord(char)
    if char.isprintable() and (char.isascii() or rng.random() < 0.7):
        return char
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _exact(rng: Dice, key: str, keys: Sequence[str]) -> bytes:
    """A block that ends at the limit, or a byte to either side of it."""
    bom = b"\xef\xbb\xbf" if rng.random() < 0.2 else b""
    end = rng.choice(["\n", "\n", "\r\n"])
    closing = rng.choice(["---", "...", "---  "])
    before = end.join(["---", *_block(rng, key, keys)]).replace("\0", "") + end
    size = rng.choice([HEAD - 1, HEAD, HEAD, HEAD + 1, HEAD + 2, HEAD + 5, HEAD + 4000])
    last = rng.choice([closing + end] * 4 + [closing])
    padding = size - len(bom) - len((before + "#" + end + last).encode())
    filler = "x" * padding if rng.random() < 0.7 else "ä" * (padding // 2) + "x" * (padding % 2)
    text = before + "#" + filler + end + last
    after = b"" if last == closing else rng.choice([b"", b"body\n", b"\xff" * 20, "ä".encode() * 40])
    return bom + text.encode() + after


def _odd(rng: Dice, key: str, keys: Sequence[str]) -> bytes:
    """Everything that is not an honest block."""
    block = "\n".join(_block(rng, key, keys))
    whole = f"---\n{block}\n---\nBody\n"
    makers: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: b"\xef\xbb\xbf",
        lambda: b"---",
        lambda: b"---\n",
        lambda: b"---\n---",
        lambda: b"---\n---\n",
        lambda: b"---\n...\n",
        lambda: b"---\n# only a comment\n---\n",
        lambda: b"\xef\xbb\xbf\xef\xbb\xbf" + whole.encode(),
        lambda: whole.encode("utf-16"),
        lambda: whole.encode("utf-16-le"),
        lambda: whole.encode("utf-8").replace(b"\n---\nBody", b"\nx: K\xe4yt\xf6\n---\nBody"),
        lambda: b"---\nx: \xed\xa0\x80\n" + block.encode() + b"\n---\n",
        lambda: b"\xff" + whole.encode(),
        lambda: b"Text \xe4\n" + whole.encode(),
        lambda: b"Text\n\xe4\n",
        lambda: b"\n\xe4\n" + whole.encode(),
        lambda: b"# Head\n\xff\xfe\n",
        lambda: f"---\n{block}\n".encode(),
        lambda: f"---\n{block}".encode(),
        lambda: f"---\n{block}\n".encode() + b"y" * HEAD,
        lambda: b"x" * HEAD + b"\xff",
        lambda: b"x" * (HEAD - 1) + "ä".encode(),
        lambda: b"x" * (HEAD - 1) + b"\xc3",
        lambda: b"\n" * (HEAD + 10) + whole.encode(),
        lambda: f"----\n{block}\n----\n".encode(),
        lambda: f"---yaml\n{block}\n---\n".encode(),
        lambda: f"--- yaml \n{block}\n---\n".encode(),
        lambda: f"---js\n{block}\n---\n".encode(),
        lambda: f"---\tjson\n{block}\n---\n".encode(),
        lambda: f"--- two words\n{block}\n---\n".encode(),
        lambda: f"+++\n{block}\n+++\n".encode(),
        lambda: f" ---\n{block}\n---\n".encode(),
        lambda: f"\ufeff {whole}".encode(),
        lambda: f"\n{whole}".encode(),
        lambda: f" \t\r\n\n{whole}".encode(),
        lambda: f"\x0c\n{whole}".encode(),
        lambda: f"\u00a0\n{whole}".encode(),
        lambda: f"<!-- note -->\n{whole}".encode(),
        lambda: f"<!-- note\n---\nstill -->\n\n{whole}".encode(),
        lambda: f"<!-- a --> <!-- b -->  \n{whole}".encode(),
        lambda: f"<!-- a --> text\n{whole}".encode(),
        lambda: f"<!-- a -->{whole}".encode(),
        lambda: f"<!-- open\n{whole}".encode(),
        lambda: f"text\n{whole}".encode(),
        lambda: f"\n\n{block}\n---\n".encode(),
        lambda: f"---\u2028{block}\n---\n".encode(),
        lambda: f"---\x0c\n{block}\n---\n".encode(),
        lambda: f"---\n{block}\n --- \n{block}\n---\n".encode(),
        lambda: f"---\n{block}\n---x\n---\n".encode(),
        lambda: f"---\n{block}\n----\n---\n".encode(),
        lambda: b"---\nA rule, then text\n\n---\n" + _body(rng).encode(),
        lambda: b"---\n- a.md\n- b.md\n---\n",
        lambda: b"---\n~\n---\n",
        lambda: b"---\n" + b"[" * 3000 + b"\n---\n",
        lambda: b"---\na: " + b"[" * 900 + b"]" * 900 + b"\nincludes: [a.md]\n---\n",
        lambda: f"---\n{_bomb()}includes: [a.md]\n---\n".encode(),
        lambda: whole.encode() + whole.encode(),
        lambda: whole.replace("\n", "\u2028").encode(),
        lambda: whole.replace("\n", "\n\n").encode(),
    ]  # fmt: skip
    return rng.choice(makers)()


def _bomb() -> str:
    lines = (f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9) if n else 'x'}]\n" for n in range(9))
    return "".join(lines)


# ------------------------------------------------------------------------------------------ comparison


@contextmanager
def laid_out(case: Case) -> Iterator[Path]:
    """The folder on disk, with a neighbour outside the root that nobody may read."""
    with tempfile.TemporaryDirectory(prefix="differential-") as name:
        root = Path(name) / ROOT_NAME
        root.mkdir()
        outside = Path(name) / "kb_secret"
        outside.mkdir()
        (outside / "payroll.md").write_text("---\nincludes: []\n---\nsecret\n")
        for key, data in case.files.items():
            (root / key).parent.mkdir(parents=True, exist_ok=True)
            (root / key).write_bytes(data)
        for key, target in case.links.items():
            if not (root / key).is_symlink() and not (root / key).exists():
                (root / key).symlink_to(target)
        yield root


def flags(policy: Mapping[str, Any]) -> list[str]:
    """A policy as options of the command line."""
    names = {
        "maxDepth": "--max-depth",
        "maxDocs": "--max-docs",
        "maxIncludeBytes": "--max-include-bytes",
        "timeoutMs": "--timeout-ms",
        "onFetchError": "--on-fetch-error",
    }
    found = [part for name, value in policy.items() if name in names for part in (names[name], str(value))]
    for mime_type in policy.get("traversableMimeTypes", []):
        found += ["--traversable-mime", mime_type]
    return found


def run(arguments: Sequence[str]) -> tuple[int, Any, str]:
    """Exit code, JSON (None if it is none) and what else there is to see."""
    done = subprocess.run(
        [sys.executable, "-m", "groundwire_cli.main", *arguments],
        capture_output=True,
        check=False,
        timeout=COMMAND_SECONDS,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    complaint = done.stderr.decode("utf-8", "replace")
    try:
        return done.returncode, json.loads(done.stdout), complaint
    except ValueError:
        return done.returncode, None, complaint + done.stdout.decode("utf-8", "replace")[:2000]


def lint_arguments(root: Path, case: Case) -> list[str]:
    """The command line of a lint, mostly of everything."""
    return ["lint", "--json", "--root", str(root), "--", *(str(root / key) for key in case.linted)]


def explain_arguments(root: Path, case: Case) -> list[str]:
    """The command line of an explain."""
    documents = [str(root / key) for key in case.docs]
    strict = ["--strict"] if case.strict else []
    return ["explain", "--json", "--root", str(root), *flags(case.policy), *strict, "--", *documents]


def compare(root: Path, case: Case) -> list[Difference]:
    """Everything in which the command line and the reference differ on this folder."""
    return [*compare_lint(root, case), *compare_explain(root, case)]


def compare_lint(root: Path, case: Case) -> list[Difference]:
    """`lint`: documents, verdicts, includes, findings and the exit code."""
    ours = search.lint(root, [root / key for key in case.linted])
    code, theirs, complaint = run(lint_arguments(root, case))
    if theirs is None or "Traceback" in complaint:
        return [Difference("lint crash", _last_line(complaint), "JSON", (code, complaint[-1500:]))]
    found: list[Difference] = []
    wanted = {document["uri"]: document for document in ours["documents"]}
    given = {document["uri"]: document for document in theirs["documents"]}
    if len(given) != len(theirs["documents"]):
        found.append(Difference("lint document twice", "documents", len(given), len(theirs["documents"])))
    for uri in sorted(wanted.keys() ^ given.keys()):
        here = "ours only" if uri in wanted else "theirs only"
        found.append(Difference(f"lint documents: {here}", uri, uri in wanted, uri in given))
    for uri in sorted(wanted.keys() & given.keys()):
        found += _compare_document(uri, wanted[uri], given[uri])
    errors = any(finding["severity"] == "error" for item in ours["documents"] for finding in item["findings"])
    if code != int(errors):
        found.append(Difference("lint exit code", "exit", int(errors), code))
    return found


def _compare_document(uri: str, ours: dict[str, Any], theirs: dict[str, Any]) -> list[Difference]:
    found = [
        Difference(f"lint {name}", uri, ours[name], theirs[name])
        for name in ("path", "verdict")
        if ours[name] != theirs[name]
    ]
    if len(ours["includes"]) != len(theirs["includes"]):
        found.append(
            Difference("lint number of includes", uri, len(ours["includes"]), len(theirs["includes"]))
        )
    for mine, other in zip(ours["includes"], theirs["includes"], strict=False):
        names = ["index", "target", "code"] + ([] if mine["raw"] is None else ["raw", "line"])
        found += [
            Difference(
                f"lint include {name}{_codes(name, mine, other)}", f"{uri} {mine}", mine[name], other[name]
            )
            for name in names
            if mine[name] != other[name]
        ]
    severities = {
        (mine["code"], mine["severity"], other["severity"])
        for mine in ours["findings"]
        for other in theirs["findings"]
        if mine["code"] == other["code"] and mine["severity"] != other["severity"]
    }
    found += [Difference(f"lint severity {code}", uri, mine, other) for code, mine, other in severities]
    mine_count = Counter(finding["code"] for finding in ours["findings"])
    other_count = Counter(finding["code"] for finding in theirs["findings"])
    for code in sorted(mine_count.keys() | other_count.keys()):
        if mine_count[code] != other_count[code]:
            found.append(Difference(f"lint finding {code}", uri, mine_count[code], other_count[code]))
            continue
        lines = [finding["line"] for finding in ours["findings"] if finding["code"] == code]
        others = [finding["line"] for finding in theirs["findings"] if finding["code"] == code]
        # No line of ours: the contract does not say which.
        if None not in lines and Counter(lines) != Counter(others):
            found.append(Difference(f"lint line of {code}", uri, lines, others))
    return found


def _codes(name: str, mine: dict[str, Any], other: dict[str, Any]) -> str:
    return f" {mine['code']}/{other['code']}" if name in ("code", "target") else ""


def compare_explain(root: Path, case: Case) -> list[Difference]:
    """`explain`: the bundles and the exit code."""
    folder = (root / case.docs[0]).is_dir()
    docs = [root / key for key in case.docs]
    if folder:
        docs = [root / item["path"] for item in search.lint(root, docs)["documents"]]
    ours = [search.explain(root, doc, case.policy) for doc in docs]
    code, answer, complaint = run(explain_arguments(root, case))
    if answer is None or "Traceback" in complaint:
        return [Difference("explain crash", _last_line(complaint), "JSON", (code, complaint[-1500:]))]
    theirs = answer["bundles"] if folder or len(docs) > 1 else [answer]
    if folder:
        # The contract gives no order to the documents of a folder.
        ours, theirs = (
            sorted(each, key=lambda bundle: str(bundle["root"]["uri"])) for each in (ours, theirs)
        )
    found: list[Difference] = []
    if len(ours) != len(theirs):
        found.append(Difference("explain number of bundles", " ".join(case.docs), len(ours), len(theirs)))
    for mine, other in zip(ours, theirs, strict=False):
        found += _compare_bundle(mine, other)
    lost = int(case.strict and not all(bundle["complete"] for bundle in ours))
    if code != lost:
        found.append(Difference("explain exit code", "exit", lost, code))
    return found


def _compare_bundle(ours: dict[str, Any], theirs: dict[str, Any]) -> list[Difference]:
    def rows(bundle: dict[str, Any], part: str, *names: str) -> list[tuple[Any, ...]]:
        return [tuple(row[name] for name in names) for row in bundle[part]]

    def shown(bundle: dict[str, Any]) -> dict[str, object]:
        return {
            "root": bundle["root"]["uri"],
            "included": rows(bundle, "included", "uri"),
            "documents": [
                (item["uri"], item["mimeType"], item["sizeBytes"], item["sha256"])
                for item in (bundle["root"], *bundle["included"])
            ],
            "edges": rows(bundle, "edges", "from", "to", "relativePath", "depth"),
            "skipped": rows(bundle, "skipped", "parentUri", "relativePath", "reason", "code"),
            "complete": bundle["complete"],
            "aborted": bundle["aborted"],
            "policy": bundle["policy"],
        }

    mine, other = shown(ours), shown(theirs)
    where = ours["root"]["uri"]
    found = []
    for name in mine:
        if mine[name] == other[name]:
            continue
        kind = f"explain {name}"
        if name == "skipped":
            left, right = Counter(mine[name]), Counter(other[name])  # type: ignore[call-overload]
            kinds = [sorted({row[2:] for row in rows_}, key=str) for rows_ in (left - right, right - left)]
            kind += f" {kinds[0]}/{kinds[1]}"
        found.append(Difference(kind, where, mine[name], other[name]))
    return found


def usage_is_checked(root: Path, key: str) -> list[Difference]:
    """B-1, section 10: nonsense is a usage error, never a silent default."""
    nonsense = [
        ["--max-depth", "-1"],
        ["--max-depth", "two"],
        ["--max-depth", "1.5"],
        ["--max-docs", "0"],
        ["--max-include-bytes", "-1"],
        ["--timeout-ms", "0"],
        ["--on-fetch-error", "maybe"],
        ["--no-such-option"],
    ]
    found = []
    for options in nonsense:
        code, _, complaint = run(["explain", "--json", "--root", str(root), *options, str(root / key)])
        if code != 2 or "Traceback" in complaint:
            found.append(Difference(f"usage {' '.join(options)}", "exit", 2, (code, complaint[-500:])))
    return found


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def bundle_ids_agree(root: Path, case: Case) -> list[Difference]:
    """B-10: asked twice, the same id; another document's content changed, another id."""
    first, again = (run(explain_arguments(root, case))[1] for _ in range(2))
    if first is None or again is None:
        return []
    bundles = [answer.get("bundles", [answer]) for answer in (first, again)]
    ids = [[bundle["bundleId"] for bundle in answer] for answer in bundles]
    found = [] if ids[0] == ids[1] else [Difference("explain bundleId differs", "asked twice", *ids)]
    contents: dict[str, tuple[object, ...]] = {}
    for bundle in bundles[0]:
        documents = [bundle["root"], *bundle["included"]]
        identity = tuple((item["uri"], item["version"], item["sha256"]) for item in documents)
        if contents.setdefault(bundle["bundleId"], identity) != identity:
            found.append(Difference("explain bundleId shared", bundle["bundleId"], contents, identity))
    return found


# ------------------------------------------------------------------------------------------ reporting


def differences(case: Case, ids: bool = False, usage: bool = False) -> list[Difference]:
    """Lay the folder out and compare."""
    with laid_out(case) as root:
        found = compare(root, case)
        if ids:
            found += bundle_ids_agree(root, case)
        if usage:
            found += usage_is_checked(root, next(iter(case.files)))
        return found


def smaller(case: Case, kind: str) -> Case:
    """Leave out files, links, options and lines as long as the difference stays."""
    left = TRIALS

    def still(candidate: Case) -> bool:
        nonlocal left
        named = {*candidate.docs, *candidate.linted} - {""}
        if not all(any(f"{key}/".startswith(f"{name}/") for key in candidate.files) for name in named):
            return False
        left -= 1
        return left >= 0 and any(difference.kind == kind for difference in differences(candidate))

    if kind.startswith("lint"):
        case = replace(case, docs=case.docs[:1], policy={}, strict=False)
    elif still(replace(case, linted=[""])):
        case = replace(case, linted=[""])
    for key in list(case.docs)[1:]:
        docs = [doc for doc in case.docs if doc != key] or [key]
        if still(replace(case, docs=docs)):
            case = replace(case, docs=docs)
    for name in list(case.policy):
        policy = {other: value for other, value in case.policy.items() if other != name}
        if still(replace(case, policy=policy)):
            case = replace(case, policy=policy)
    step = max(1, len(case.files) // 2)
    while step:
        for at in range(0, len(case.files), step):
            gone = {key for key in list(case.files)[at : at + step] if key not in (*case.docs, *case.linted)}
            files = {key: data for key, data in case.files.items() if key not in gone}
            if gone and still(replace(case, files=files)):
                case = replace(case, files=files)
        step //= 2
    for name in list(case.links):
        links = {other: target for other, target in case.links.items() if other != name}
        if still(replace(case, links=links)):
            case = replace(case, links=links)
    for key in list(case.files):
        lines = case.files[key].splitlines(keepends=True)
        step = max(1, len(lines) // 2)
        while step:
            for at in reversed(range(1, len(lines), step)):
                shorter = lines[:at] + lines[at + step :]
                candidate = replace(case, files={**case.files, key: b"".join(shorter)})
                if len(shorter) < len(lines) and still(candidate):
                    case, lines = candidate, shorter
            step //= 2
    return case


def describe(case: Case) -> str:
    """A case as something to read and to repeat."""
    parts = [f"  file {key!a}: {_shown(data)}" for key, data in case.files.items()]
    parts += [f"  link {key!a} -> {target!a}" for key, target in case.links.items()]
    options = shlex.join([*flags(case.policy), *(["--strict"] if case.strict else []), "--", *case.docs])
    return "\n".join([*parts, f"  lint -- {shlex.join(case.linted)}", f"  explain {options}"])


def _shown(data: bytes) -> str:
    return repr(data) if len(data) < 1500 else f"{data[:300]!r} ... {data[-200:]!r} ({len(data)} bytes)"


@dataclass
class Tally:
    """How often each kind of difference came up, and where first."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, tuple[int, Case, Difference]] = field(default_factory=dict)

    def add(self, number: int, case: Case, found: Sequence[Difference]) -> None:
        """Count each kind once a folder."""
        for difference in found:
            self.first.setdefault(difference.kind, (number, case, difference))
        self.counts.update({difference.kind for difference in found})


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one folder, by number")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-shrink", action="store_true", help="report folders as they were generated")
    parser.add_argument("--ascii-names", action="store_true", help="leave Unicode forms out of it")
    options = parser.parse_args(arguments)

    numbers = range(options.folders) if options.only is None else [options.only]

    def one(number: int) -> tuple[int, Case, list[Difference]]:
        dice = Dice(f"{options.seed}/{number}")
        dice.ascii_names = options.ascii_names
        case = generate(dice)
        return number, case, differences(case, ids=number % 20 == 0, usage=number == 0)

    tally = Tally()
    with ThreadPoolExecutor(options.workers) as pool:
        for number, case, found in pool.map(one, numbers):
            tally.add(number, case, found)
    for kind, count in tally.counts.most_common():
        number, case, difference = tally.first[kind]
        if not options.no_shrink and any(again.kind == kind for again in differences(case)):
            case = smaller(case, kind)
            difference = next((again for again in differences(case) if again.kind == kind), difference)
        print(f"\n{kind}: {count} of {len(numbers)} folders, first in seed {options.seed} number {number}")
        # In ASCII: much of what differs here looks alike.
        print(f"  at     {difference.where!a}\n  ours   {difference.ours!a}\n  theirs {difference.theirs!a}")
        print(describe(case))
    print(f"\n{len(numbers)} folders, {len(tally.counts)} kinds of difference")
    return 1 if tally.counts else 0


if __name__ == "__main__":
    sys.exit(main())
