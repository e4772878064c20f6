"""SharePoint under the use cases: whose rights count, and one document whatever it was called."""

import subprocess
import sys
from collections.abc import Iterable

import pytest

from groundwire.composition import CompositionLoader
from groundwire.configuration import CanonicalGroundingConfig
from groundwire.deadline import Deadline
from groundwire.documents import Context, PreparedDocument
from groundwire.errors import ConfigurationError, DocumentForbidden, DocumentNotFound
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.grounding import CanonicalGroundingService
from groundwire.pointers import Location, SharePointDocumentPointer
from groundwire.policy import CompositionPolicy
from groundwire.resolution import KnowledgeSource
from groundwire.roots import ANYONE, Caller, StorageRoot, StorageRoots
from tests.contracts.drives import DRIVE, Drive
from tests.fakes import MemoryStore

SOON = Deadline.after(24 * 3600)
WHOLE = StorageRoot("whole", "sharepoint", DRIVE, readers=(ANYONE,))
SECRET = StorageRoot("secret", "sharepoint", DRIVE, prefix="HR/Secret", readers=("boss",))
OWN = StorageRoot("own", "sharepoint", DRIVE, readers=(ANYONE,), delegated=True)
CALLER = Context(1, 2, Caller("someone"))


def including(*entries: str) -> bytes:
    return "\n".join(["---", "includes:", *(f"  - {each}" for each in entries), "---", "text"]).encode()


def fetcher(drive: Drive, *roots: StorageRoot) -> CanonicalDocumentFetcher:
    return CanonicalDocumentFetcher({"sharepoint": drive.store}, StorageRoots(roots or [WHOLE]))


def read(of: CanonicalDocumentFetcher, path: str, ctx: Context = CALLER) -> PreparedDocument:
    return of.fetch_prepared_document(by_path(path), ctx)


def by_path(path: str) -> SharePointDocumentPointer:
    return SharePointDocumentPointer(sharepoint_drive_id=DRIVE, sharepoint_path=path)


def on_behalf(assertion: str | None) -> Context:
    return Context(1, 2, Caller("someone"), assertion)


def uris(documents: Iterable[PreparedDocument]) -> list[str]:
    return [each.uri.removeprefix(f"sharepoint://{DRIVE}/") for each in documents]


# -- one document, whatever it was called ------------------------------------------------------


def test_includes_arrive_under_the_servers_names_and_each_once(drive: Drive) -> None:
    drive.put(
        "SOPs/Wasser#1 100%.md",
        including("../shared/glossar-übung.md", "../Shared/Glossar-Übung.md", "x.DOCX"),
    )
    drive.put("Shared/Glossar-Übung.md", including("../sops/wasser#1 100%.md"))
    drive.put("SOPs/X.docx", b"words")
    of = fetcher(drive)
    root = read(of, "sops/WASSER#1 100%.md")
    bundle = CompositionLoader(of).load_bundle(root, root.pointer, CALLER)
    assert uris(bundle.all_documents) == ["SOPs/Wasser#1 100%.md", "Shared/Glossar-Übung.md", "SOPs/X.docx"]
    assert [(each.reason, each.code) for each in bundle.skipped] == [("cycle", "ancestor")]
    assert bundle.complete
    assert bundle.included[1].mime_type == "application/pdf"


def test_two_names_of_one_item_are_one_document(drive: Drive) -> None:
    """I-5, I-6: identity is the item's."""
    item = drive.upload("Docs/A.md", b"text")
    service = CanonicalGroundingService(
        None, fetcher(drive), CanonicalGroundingConfig(composition_policy=CompositionPolicy())
    )
    pointers = [
        by_path("docs/a.md"),
        SharePointDocumentPointer(sharepoint_drive_id=DRIVE, sharepoint_item_id=item.id),
        by_path("DOCS/A.MD"),
    ]
    result = service.prepare_from_sources([KnowledgeSource(pointer=each) for each in pointers], CALLER)
    assert uris(result.all_documents_for_attachment) == ["Docs/A.md"]
    assert {each.status for each in result.sources} == {"resolved"}
    assert result.complete


def test_another_unicode_form_is_found_and_remarked_on(drive: Drive) -> None:
    """I-5: exact first, then NFC, then NFD."""
    drive.put("a.md", including("sto\u0308rung.md"))
    drive.put("st\u00f6rung.md", b"text")
    of = fetcher(drive)
    root = read(of, "a.md")
    bundle = CompositionLoader(of).load_bundle(root, root.pointer, CALLER)
    assert uris(bundle.included) == ["st\u00f6rung.md"]
    assert [each.code for each in bundle.root.findings] == ["unicode_form_differs"]


# -- whose rights count ------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["HR/Secret/pay.md", "hr/secret/pay.md", "HR/SECRET/Pay.MD"])
def test_the_readers_of_a_nested_root_count_in_any_letter_case(drive: Drive, path: str) -> None:
    """Z-1: the server would answer all of them."""
    item = drive.upload("HR/Secret/pay.md", b"secret")
    of = fetcher(drive, WHOLE, SECRET)
    to = SharePointDocumentPointer(sharepoint_drive_id=DRIVE, sharepoint_item_id=item.id)
    with pytest.raises(DocumentForbidden):
        read(of, path)
    with pytest.raises(DocumentForbidden):
        of.fetch_prepared_document(to, CALLER)
    with pytest.raises(DocumentForbidden):
        of.fetch(drive.location(path), CALLER, deadline=SOON)
    assert not of.exists(drive.location(path), CALLER, deadline=SOON)
    assert read(of, path, Context(1, 2, Caller("boss"))).text == "secret"


def test_what_the_store_answers_under_another_name_is_judged_by_that_name(drive: Drive) -> None:
    item = drive.upload("HR/Secret/pay.md", b"secret")
    answer = drive.server._metadata(drive.server.drives[DRIVE], item, None)
    drive.server.script.append(answer)
    with pytest.raises(DocumentForbidden):
        fetcher(drive, WHOLE, SECRET).fetch(drive.location("public.md"), CALLER, deadline=SOON)


def test_each_caller_reads_what_that_caller_may_read(drive: Drive) -> None:
    """Z-4: the drive is one, the rights are the callers'."""
    of = fetcher(drive, OWN)
    anna, ben = drive.upload("anna.md", b"of anna"), drive.upload("ben.md", b"of ben")
    drive.entra.users = {"token-of-anna": {anna.id}, "token-of-ben": {ben.id}}
    drive.entra.app_reads = set()
    assert read(of, "anna.md", on_behalf("token-of-anna")).text == "of anna"
    assert read(of, "ben.md", on_behalf("token-of-ben")).text == "of ben"
    for path, own in (
        ("anna.md", "token-of-ben"),
        ("ben.md", "token-of-anna"),
        ("ben.md", "token-of-nobody"),
    ):
        with pytest.raises(DocumentForbidden):
            read(of, path, on_behalf(own))
        with pytest.raises(DocumentForbidden):
            of.exists(Location(OWN, path), on_behalf(own), deadline=SOON)


def test_what_one_caller_located_is_not_there_for_another(drive: Drive) -> None:
    of = fetcher(drive, OWN)
    item = drive.upload("anna.md", b"of anna")
    drive.entra.users = {"token-of-anna": {item.id}, "token-of-ben": {item.id}}
    location = of.locate(by_path("anna.md"), on_behalf("token-of-anna"), deadline=SOON)
    drive.server.requests.clear()
    of.fetch(location, on_behalf("token-of-ben"), deadline=SOON)
    assert len(drive.asked) == 2
    of.fetch(location, on_behalf("token-of-anna"), deadline=SOON)
    assert len(drive.asked) == 3


@pytest.mark.parametrize("own", [None, ""])
def test_without_a_token_of_the_callers_own_nothing_is_asked(drive: Drive, own: str | None) -> None:
    of = fetcher(drive, OWN)
    drive.put("a.md", b"text")
    with pytest.raises(DocumentForbidden):
        read(of, "a.md", on_behalf(own))
    with pytest.raises(DocumentForbidden):
        of.fetch(Location(OWN, "a.md"), on_behalf(own), deadline=SOON)
    assert (drive.asked, drive.entra.posts) == ([], 0)


def test_a_root_that_is_not_delegated_is_read_by_the_application(drive: Drive) -> None:
    drive.put("a.md", b"text")
    drive.entra.users = {"token-of-anna": set()}
    assert read(fetcher(drive), "a.md", on_behalf("token-of-anna")).text == "text"


def test_a_context_shows_no_token() -> None:
    assert "token-of-anna" not in repr(on_behalf("token-of-anna"))


def test_a_configuration_that_would_mix_rights_is_refused() -> None:
    other = StorageRoot("other", "sharepoint", DRIVE, prefix="x")
    with pytest.raises(ConfigurationError, match="delegated"):
        StorageRoots([OWN, other])
    with pytest.raises(ConfigurationError, match="only SharePoint"):
        StorageRoots([StorageRoot("s", "s3", "bucket", delegated=True)])
    with pytest.raises(ConfigurationError, match="on behalf of a caller"):
        CanonicalDocumentFetcher({"sharepoint": MemoryStore({})}, StorageRoots([OWN]))
    with pytest.raises(ConfigurationError, match="two storage roots hold"):
        StorageRoots([other, StorageRoot("again", "sharepoint", DRIVE, prefix="X")])


def test_a_root_is_a_folder_in_any_letter_case_and_no_other_folder() -> None:
    root = StorageRoot("r", "sharepoint", DRIVE, prefix="Straße/Docs")
    inside = ("Straße/Docs/a", "STRAßE/docs/a", "straße/DOCS/b/c")
    outside = ("Strasse/Docs/a", "Straße/Docs", "Straße/Docs2/a", "Straße/Doc/a", "x/Straße/Docs/a")
    assert [root.contains(each) for each in (*inside, *outside)] == [True] * 3 + [False] * 5
    assert [root.relative(each) for each in inside] == ["a", "a", "b/c"]
    assert not StorageRoot("r", "sharepoint", DRIVE, prefix="ßss").contains("ssß/a")
    assert not StorageRoot("r", "s3", "b", prefix="Docs").contains("docs/a")


# -- what it costs those who do not use it -----------------------------------------------------


def test_neither_httpx2_nor_msal_is_imported_before_a_document_is_asked_for() -> None:
    code = """
import sys
from groundwire.adapters.graph import GraphClient
from groundwire.adapters.microsoft import GraphTokens, keyless
from groundwire.adapters.sharepoint import SharePointDocumentFetcher
SharePointDocumentFetcher(GraphClient(GraphTokens("t", "c", keyless(lambda: "x")))).on_behalf_of("a")
print([name for name in ("httpx2", "msal", "jwt", "cryptography", "requests") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"


def test_a_missing_document_is_missing_for_the_use_cases_too(drive: Drive) -> None:
    with pytest.raises(DocumentNotFound):
        read(fetcher(drive), "nowhere.md")
