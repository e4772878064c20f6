"""How the adapter stands a service that misbehaves, and an environment that knows better: G-2, G-6, X-10."""

import logging
import subprocess
import sys

import httpx2
import pytest

from groundwire.adapters.gemini import Gemini, GeminiFiles, GeminiFileSearchStores
from groundwire.catalogue import newest
from groundwire.deadline import Deadline
from groundwire.documents import file_name
from groundwire.errors import DocumentNotFound, GroundwireError, ImportRefused, Throttled, Unavailable
from local.servers.gemini import KEY, GeminiServer, refusal, reply
from local.servers.loopback import Behaviour, On
from tests.contracts.geminis import GeminiCabinet, everything
from tests.fakes import HandClock

SECRET_TEXT = "the boiler room is under the chapel"


def soon() -> Deadline:
    return Deadline.after(20)


def upload(cabinet: GeminiCabinet, deadline: Deadline | None = None, mime_type: str = "text/markdown") -> str:
    return cabinet.stores.upload(
        cabinet.store,
        SECRET_TEXT.encode(),
        display_name="Kesselraum 図",
        mime_type=mime_type,
        metadata={"groundwire_id": "kb01"},
        deadline=deadline or soon(),
    ).name


def asked(server: GeminiServer, part: str) -> int:
    return sum(part in f"{each.method} {each.path}" for each in server.requests)


def test_an_empty_page_is_passed_by(gemini_cabinet: GeminiCabinet) -> None:
    first = [gemini_cabinet.add(f"a{number}") for number in range(20)]
    gemini_cabinet.server.add_gap(gemini_cabinet.store)
    last = gemini_cabinet.add("b")
    second, cursor = gemini_cabinet.stores.page(
        gemini_cabinet.store,
        gemini_cabinet.stores.page(gemini_cabinet.store, None, deadline=soon())[1],
        deadline=soon(),
    )
    assert (second, cursor is not None) == ([], True)
    assert [entry.name for entry in everything(gemini_cabinet, soon())] == [*first, last]


def test_the_newest_of_one_display_name_is_found_to_the_microsecond(gemini_cabinet: GeminiCabinet) -> None:
    for created in (1_772_439_300.000002, 1_772_439_300.000001):
        gemini_cabinet.server.add_document(
            gemini_cabinet.store, "a", display_name="Water leak", created=created
        )
    entries = everything(gemini_cabinet, soon())
    assert [entry.name for entry in newest(entries)] == [entries[0].name]


def test_an_import_is_waited_for_until_its_document_is_active(gemini_cabinet: GeminiCabinet) -> None:
    name = upload(gemini_cabinet)
    assert asked(gemini_cabinet.server, "/operations/") == 2
    assert asked(gemini_cabinet.server, f"GET /v1beta/{name}") == 2
    document = gemini_cabinet.server.stores[gemini_cabinet.store].documents[name]
    assert (document.state, document.content.decode()) == ("STATE_ACTIVE", SECRET_TEXT)


@pytest.mark.parametrize(
    ("code", "expected"), [(3, ImportRefused), (9, ImportRefused), (8, Throttled), (13, Unavailable)]
)
def test_an_import_that_failed(
    gemini_cabinet: GeminiCabinet, code: int, expected: type[GroundwireError]
) -> None:
    failed = {"name": "operations/x", "done": True, "error": {"code": code, "message": SECRET_TEXT}}
    gemini_cabinet.server.script.append(On("/operations/", reply(failed)))
    with pytest.raises(expected) as raised:
        upload(gemini_cabinet)
    assert SECRET_TEXT not in str(raised.value)


def test_an_import_that_names_nothing(gemini_cabinet: GeminiCabinet) -> None:
    gemini_cabinet.server.script.append(On("/operations/", reply({"name": "operations/x", "done": True})))
    with pytest.raises(Unavailable):
        upload(gemini_cabinet)


def test_a_document_that_failed_is_refused_and_removed(gemini_cabinet: GeminiCabinet) -> None:
    failed = {"name": f"{gemini_cabinet.store}/documents/x", "state": "STATE_FAILED"}
    gemini_cabinet.server.script.append(On("/documents/", reply(failed)))
    with pytest.raises(ImportRefused) as refused:
        upload(gemini_cabinet)
    assert refused.value.code == "STATE_FAILED"
    assert everything(gemini_cabinet, soon()) == []


@pytest.mark.parametrize("where", ["/operations/", "GET /v1beta/fileSearchStores/handbook/documents/"])
def test_an_import_that_is_never_done(gemini_cabinet: GeminiCabinet, where: str) -> None:
    pending = reply({"name": "operations/x", "state": "STATE_PENDING"})
    gemini_cabinet.server.script += [On(where, pending)] * 8  # some nine seconds
    with pytest.raises(Unavailable):
        upload(gemini_cabinet, Deadline.after(1.5))


def test_a_type_that_the_service_refuses_is_imported_as_plain_text(gemini_cabinet: GeminiCabinet) -> None:
    gemini_cabinet.server.refused_mime_types.add("text/markdown")
    entry = gemini_cabinet.stores.document(upload(gemini_cabinet), deadline=soon())
    assert entry.mime_type == "text/plain"


def test_no_pdf_becomes_text(gemini_cabinet: GeminiCabinet) -> None:
    gemini_cabinet.server.refused_mime_types.add("application/pdf")
    with pytest.raises(ImportRefused):
        upload(gemini_cabinet, mime_type="application/pdf")
    assert asked(gemini_cabinet.server, "uploadToFileSearchStore") == 1


def test_a_body_that_is_refused_is_sent_once(gemini_cabinet: GeminiCabinet) -> None:
    started = reply(
        {},
        headers={
            "x-goog-upload-url": f"{gemini_cabinet.server.url}/upload/here?upload_id=none",
            "x-goog-upload-status": "active",
        },
    )
    gemini_cabinet.server.script.append(started)
    with pytest.raises(ImportRefused):
        upload(gemini_cabinet, mime_type="text/plain")
    assert asked(gemini_cabinet.server, "/upload/here") == 1


@pytest.mark.parametrize(
    "start",
    [reply({}), reply({}, headers={"x-goog-upload-url": "nowhere", "x-goog-upload-status": "active"})],
    ids=["no-url", "no-such-url"],
)
def test_an_upload_that_leads_nowhere(gemini_cabinet: GeminiCabinet, start: Behaviour) -> None:
    gemini_cabinet.server.script.append(start)
    with pytest.raises(Unavailable):
        upload(gemini_cabinet)


def test_429_is_throttled_and_not_asked_again(gemini_cabinet: GeminiCabinet) -> None:
    busy = refusal(429, "RESOURCE_EXHAUSTED", headers={"Retry-After": "30"})
    gemini_cabinet.server.script += [busy, busy]
    with pytest.raises(Throttled):
        gemini_cabinet.stores.page(gemini_cabinet.store, None, deadline=soon())
    with pytest.raises(Throttled):
        upload(gemini_cabinet)
    assert len(gemini_cabinet.server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        refusal(400, "INVALID_ARGUMENT", "* corpora/* is not a valid resource name"),
        refusal(500, "INTERNAL"),
        refusal(503, "UNAVAILABLE"),
        (200, b"<html>", {}),
        (302, b"", {"Location": "https://elsewhere.example/"}),
    ],
    ids=["400", "500", "503", "html", "302"],
)
def test_a_listing_that_fails_is_unavailable(gemini_cabinet: GeminiCabinet, answer: Behaviour) -> None:
    gemini_cabinet.server.script += [answer, answer]
    with pytest.raises(Unavailable):
        gemini_cabinet.stores.page(gemini_cabinet.store, None, deadline=soon())


@pytest.mark.parametrize("once", [refusal(503, "UNAVAILABLE"), "reset"], ids=["503", "reset"])
def test_a_failure_in_passing_is_passed_over(gemini_cabinet: GeminiCabinet, once: Behaviour) -> None:
    name = gemini_cabinet.add("a")
    gemini_cabinet.server.script.append(once)
    assert gemini_cabinet.stores.document(name, deadline=soon()).name == name


def test_a_broken_connection(gemini_cabinet: GeminiCabinet) -> None:
    gemini_cabinet.server.script += ["reset", "reset"]
    with pytest.raises(Unavailable):
        gemini_cabinet.stores.page(gemini_cabinet.store, None, deadline=soon())


@pytest.mark.parametrize("behaviour", ["hang", "drip"])
def test_who_does_not_answer_is_waited_for_until_the_deadline(
    gemini_cabinet: GeminiCabinet, gemini_files: GeminiFiles, behaviour: Behaviour
) -> None:
    name = gemini_cabinet.add("a")
    gemini_cabinet.stores.document(name, deadline=soon())  # connects, which may take a while
    gemini_cabinet.server.script += [behaviour] * 4
    for ask in (
        lambda: gemini_cabinet.stores.page(gemini_cabinet.store, None, deadline=Deadline.after(0.2)),
        lambda: gemini_cabinet.stores.document(name, deadline=Deadline.after(0.2)),
        lambda: gemini_files.get("files/a", deadline=Deadline.after(0.2)),
        lambda: upload(gemini_cabinet, Deadline.after(0.2)),
    ):
        with pytest.raises(Unavailable) as raised:
            ask()
        # Who waited for the server to end would see an end, not a timeout.
        assert isinstance(raised.value.__cause__, httpx2.ReadTimeout)
    assert gemini_cabinet.server.script == []


def test_nobody_is_there() -> None:
    gemini = Gemini(lambda: KEY, "http://127.0.0.1:9")
    with pytest.raises(Unavailable):
        GeminiFileSearchStores(gemini).page("fileSearchStores/handbook", None, deadline=soon())
    gemini.close()


def test_a_key_that_is_refused_is_not_the_documents_fault(gemini_cabinet: GeminiCabinet) -> None:
    gemini_cabinet.server.keys.clear()
    with pytest.raises(Unavailable, match="API_KEY_INVALID"):
        upload(gemini_cabinet)
    with pytest.raises(Unavailable, match="API_KEY_INVALID"):
        gemini_cabinet.stores.page(gemini_cabinet.store, None, deadline=soon())


def test_no_key_no_answer(gemini_server: GeminiServer) -> None:
    gemini = Gemini(lambda: "", gemini_server.url)
    with pytest.raises(Unavailable):
        GeminiFileSearchStores(gemini).page("fileSearchStores/handbook", None, deadline=soon())
    assert gemini_server.requests == []


def test_a_missing_document_may_be_called_forbidden(gemini_cabinet: GeminiCabinet) -> None:
    name = f"{gemini_cabinet.store}/documents/a"
    gemini_cabinet.server.script += [refusal(403, "PERMISSION_DENIED")] * 2
    with pytest.raises(DocumentNotFound):
        gemini_cabinet.stores.document(name, deadline=soon())
    gemini_cabinet.stores.remove(name, deadline=soon())


def test_the_environment_decides_nothing(
    gemini_cabinet: GeminiCabinet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in {
        "GOOGLE_API_KEY": "not-this-key",
        "GEMINI_API_KEY": "nor-this-one",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_API_VERSION": "v1",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(variable, value)
    upload(gemini_cabinet)
    everything(gemini_cabinet, soon())
    paths = [each.path for each in gemini_cabinet.server.requests]
    assert all(path.startswith(("/v1beta/", "/upload/v1beta/")) for path in paths), paths


def test_without_a_base_url_the_service_is_googles(monkeypatch: pytest.MonkeyPatch) -> None:
    from groundwire.adapters.gemini_client import connect

    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    gemini = Gemini(lambda: KEY)
    client, close = connect(KEY, gemini.base_url)
    close()
    options = client._api_client.get_read_only_http_options()
    assert options["base_url"] == "https://generativelanguage.googleapis.com"


def test_the_key_is_asked_for_once_and_late(gemini_server: GeminiServer) -> None:
    calls: list[str] = []

    def key() -> str:
        calls.append(KEY)
        return KEY

    gemini = Gemini(key, gemini_server.url)
    stores, store = GeminiFileSearchStores(gemini), gemini_server.add_store("handbook")
    assert calls == []
    stores.page(store, None, deadline=soon())
    GeminiFiles(gemini).get(file_name(b"", "text/plain"), deadline=soon())
    gemini.close()
    assert calls == [KEY]


def test_importing_the_adapter_costs_nothing() -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, groundwire.adapters.gemini; print(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(found.stdout.split())
    assert "groundwire.adapters.gemini" in loaded
    assert not loaded & {"google.genai", "httpx2", "pydantic"}


def test_no_log_line_holds_content_keys_or_upload_urls(
    gemini_cabinet: GeminiCabinet, gemini_files: GeminiFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    gemini_cabinet.stores.remove(upload(gemini_cabinet), deadline=soon())
    body = SECRET_TEXT.encode()
    name = file_name(body, "text/plain")
    gemini_files.put(name, body, mime_type="text/plain", display_name="Kesselraum", deadline=soon())
    gemini_cabinet.server.script += [refusal(500, "INTERNAL"), refusal(500, "INTERNAL")]
    with pytest.raises(Unavailable):
        gemini_files.get(name, deadline=soon())
    for secret in (SECRET_TEXT, KEY, "upload_id", "Kesselraum"):
        assert secret not in caplog.text


def test_a_deadline_of_any_clock(gemini_cabinet: GeminiCabinet) -> None:
    clock = HandClock()
    deadline = Deadline.after(5, clock)
    assert gemini_cabinet.stores.page(gemini_cabinet.store, None, deadline=deadline) == ([], None)
    clock.turn(5)
    with pytest.raises(Unavailable):
        gemini_cabinet.stores.page(gemini_cabinet.store, None, deadline=deadline)


def test_a_key_that_cannot_be_had_is_not_waited_for_by_one_after_the_other() -> None:
    """Who waited until their time was over does not ask for it again."""
    clock = HandClock()
    tries: list[None] = []

    def key() -> str:
        tries.append(None)
        clock.turn(9)
        raise Unavailable("secret", "no answer")

    stores = GeminiFileSearchStores(Gemini(key))
    deadline = Deadline.after(10, clock)
    for number in range(5):
        with pytest.raises(Unavailable):
            stores.document(f"fileSearchStores/a/documents/d{number}", deadline=deadline)
    assert len(tries) == 2
