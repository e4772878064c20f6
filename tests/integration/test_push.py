"""`groundwire push` over HTTP to the functions themselves, and from there to the store (C-4, L)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundwire_cli.main import main
from local.servers.loopback import Answer, LoopbackServer, Request
from tests.captured import http_request
from tests.cloud import Cloud, lambda_context
from tests.integration.driving import index, send
from tests.integration.logs import writing
from uploads.handler import handler as uploads_handler

DRAFT = "---\ntitle: Cold\ncanonical_path: sops/cold.md\nincludes: [../terms.md, ../plan.png]\n---\nCheck.\n"
FILES: dict[str, str | bytes] = {
    "drafts/cold.md": DRAFT,
    "terms.md": "---\nincludes: [sops/cold.md]\n---\nWords: lämpö.\n",
    "plan.png": b"\x89PNG\r\n\x1a\n",
    "a b/+%20 é.md": "Odd.\n",
    "empty.txt": "",
}
PLACES = ["a b/+%20 é.md", "empty.txt", "plan.png", "sops/cold.md", "terms.md"]


class Api(LoopbackServer):
    """Both functions behind one address, as API Gateway has them."""

    def answer(self, request: Request) -> Answer:
        body = request.body.decode() if request.body else None
        event = http_request(request.method, request.path, body, query=dict(request.query))
        if request.path == "/v1/uploads":
            answer = uploads_handler(event, lambda_context())
            return answer["statusCode"], answer["body"].encode(), answer["headers"]
        found = send(event)
        return found.status, found.body.encode(), found.headers


@pytest.fixture
def api(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """An API whose one root everybody may read and write."""
    cloud.wire(cloud.root(writers=("*",)))
    with Api() as server, writing():  # what the functions print is not the command's
        monkeypatch.setenv("GROUNDWIRE_API", server.url)
        monkeypatch.setenv("NO_COLOR", "1")
        yield server


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    (tmp_path / "groundwire.toml").touch()
    write(tmp_path, FILES)
    return tmp_path


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def push(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any]:
    status = main(["push", "--json", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, json.loads(printed.out) if printed.out else printed.err


def outcomes(result: Any) -> dict[str, str]:
    return {each["path"]: each["outcome"] for each in result["documents"]}


def keys(cloud: Cloud) -> list[str]:
    return [each["Key"] for each in cloud.s3.list_objects_v2(Bucket=cloud.bucket).get("Contents", [])]


def test_a_folder_goes_to_where_its_documents_belong(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Targets that come with the push are not missing, whoever is first."""
    status, result = push(capsys, kb)
    assert (status, set(outcomes(result).values())) == (0, {"uploaded"}), result
    assert keys(cloud) == PLACES
    stored = cloud.s3.get_object(Bucket=cloud.bucket, Key="sops/cold.md")
    assert (stored["Body"].read(), stored["ContentType"]) == (DRAFT.encode(), "text/markdown")
    (cold,) = (each for each in result["documents"] if each["path"] == "drafts/cold.md")
    assert (cold["place"], cold["uri"]) == ("sops/cold.md", cloud.uri("sops/cold.md"))
    assert cold["findings"] == []
    assert result["summary"] | {"documents": 5, "uploaded": 5} == result["summary"]


def test_what_is_there_already_is_not_sent_again(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    push(capsys, kb)
    index(cloud, *PLACES)
    write(kb, {"terms.md": "# Other words\n"})
    status, result = push(capsys, kb)
    assert status == 0
    assert outcomes(result) == dict.fromkeys(FILES, "unchanged") | {"terms.md": "uploaded"}
    assert cloud.s3.get_object(Bucket=cloud.bucket, Key="terms.md")["Body"].read() == b"# Other words\n"
    _, forced = push(capsys, kb, "--force")
    assert set(outcomes(forced).values()) == {"uploaded"}


def test_a_dry_run_says_all_and_sends_nothing(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, result = push(capsys, kb, "--dry-run")
    assert (status, set(outcomes(result).values())) == (0, {"would_upload"})
    assert keys(cloud) == []


def test_one_that_stays_makes_those_stay_that_need_it(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        kb,
        {
            "one.md": "---\nincludes: [two.md]\n---\n",
            "two.md": "---\nincludes: [broken.md, terms.md]\n---\n",
            "broken.md": "---\nincludes: [/absolute.md, gone.md]\n---\n",
        },
    )
    status, result = push(capsys, kb)
    assert status == 1
    assert outcomes(result) == dict.fromkeys(FILES, "uploaded") | dict.fromkeys(
        ("one.md", "two.md", "broken.md"), "invalid"
    )
    (two,) = (each["findings"] for each in result["documents"] if each["path"] == "two.md")
    assert "broken.md" in two[0]["message"], "of two targets that are not there, one comes along"
    found = {each["path"]: [f["code"] for f in each["findings"]] for each in result["documents"]}
    assert found["one.md"] == found["two.md"] == ["target_missing"]
    assert sorted(found["broken.md"]) == ["include_absolute", "target_missing"]
    assert keys(cloud) == PLACES
    status, result = push(capsys, kb, "--force")
    assert (status, set(outcomes(result).values())) == (1, {"uploaded"})
    assert {"one.md", "two.md", "broken.md"} <= set(keys(cloud))


def test_more_may_be_missing_than_the_api_says(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the first fifty findings of a kind are told; the last include is the one that does not come."""
    names = [f"many/{n}.md" for n in range(60)]
    write(kb, dict.fromkeys(names, "x"))
    includes = "".join(f"  - {name}\n" for name in [*names, "gone.md"])
    write(kb, {"hub.md": f"---\nincludes:\n{includes}---\n"})
    status, result = push(capsys, kb)
    assert (status, outcomes(result)["hub.md"]) == (1, "invalid")
    write(kb, {"gone.md": "x"})
    status, result = push(capsys, kb)
    assert (status, outcomes(result)["hub.md"]) == (0, "uploaded")


def test_a_target_that_is_there_alone_is_there(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One file can be pushed whose includes are in the store and nowhere on this disk."""
    cloud.put("terms.md", "x")
    cloud.put("plan.png", b"x")
    index(cloud, "terms.md", "plan.png")
    (kb / "terms.md").unlink()
    status, result = push(capsys, kb / "drafts" / "cold.md")
    assert (status, outcomes(result)) == (0, {"drafts/cold.md": "uploaded"})


def test_two_files_for_one_place_both_stay(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(kb, {"sops/cold.md": "Another.\n"})
    status, result = push(capsys, kb, "--force")
    assert status == 1
    assert {path for path, outcome in outcomes(result).items() if outcome == "failed"} == {
        "drafts/cold.md",
        "sops/cold.md",
    }
    assert "sops/cold.md" not in keys(cloud)


def test_what_the_api_refuses_of_one_is_told_of_that_one(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(kb, {"inbox/x.md": "Nowhere.\n"})
    status, result = push(capsys, kb)
    assert (status, outcomes(result)["inbox/x.md"]) == (1, "failed")
    (failed,) = (each for each in result["documents"] if each["outcome"] == "failed")
    assert "lies in an inbox" in failed["problem"]
    assert keys(cloud) == PLACES


def test_who_may_not_write_is_told_once(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.wire(cloud.root())
    status, said = push(capsys, kb)
    assert status == 2
    assert said.count("is no storage root that you may use") == 1
    assert keys(cloud) == []


def test_of_several_roots_one_is_named(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.wire(*(cloud.root(name=name, prefix=name, writers=("*",)) for name in ("a", "b")))
    status, said = push(capsys, kb)
    assert (status, "must be given: a, b" in said) == (2, True)
    status, result = push(capsys, kb, "--to", "b")
    assert (status, set(outcomes(result).values())) == (0, {"uploaded"}), result
    assert keys(cloud) == [f"b/{place}" for place in PLACES]


def test_an_api_that_does_not_answer_ends_it(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.script[:] = ["reset"] * 50
    status, said = push(capsys, kb)
    assert (status, "there was no answer from 127.0.0.1:" in said) == (2, True)


def test_people_see_where_documents_went(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(kb, {"broken.md": "---\nincludes: [gone\u202e.md]\n---\n"})
    assert main(["push", str(kb)]) == 1
    shown = capsys.readouterr().out
    assert "✓ drafts/cold.md → sops/cold.md" in shown
    assert "✗ broken.md" in shown
    assert "2:12 ✗ include_control_character" in shown
    assert "6 documents  ✓ 5 uploaded  ✗ 1 invalid" in shown
    assert "X-Amz-" not in shown


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere.md"], "there is no such file"),
        (["a", "b"], "2 storage roots"),
        (["a", "--root", "b"], "outside the storage root"),
        (["a", "--token-env", "NOT_SET"], "no such variable"),
        (["a", "--api", "http://api.example.com"], "https"),
    ],
)
def test_what_cannot_be_pushed_is_a_matter_of_usage(
    api: Api,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    problem: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"a/groundwire.toml": "", "a/x.md": "x", "b/groundwire.toml": "", "b/x.md": "x"})
    status, said = push(capsys, *arguments)
    assert (status, problem in said) == (2, True), said


def test_a_name_that_can_be_no_key_is_told_and_the_rest_goes(
    api: Api, cloud: Cloud, kb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kb / b"\xff.md".decode("utf-8", "surrogateescape")).write_text("x")
    status, result = push(capsys, kb)
    assert (status, result["summary"]["uploaded"], result["summary"]["failed"]) == (1, 5, 1)
    assert "is not UTF-8" in result["documents"][-1]["problem"]
    assert main(["push", str(kb)]) == 1
    assert "<U+DCFF>.md" in capsys.readouterr().out


def test_on_a_terminal_there_is_a_bar(
    api: Api, kb: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["push", "--json", str(kb)]) == 0
    printed = capsys.readouterr()
    assert "uploading" in printed.err
    assert json.loads(printed.out)["summary"]["uploaded"] == 5
