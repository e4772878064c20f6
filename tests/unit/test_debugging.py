"""Rule P-3: debug records per namespace, from the environment or for one request; JSON, and never content."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from groundwire.composition import CompositionLoader
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.debugging import COMPOSITION, GROUNDING, DebugLog, debugging, namespaces
from groundwire.errors import Unavailable
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.grounding import CanonicalGroundingService
from groundwire.policy import CompositionPolicy
from groundwire.resolution import sources
from groundwire.roots import StorageRoots
from tests.fakes import MemoryStore
from tests.unit.graphs import CONTEXT, ROOT, page

SECRET = "correct horse battery staple"


class Records(logging.Handler):
    """The records, as text and as JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(text) for text in self.texts]


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    """An application's own handler; no DEBUG in the environment."""
    monkeypatch.delenv("DEBUG", raising=False)
    logger, handler = logging.getLogger("groundwire.debug"), Records()
    before = (logger.level, logger.propagate)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before[0])
    logger.propagate = before[1]


def ground() -> None:
    """A request with everything in it: a title, bodies, a failure, a cycle, what cannot be resolved."""
    store = MemoryStore(
        {
            "a.md": page("b.md", "a.md", "down.md", "/x", body=SECRET),
            "b.md": f"---\ntitle: {SECRET}\nincludes: [c.md]\nsecret: {SECRET}\n---\n{SECRET}".encode(),
            "c.md": f"---\nincludes: {SECRET}\n---".encode(),
            "secret.pdf": SECRET.encode(),
        }
    )
    store.failures["down.md"] = Unavailable
    fetcher = CanonicalDocumentFetcher({"local": store}, StorageRoots([ROOT]))
    service = CanonicalGroundingService(
        None,
        fetcher,
        CanonicalGroundingConfig(composition_policy=CompositionPolicy()),
        loader=CompositionLoader(fetcher, workers=0),
    )
    uris = [f"local://kb/{key}" for key in ("a.md", "secret.pdf", "gone.md")]
    given = [*uris, {"title": SECRET, "text": SECRET}]
    service.prepare_from_sources(sources({"sources": given}), CONTEXT)


def test_nothing_is_recorded_unless_it_is_asked_for(records: Records) -> None:
    ground()
    assert records.texts == []


@pytest.mark.parametrize("names", [COMPOSITION, GROUNDING, f"x, {COMPOSITION} ,{GROUNDING}", "*"])
def test_the_environment_switches_namespaces_on(
    records: Records, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    monkeypatch.setenv("DEBUG", names)
    ground()
    assert {record["namespace"] for record in records.read()} == namespaces(names)


def test_a_request_switches_namespaces_on_for_itself(records: Records) -> None:
    with debugging(frozenset({GROUNDING})):
        ground()
    count = len(records.texts)
    assert {record["namespace"] for record in records.read()} == {GROUNDING}
    ground()
    assert len(records.texts) == count


def test_a_request_that_fails_leaves_nothing_switched_on() -> None:
    log = DebugLog(GROUNDING)
    seen: list[bool] = []

    def request() -> None:
        with debugging(frozenset({GROUNDING})):
            seen.append(log.on)
            raise Unavailable("x", "down")

    with pytest.raises(Unavailable):
        request()
    assert (seen, log.on) == ([True], False)


def test_records_tell_every_phase_and_step(records: Records) -> None:
    """The queue, the timing, the byte budget, skips with their reasons, what became of each source."""
    with debugging(namespaces("*")):
        ground()
    by_event: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records.read():
        by_event.setdefault((record["namespace"], record["event"]), []).append(record)
    assert [r["code"] for r in by_event[GROUNDING, "source"]] == [None, None, None, "metadata_missing"]
    assert [r.get("failed") for r in by_event[GROUNDING, "root"]] == [None, None, "not_found"]
    assert by_event[GROUNDING, "end"][0].keys() >= {"documents", "failed", "stale"}
    begin, steps, end = (by_event[COMPOSITION, event] for event in ("begin", "step", "end"))
    assert begin[0]["policy"]["maxDepth"] == 2
    assert [step["outcome"] for step in steps] == ["attached", "unavailable", "attached"]
    assert all(step.keys() >= {"uri", "milliseconds", "included", "bytes_left", "queued"} for step in steps)
    assert [skip[2:] for skip in end[0]["skipped"]] == [
        ["cycle", "self_include"],
        ["fetch_failed", "unavailable"],
        ["resolve_failed", "include_absolute"],
    ]
    assert {skip[0] for skip in end[0]["skipped"]} == {end[0]["root"]}
    assert all(skip[1] > 1 for skip in end[0]["skipped"]), "the line says which; the entry is the author's"


def test_no_record_holds_content(records: Records) -> None:
    """Neither bodies nor titles, values of keys or passages of search results."""
    with debugging(namespaces("*")):
        ground()
    assert len(records.texts) > 10
    assert SECRET not in "".join(records.texts)


def test_each_record_is_one_line_of_json(records: Records) -> None:
    with debugging(frozenset({GROUNDING})):
        DebugLog(GROUNDING)("odd", uri="läm\n\u2028", number=1, other=object)
    (text,) = records.texts
    assert "\n" not in text
    assert json.loads(text)["uri"] == "läm\n\u2028"


def test_without_a_handler_records_go_to_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("groundwire.debug")
    monkeypatch.setattr(logger, "handlers", [])
    with debugging(frozenset({GROUNDING})):
        DebugLog(GROUNDING)("event", number=1)
    assert json.loads(capsys.readouterr().err) == {"namespace": GROUNDING, "event": "event", "number": 1}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, set()),
        ("", set()),
        ("other", set()),
        (COMPOSITION, {COMPOSITION}),
        (f"{GROUNDING},other", {GROUNDING}),
        ("*", {COMPOSITION, GROUNDING}),
    ],
)
def test_namespaces_are_listed_with_commas(text: str | None, names: set[str]) -> None:
    assert namespaces(text) == names
