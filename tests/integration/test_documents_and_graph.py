"""What the index knows, over HTTP: verdicts that follow their targets, and the graph in both directions."""

import unicodedata
from typing import Any

import pytest

from tests.cloud import Cloud
from tests.integration.driving import get, index, upload

FILES: dict[str, str | bytes] = {
    "a.md": "---\ntitle: A\nincludes: [b.md, c.md, gone.md, ../x.md]\n---\n",
    "b.md": "---\nincludes: [d.md]\n---\n",
    "c.md": "---\nincludes: [d.md, c.md]\n---\n",
    "d.md": "---\nincludes: [a.md]\n---\n",
}


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    upload(shared_cloud, FILES)
    return shared_cloud


def status(cloud: Cloud, key: str) -> dict[str, Any]:
    answer = get("/v1/documents", uri=cloud.uri(key))
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def codes(found: dict[str, Any]) -> list[str]:
    return [each["code"] for each in found["findings"]]


def graph(cloud: Cloud, key: str, **query: str) -> tuple[dict[str, bool], list[tuple[str, str, int]]]:
    """Which documents there are, and the edges between them with their distance."""
    answer = get("/v1/graph", uri=cloud.uri(key), **query)
    assert answer.status == 200, answer.body
    found = answer.json

    def short(uri: str) -> str:
        return uri.removeprefix(f"s3://{cloud.bucket}/")

    return (
        {short(each["uri"]): each["exists"] for each in found["nodes"]},
        [(short(each["from"]), short(each["to"]), each["depth"]) for each in found["edges"]],
    )


def test_a_document_has_a_verdict_and_says_why(kb: Cloud) -> None:
    found = status(kb, "a.md")
    assert (found["verdict"], found["title"], found["uri"]) == ("invalid", "A", kb.uri("a.md"))
    assert sorted(codes(found)) == ["include_escapes_root", "target_missing"]
    assert found["findingCount"] == 2
    assert [(each["raw"], each["target"], each["code"]) for each in found["includes"]] == [
        ("b.md", kb.uri("b.md"), None),
        ("c.md", kb.uri("c.md"), None),
        ("gone.md", kb.uri("gone.md"), "target_missing"),
        ("../x.md", None, "include_escapes_root"),
    ]
    missing = next(each for each in found["findings"] if each["code"] == "target_missing")
    assert (missing["severity"], missing["line"]) == ("error", 3)
    assert missing["hint"]


def test_a_self_include_is_information(kb: Cloud) -> None:
    found = status(kb, "c.md")
    assert (found["verdict"], codes(found)) == ("valid", ["self_include"])


def test_a_missing_target_heals_when_it_arrives_and_breaks_when_it_goes(cloud: Cloud) -> None:
    upload(cloud, {"a.md": "---\nincludes: [late.md]\n---\n"})
    assert (status(cloud, "a.md")["verdict"], codes(status(cloud, "a.md"))) == ("invalid", ["target_missing"])
    upload(cloud, {"late.md": "Here."})
    assert (status(cloud, "a.md")["verdict"], codes(status(cloud, "a.md"))) == ("valid", [])
    cloud.delete("late.md")
    index(cloud, "late.md", name="object_deleted", sequencer="617F08299329D18A")
    assert codes(status(cloud, "a.md")) == ["target_missing"]


def test_a_target_in_another_unicode_form_is_a_warning(cloud: Cloud) -> None:
    stored, written = unicodedata.normalize("NFC", "é.md"), unicodedata.normalize("NFD", "é.md")
    upload(cloud, {"a.md": f"---\nincludes: [{written}]\n---\n", stored: "text"})
    found = status(cloud, "a.md")
    assert (found["verdict"], codes(found)) == ("warnings", ["unicode_form_differs"])
    assert found["includes"][0]["target"] == cloud.uri(stored)


def test_what_is_not_in_the_index_is_not_found(kb: Cloud) -> None:
    for path in ("/v1/documents", "/v1/graph"):
        answer = get(path, uri=kb.uri("gone.md"))
        assert (answer.status, answer.json["code"]) == (404, "document_not_found")


def test_the_graph_of_includes(kb: Cloud) -> None:
    nodes, edges = graph(kb, "a.md", depth="1")
    assert nodes == {"a.md": True, "b.md": True, "c.md": True, "gone.md": False} | {
        key: False for key in nodes if key not in ("a.md", "b.md", "c.md")
    }
    assert edges[:3] == [("a.md", "b.md", 1), ("a.md", "c.md", 1), ("a.md", "gone.md", 1)]
    nodes, edges = graph(kb, "a.md")
    assert nodes["d.md"] is True
    assert edges[3:] == [("b.md", "d.md", 2), ("c.md", "d.md", 2), ("c.md", "c.md", 2)]


def test_the_graph_of_dependents(kb: Cloud) -> None:
    nodes, edges = graph(kb, "d.md", direction="dependents", depth="1")
    assert nodes == {"d.md": True, "b.md": True, "c.md": True}
    assert edges == [("b.md", "d.md", 1), ("c.md", "d.md", 1)]
    nodes, edges = graph(kb, "d.md", direction="dependents")
    assert set(nodes) == {"a.md", "b.md", "c.md", "d.md"}
    assert ("a.md", "b.md", 2) in edges


def test_no_depth_no_edges(kb: Cloud) -> None:
    for direction in ("includes", "dependents"):
        assert graph(kb, "a.md", depth="0", direction=direction) == ({"a.md": True}, [])


def test_a_cycle_ends(kb: Cloud) -> None:
    nodes, edges = graph(kb, "a.md", depth="5")
    assert ("d.md", "a.md", 3) in edges
    assert len(nodes) == len(set(nodes))


def test_a_graph_of_many_says_that_it_is_cut(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.graph.GRAPH_NODES", 5)
    upload(cloud, {"t.md": "text", **{f"p/{n}.md": "---\nincludes: [../t.md]\n---\n" for n in range(8)}})
    answer = get("/v1/graph", uri=cloud.uri("t.md"), direction="dependents").json
    assert (len(answer["nodes"]), answer["truncated"]) == (5, True)


def test_nodes_say_what_they_are(kb: Cloud) -> None:
    answer = get("/v1/graph", uri=kb.uri("b.md"), depth="0").json
    (node,) = answer["nodes"]
    assert node["mimeType"] == "text/markdown"
    assert node["sizeBytes"] == len(str(FILES["b.md"]))
    assert node["version"]
