"""The client and the command against the grounding function itself, over HTTP (G-8, L)."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from google.genai import interactions, types
from google.genai.interactions import Interaction

from groundwire.client import GroundwireClient
from groundwire.errors import ContentChanged, GroundwireApiError
from groundwire.pointers import S3DocumentPointer
from groundwire_cli.main import main
from tests.cloud import Cloud
from tests.integration.deployed import Deployed
from tests.integration.driving import upload

PNG = b"\x89PNG\r\n\x1a\n"
FILES: dict[str, str | bytes] = {
    "sops/no-heat.md": "---\ntitle: No heat\nincludes: [../terms.md, ../plan.png, gone.md]\n---\nCheck.\n",
    "terms.md": "---\ntitle: Terms\n---\nWords: lämpö,\u202e 熱.\n",
    "plan.png": PNG,
    "+%20 é.md": "---\nincludes: [terms.md]\n---\nOdd.\n",
}


@pytest.fixture
def groundwire(deployed: Deployed) -> Iterator[GroundwireClient]:
    with GroundwireClient(deployed.url) as client:
        yield client


@pytest.fixture(scope="module")
def kb(shared_cloud: Cloud) -> Cloud:
    upload(shared_cloud, FILES)
    return shared_cloud


def metadata(cloud: Cloud, *keys: str) -> types.GroundingMetadata:
    """As google-genai hands it to an application."""
    chunks = [
        {
            "retrievedContext": {
                "title": key,
                "text": "Check.",
                "customMetadata": [
                    {"key": "source_type", "stringValue": "s3"},
                    {"key": "s3_bucket", "stringValue": cloud.bucket},
                    {"key": "s3_key", "stringValue": key},
                ],
            }
        }
        for key in keys
    ]
    return types.GroundingMetadata.model_validate({"groundingChunks": chunks})


def keys(cloud: Cloud, documents: Any) -> list[str]:
    return [each.uri.removeprefix(cloud.uri("")) for each in documents]


def test_from_what_gemini_found_to_what_gemini_reads(kb: Cloud, groundwire: GroundwireClient) -> None:
    grounded = groundwire.ground(metadata(kb, "sops/no-heat.md"), user_id=123, auditing_id="a-1")
    assert keys(kb, grounded.documents) == ["sops/no-heat.md", "terms.md", "plan.png"]
    assert [each.content() for each in grounded.documents] == [
        FILES[key] if isinstance(FILES[key], bytes) else str(FILES[key]).encode()
        for key in ("sops/no-heat.md", "terms.md", "plan.png")
    ]
    assert not grounded
    assert [(each.subject, each.code, each.line) for each in grounded.missing] == [
        ("gone.md", "not_found", 3)
    ]
    assert [(each.line, each.character) for each in grounded.warnings] == [
        (4, "U+202E RIGHT-TO-LEFT OVERRIDE")
    ]
    notice, _, *parts, header, picture = grounded.to_gemini_parts()
    assert notice.text
    assert notice.text.startswith("NOTICE: this material is INCOMPLETE.\n- missing: gone.md, included by ")
    assert [str(FILES[key]) in str(part.text) for key, part in zip(FILES, parts, strict=False)] == [
        True,
        True,
    ]
    assert (header.text or "").count(kb.uri("plan.png")) == 1
    assert picture.inline_data == types.Blob(data=PNG, mime_type="image/png")
    assert "NOTICE" in grounded.to_text()
    assert all(str(FILES[key]) in grounded.to_text() for key in ("sops/no-heat.md", "terms.md"))


def forms(cloud: Cloud) -> dict[str, Any]:
    found = metadata(cloud, "terms.md")
    pointer = S3DocumentPointer(s3_bucket=cloud.bucket, s3_key="terms.md")
    chunks = found.grounding_chunks or []
    note = {
        "type": "file_citation",
        "document_uri": "fileSearchStores/s/documents/d",
        "custom_metadata": {"source_type": "s3", "s3_bucket": cloud.bucket, "s3_key": "terms.md"},
    }
    content = [{"type": "text", "text": "a", "annotations": [note]}]
    interaction = {"id": "1", "status": "completed", "steps": [{"type": "model_output", "content": content}]}
    candidate = types.Candidate(grounding_metadata=found)
    found.search_entry_point = types.SearchEntryPoint(sdk_blob=b"\xff")
    answer = Interaction.model_validate(interaction)
    return {
        "an object": found,
        "JSON": found.model_dump(mode="json", by_alias=True, exclude_none=True),
        "snake_case": found.model_dump(mode="json", exclude_none=True),
        "a dump with bytes": found.model_dump(),
        "a dict of objects": dict(found),
        "a response": types.GenerateContentResponse(candidates=[candidate]),
        "a candidate": candidate,
        "a candidate's dump": candidate.model_dump(),
        "a chunk": chunks[0],
        "chunks": chunks,
        "an interaction": answer,
        "an interaction's dict of objects": dict(answer),
        "citations": [interactions.FileCitation.model_validate(note)],
        "an interaction's JSON": interaction,
        "a URI": cloud.uri("terms.md"),
        "URIs": [cloud.uri("terms.md")] * 2,
        "a pointer": pointer,
        "pointers": [pointer],
    }


def test_each_form_leads_to_its_document(kb: Cloud, groundwire: GroundwireClient) -> None:
    for name, found in forms(kb).items():
        grounded = groundwire.ground(found)
        assert keys(kb, grounded.documents) == ["terms.md"], name
        assert grounded, name


def test_no_grounding_is_an_empty_answer(kb: Cloud, groundwire: GroundwireClient) -> None:
    nothing: list[Any] = [None, [], {}, types.GroundingMetadata(), types.GenerateContentResponse()]
    for found in nothing:
        grounded = groundwire.ground(found)
        assert (grounded.documents, grounded.sources, grounded.missing) == ((), (), ())
        assert grounded.complete
        assert not grounded
        assert "no document was found" in grounded.to_text()


def test_a_dry_run_has_everything_but_bodies(kb: Cloud, groundwire: GroundwireClient) -> None:
    uri = kb.uri("sops/no-heat.md")
    for ask in (groundwire.ground, groundwire.compose):
        dry, wet = ask(uri, dry_run=True), ask(uri)
        assert (dry.bundle_id, dry.missing) == (wet.bundle_id, wet.missing)
        assert [each.size_bytes for each in dry.documents] == [len(each.content()) for each in wet.documents]
        assert {each.absence for each in dry.documents} == {
            "its body was not delivered: it was not asked for"
        }
        assert "Check." not in dry.to_text()


def test_validate_says_what_an_upload_would_be_told(kb: Cloud, groundwire: GroundwireClient) -> None:
    found = groundwire.validate("sops/new.md", "---\nincludes: [../terms.md, gone.md]\n---\n", root="kb")
    assert (found.path, found.uri, found.verdict) == ("sops/new.md", kb.uri("sops/new.md"), "invalid")
    assert [(each.target, each.code) for each in found.includes] == [
        (kb.uri("terms.md"), None),
        (kb.uri("sops/gone.md"), "target_missing"),
    ]


def test_the_other_calls(kb: Cloud, groundwire: GroundwireClient) -> None:
    odd = kb.uri("+%20 é.md")
    composed = groundwire.compose(odd, composition_policy={"maxDepth": 1})
    assert keys(kb, composed.documents) == ["+%20 é.md", "terms.md"]
    assert composed.require_complete().bundles
    assert groundwire.compose(composed.pointers[0]).bundle_id == composed.bundle_id
    status = groundwire.document(odd)
    assert (status.uri, status.verdict) == (odd, "valid")
    assert [each.target for each in status.includes] == [kb.uri("terms.md")]
    around = groundwire.graph(odd, depth=1)
    assert [(each.from_uri, each.to_uri) for each in around.edges] == [(odd, kb.uri("terms.md"))]
    found = list(groundwire.dependents(kb.uri("terms.md"), transitive=True))
    assert sorted(keys(kb, found)) == ["+%20 é.md", "sops/no-heat.md"]
    alone = groundwire.ground(odd, composition_policy="off")
    assert (alone.bundles, keys(kb, alone.documents), alone.complete) == (None, ["+%20 é.md"], False)
    assert [each.reason for each in alone.missing] == ["composition_off"]


def test_refusals_are_told(kb: Cloud, groundwire: GroundwireClient) -> None:
    with pytest.raises(GroundwireApiError) as caught:
        groundwire.ground(kb.uri("terms.md"), max_documents=0)
    assert (caught.value.status, caught.value.code) == (400, "invalid_request")
    assert [each["field"] for each in caught.value.errors] == ["overrides.maxDocuments"]
    for call in (groundwire.compose, groundwire.document, groundwire.graph):
        with pytest.raises(GroundwireApiError) as caught:
            call(kb.uri("gone.md"))
        assert (caught.value.status, caught.value.code) == (404, "document_not_found")


def test_bodies_that_would_not_fit_are_downloaded(
    cloud: Cloud, groundwire: GroundwireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundwire.delivery.RESPONSE_BYTES", 40_000)
    large = "---\nincludes: [b.md]\n---\n" + "Check the thermostat.\n" * 2_000
    upload(cloud, {"a.md": large, "b.md": "Small.\n"})
    grounded = groundwire.ground(cloud.uri("a.md"))
    assert [each.download_url is not None for each in grounded.documents] == [True, False]
    assert large in grounded.to_text()
    assert grounded.documents[0].content().decode() == large
    again = groundwire.ground(cloud.uri("a.md"))
    cloud.put("a.md", large.replace("thermostat", "thermometer"))
    with pytest.raises(ContentChanged):
        again.to_gemini_parts()


# -- at the command line ------------------------------------------------------------------------


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON that the command printed, after what the function, which runs in this process, has logged."""
    return json.loads("{" + capsys.readouterr().out.partition("\n{\n")[2])


def command(deployed: Deployed, *arguments: str) -> int:
    return main(["ground", "--api", deployed.url, *arguments])


def test_the_command_draws_what_became_of_everything(
    kb: Cloud, deployed: Deployed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    uris = [kb.uri("sops/no-heat.md"), kb.uri("nowhere.md"), "https://example.com"]
    assert command(deployed, *uris) == 0
    shown = capsys.readouterr().out
    for line in ("✓ terms.md", "✗ gone.md  fetch_failed: not_found", "3 documents, ✗ not complete"):
        assert line in shown
    assert f"✗ {kb.uri('nowhere.md')}  not_found: no such document" in shown
    assert "✗ source 2  " in shown
    assert command(deployed, "--strict", *uris) == 1
    assert command(deployed, "--strict", kb.uri("terms.md")) == 0
    assert "1 document, ✓ complete" in capsys.readouterr().out
    assert command(deployed, "--strict", "--max-depth", "0", kb.uri("sops/no-heat.md")) == 1


def test_the_command_prints_the_text_for_a_model(
    kb: Cloud, deployed: Deployed, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert command(deployed, "--text", kb.uri("terms.md")) == 0
    shown = capsysbinary.readouterr()
    assert str(FILES["terms.md"]).encode() in shown.out
    assert f"{kb.uri('terms.md')}: line 4: U+202E RIGHT-TO-LEFT OVERRIDE (1 in all)" in shown.err.decode()


def test_the_command_takes_what_gemini_found_and_prints_json(
    kb: Cloud,
    deployed: Deployed,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    found = metadata(kb, "terms.md").model_dump_json(by_alias=True, exclude_none=True)
    file = tmp_path / "found.json"
    file.write_text(found, encoding="utf-8")
    monkeypatch.setenv("GROUNDWIRE_API", deployed.url)
    monkeypatch.setenv("TOKEN", "secret")
    assert main(["ground", "--metadata", str(file), "--json", "--token-env", "TOKEN"]) == 0
    answer = printed(capsys)
    assert answer["allDocumentsForAttachment"][0]["text"] == FILES["terms.md"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(found.encode())))
    assert main(["ground", "--metadata", "-", "--json"]) == 0
    assert printed(capsys)["bundleId"] == answer["bundleId"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["s3://kb/a.md"], "name the API"),
        (["--api", "http://api.example.com", "s3://kb/a.md"], "must be https"),
        (["--api", "http://127.0.0.1:1"], "give either URIs or --metadata"),
        (["--api", "http://127.0.0.1:1", "s3://kb/a.md", "--metadata", "-"], "give either"),
        (["--api", "http://127.0.0.1:1", "--metadata", "nowhere.json"], "No such file"),
        (["--api", "http://127.0.0.1:1", "s3://kb/a.md"], "no answer"),
        (["--api", "http://127.0.0.1:1", "s3://kb/a.md", "--token-env", "NOWHERE"], "no such variable"),
    ],
)
def test_usage(arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ground", *arguments]) == 2
    shown = capsys.readouterr()
    assert (shown.out, problem in shown.err) == ("", True)


def test_what_is_no_search_result_and_what_the_api_refuses_is_usage(
    kb: Cloud, deployed: Deployed, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    for name, content in (("a.json", "{"), ("b.json", '{"x": 1}')):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert command(deployed, "--metadata", str(tmp_path / name)) == 2
        assert name in capsys.readouterr().err
    assert command(deployed, kb.uri("terms.md"), "--max-docs", "0") == 2
    assert "400 invalid_request: " in capsys.readouterr().err
