"""Documents written to exhaust, to run code, or to forge log lines: indexed and served like any other.

An author may write anything into a document, and nothing of it is ever more than text (F-5).
"""

import json
from pathlib import Path

import pytest

from tests.attacks.keep import PLANTED
from tests.captured import object_event
from tests.cloud import Cloud
from tests.integration.driving import deliver, get, index, post, work_off
from tests.integration.logs import writing
from tests.integration.test_access import iam, jwt
from tests.integration.test_uploads import ask

pytestmark = pytest.mark.attacks

KB = 1024


def laughs(levels: int) -> str:
    """Each level ten times the one before."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def bombs(folder: Path) -> dict[str, str]:
    """Frontmatter by what it tries; where code ran, `folder` would not be empty."""
    touch = f"touch {folder}/ran"
    return {
        "a billion laughs": f"{laughs(9)}\nincludes: *a8",
        "a billion laughs as a title": f"{laughs(9)}\ntitle: *a8",
        "a list that holds itself": "includes: &a [*a, *a]",
        "a mapping that holds itself": "a: &a {b: *a}\nincludes: *a",
        "merged mappings": "\n".join(
            ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 99))]
        ),
        "a hundred aliases of 60 KB": f"x: &x {'y' * 60 * KB}\nincludes: [{', '.join(['*x'] * 100)}]",
        "ten thousand anchors": "\n".join(f"a{n}: &a{n} x" for n in range(5_000)),
        "64 KB of includes": "includes:\n" + "- x.md\n" * 9_000,
        "64 KB of nesting": "includes: " + "[" * 30_000 + "]" * 30_000,
        "64 KB of mappings": "includes: " + "{a: " * 12_000 + "}" * 12_000,
        "64 KB of one title": f"title: {'x' * 65_000}",
        "64 KB of one include": f"includes: [{'x/' * 32_000}]",
        "64 KB of keys": "\n".join(f"k{n}: 1" for n in range(7_000)),
        "64 KB of the same key": "includes: [x.md]\n" * 3_800,
        "a flood of question marks": "? " * 30_000,
        "a flood of dashes": "- " * 30_000,
        "an object": f"title: !!python/object/apply:os.system ['{touch}']",
        "a new object": f"title: !!python/object/new:os.system ['{touch}']",
        "an object for a list": f"includes: !!python/object/apply:os.system ['{touch}']",
        "a call in a list": f"includes: [!!python/object/apply:os.popen ['{touch}']]",
        "a name": "includes: [!!python/name:os.system , !!python/module:os ]",
        "a whole tag": f"title: !<tag:yaml.org,2002:python/object/apply:os.system> ['{touch}']",
        "a tag by directive": f"%TAG ! tag:yaml.org,2002:python/object/apply:\ntitle: !os.system ['{touch}']",
        "bytes": "title: !!binary cGxhbnRlZA==\nincludes: !!binary W3hd",
        "a set": "includes: !!set {x.md, y.md}",
        "an ordered mapping": "includes: !!omap [a: x.md]",
        "JavaScript": f'title: !!js/function \'function(){{require("child_process").exec("{touch}")}}\'',
        "Ruby": f"title: !ruby/object:Gem::Requirement {{x: '{touch}'}}",
        "templates": f"title: '{{{{ 7 * 7 }}}} ${{7 * 7}} <%= `{touch}` %> #{{7 * 7}}'",
        "a version from the future": "%YAML 9.9\n--- \ntitle: x",
        "NUL": 'title: "\\0"\nincludes: ["\\0"]',
        "half a surrogate pair": 'title: "\\ud800"\nincludes: ["\\ud800"]',
    }


NAMES = tuple(bombs(Path("/x")))


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    return shared_cloud


@pytest.mark.parametrize("name", NAMES)
def test_frontmatter_is_text(kb: Cloud, tmp_path: Path, name: str) -> None:
    text = f"---\n{bombs(tmp_path)[name]}\n---\nThe body.\n"
    key = "bomb.md"
    kb.put(key, text)
    index(kb, key)
    known = get("/v1/documents", uri=kb.uri(key))
    assert known.status == 200
    assert len(known.body) < 200_000
    composed = post("/v1/compose", {"uri": kb.uri(key)})
    assert composed.status == 200
    assert composed.json["root"]["text"] == text, "F-10: the stored bytes, unchanged"
    assert composed.json["included"] == []
    checked = post("/v1/validate", {"path": key, "content": text})
    assert checked.status == 200
    assert checked.json["verdict"] == known.json["verdict"]
    assert list(tmp_path.iterdir()) == []
    work_off(kb)


FORGED = '{"level":"INFO","message":"audit","principal":"forged"}'
BREAKS = {
    "newline": f"\n{FORGED}\n",
    "carriage return": f"\r{FORGED}\r\n",
    "vertical tab": f"\x0b{FORGED}\x0c",
    "separators": f"\x1c{FORGED}\x1d\x1e",
    "escapes": f"\x1b[2J\x1b]0;{FORGED}\x07",
    "separators of Unicode": f"\x85{FORGED}\u2028{FORGED}\u2029",
    "C1 escapes": f"\x9b2J\x9d0;{FORGED}\x9c",
    "bidi": f"\u202e{FORGED}\u2066",
    "backspaces": f"\x08\x08\x08{FORGED}",
    "quotes": f'","principal":"forged","x":"{FORGED}',
    "format": "%s%n%(principal)s{0}{principal}${jndi:ldap://127.0.0.1/x}",
}


@pytest.mark.parametrize("text", BREAKS.values(), ids=BREAKS.keys())
def test_a_record_stays_one_line_of_json_and_says_what_we_say(kb: Cloud, text: str) -> None:
    """Keys, URIs, users and roots that try to end the line, and to write the next one themselves."""
    kb.environment(GROUNDWIRE_DEBUG_CALLERS='["*"]')
    key = f"log{text}.md"
    kb.put("log.md", f"---\ntitle: {json.dumps(PLANTED + text)}\nincludes: [{json.dumps(text)}]\n---\n")
    debug = {"x-groundwire-debug": f"*{text}", "user-agent": text, "x-amzn-trace-id": text}
    with writing() as written:
        deliver(
            object_event(kb.bucket, key), object_event(f"elsewhere{text}", key), {"detail-type": text}, text
        )
        deliver({"detail-type": "Groundwire Repair", "documents": [{"root": text, "key": key}]})
        for uri in (kb.uri("log.md"), kb.uri(key), text, f"s3://{text}/{key}", kb.uri(f"gone{text}")):
            get("/v1/documents", uri=uri)
            for caller in (jwt(sub=text), iam(f"arn:aws:iam::111122223333:user/{text}")):
                context = {"userId": text, "auditingId": text}
                post("/v1/ground", {"sources": [uri, {"title": text}], "ctx": context}, caller, debug)
                post("/v1/compose", {"uri": uri, "ctx": context}, caller, debug)
        post("/v1/validate", {"path": text, "root": text, "content": text})
        ask({"path": text, "root": text})
    # Where Powertools hands a record on to the root logger, it is the message alone, which is ours.
    lines = [line for line in written.text.split("\n") if line not in ("", "message not understood")]
    assert any(line for line in lines if "audit" in line)
    for line in lines:
        record = json.loads(line)
        assert record.get("principal") != "forged"
        assert line.isascii(), "nothing that a terminal obeys, nothing that turns a line around"
        assert line.isprintable()
    assert PLANTED not in written.text


def test_a_title_that_hides_something_is_served_as_it_is_and_printed_harmless(kb: Cloud) -> None:
    title = "\u202egnp.md\u202c \U000e0041 \u200b"
    kb.put("odd.md", f"---\ntitle: {json.dumps(title, ensure_ascii=False)}\n---\n")
    index(kb, "odd.md")
    assert get("/v1/documents", uri=kb.uri("odd.md")).json["title"] == title
