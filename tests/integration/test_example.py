"""The example runs as its page says, and its ten lines are the same over HTTP (G-8, P-2)."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from google import genai
from google.genai import types

from examples.answer_with_gemini.answer import KNOWLEDGE_BASE, MODEL, answer, main
from groundwire.client import GroundwireClient
from local.servers.gemini import KEY, GeminiServer
from tests.cloud import Cloud
from tests.integration.deployed import Deployed
from tests.integration.driving import upload

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "how", [["-m", "examples.answer_with_gemini"], ["examples/answer_with_gemini/answer.py"]]
)
def test_it_runs_both_ways(how: list[str]) -> None:
    command = [sys.executable, "-W", "error", *how, "--local"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    assert "read: local://knowledge-base/contacts/on-call.md\n" in run.stdout
    for number, title in ((1, "Cold complaint"), (6, "On-call list")):
        assert f" document {number} of 6: {title}\n" in run.stdout
    assert "NOTICE" not in run.stdout


def test_what_is_missing_reaches_the_reader_and_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--local", "Water leak: which riser valve do we close?"]) == 1
    shown = capsys.readouterr().out
    assert (
        "MISSING: ../reference/Valve-Locations.md, included by local://knowledge-base/sops/water-leak.md"
        in shown
    )
    assert "- text: NOTICE: this material is INCOMPLETE." in shown
    assert "- image/png, 5516 bytes: " in shown


@pytest.mark.parametrize("absent", ["GEMINI_API_KEY", "GROUNDWIRE_API"])
def test_what_it_needs_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], absent: str
) -> None:
    for name in ("GEMINI_API_KEY", "GROUNDWIRE_API"):
        monkeypatch.setenv(name, "")
        if name != absent:
            monkeypatch.setenv(name, "https://api.example.com")
    with pytest.raises(SystemExit) as ended:
        main(["--store", "fileSearchStores/x", "Why?"])
    assert ended.value.code == 2
    assert f"error: set {absent}, or ask with --local" in capsys.readouterr().err


def test_the_applications_own_part_is_ten_lines() -> None:
    source = inspect.getsource(answer)
    body = source.partition('"""\n')[2].splitlines()
    assert len(body) <= 10


def test_the_same_lines_over_http(cloud: Cloud, deployed: Deployed) -> None:
    paths = sorted(path for path in KNOWLEDGE_BASE.rglob("*.md"))
    upload(cloud, {each.relative_to(KNOWLEDGE_BASE).as_posix(): each.read_bytes() for each in paths})
    with GeminiServer() as server, GroundwireClient(deployed.url) as groundwire:
        store = server.add_store("handbook")
        pointer = {"source_type": "s3", "s3_bucket": cloud.bucket, "s3_key": "sops/cold-complaint.md"}
        server.add_document(store, "Cold complaint, a flat too cold", display_name="Cold", metadata=pointer)
        options = types.HttpOptions(base_url=server.url, api_version="v1beta")
        with genai.Client(api_key=KEY, http_options=options) as gemini:
            documents, text = answer(gemini, groundwire, store, "What about a cold complaint?")
        asked = [each.path for each in server.requests]
    assert documents
    assert [each.uri.rpartition("/")[2] for each in documents.documents] == [
        "cold-complaint.md",
        "glossary.md",
        "escalation-policy.md",
        "temperature-thresholds.md",
        "tenant-communication.md",
        "on-call.md",
    ]
    assert text.count("\n- text: ") == 8
    assert asked == [f"/v1beta/models/{MODEL}:generateContent"] * 2
    assert [each.path for each in deployed.requests] == ["/v1/ground"]
