"""Rules B-8 and Z-1 where sources are looked up: who hangs costs its own, who may not know learns nothing."""

import time
from typing import Any, NoReturn

import pytest

from groundwire.catalogue import CatalogueEntry
from groundwire.deadline import Deadline
from groundwire.documents import Context, FetchedDocument
from groundwire.errors import DocumentForbidden, Unavailable
from groundwire.fetching import CanonicalDocumentFetcher
from groundwire.grounding import CanonicalGroundingService, SourceOutcome
from groundwire.pointers import Location, SharePointDocumentPointer
from groundwire.resolution import sources
from groundwire.roots import ANYONE, Caller, StorageRoot, StorageRoots
from tests.fakes import MemoryFileSearchStores, MemoryStore
from tests.unit.graphs import CONTEXT

STORE = "fileSearchStores/north"
ROOTS = StorageRoots(
    [
        StorageRoot("kb", "s3", "kb", readers=(ANYONE,)),
        StorageRoot("hr", "s3", "hr", readers=("group:hr",)),
        StorageRoot("drive", "sharepoint", "drive", readers=("group:hr",)),
    ]
)
ANY = Context(1, 1, Caller("someone"))


class PunctualStore(MemoryStore):
    """Has no answer for whoever asks too late."""

    def fetch(self, location: Location, *, deadline: Deadline, max_bytes: int) -> FetchedDocument:
        if deadline.passed():
            raise Unavailable(location.uri, "asked too late")
        return super().fetch(location, deadline=deadline, max_bytes=max_bytes)


class Drive(MemoryStore):
    """A store that says where its documents are, or hangs."""

    is_hung = False

    def locate(
        self, pointer: SharePointDocumentPointer, roots: StorageRoots, *, deadline: Deadline
    ) -> Location:
        if self.is_hung:
            _hang(deadline)
        path = pointer.sharepoint_path or ""
        return Location(roots.holding("sharepoint", pointer.sharepoint_drive_id, path), path)


class HungStores(MemoryFileSearchStores):
    """A service that takes all the time it is given."""

    def document(self, name: str, *, deadline: Deadline) -> CatalogueEntry:
        _hang(deadline)

    def page(self, store: str, cursor: str | None, *, deadline: Deadline) -> Any:
        _hang(deadline)


def _hang(deadline: Deadline) -> NoReturn:
    time.sleep(deadline.left())
    raise Unavailable("somewhere", "no answer in time")


def grounding(stores: MemoryFileSearchStores | None, *, is_hung: bool = False) -> CanonicalGroundingService:
    drive = Drive({"plan.md": b""})
    drive.is_hung = is_hung
    kept = PunctualStore({"a.md": b"a", "pay.md": b""})
    return CanonicalGroundingService(
        stores, CanonicalDocumentFetcher({"s3": kept, "sharepoint": drive}, ROOTS)
    )


def codes(service: CanonicalGroundingService, *given: Any, time_left: float = 20) -> list[str | None]:
    found = sources({"sources": list(given)})
    return [each.code for each in service.prepare_from_sources(found, CONTEXT, time_left=time_left).sources]


def test_a_service_that_hangs_leaves_time_for_documents_whose_place_is_known() -> None:
    names = [{"documentName": f"{STORE}/documents/d{number}"} for number in range(20)]
    found = codes(grounding(HungStores(STORE)), "s3://kb/a.md", *names, time_left=1)
    assert found == [None, *["document_not_found"] * 20]


def test_a_store_that_does_not_say_where_its_document_is_costs_that_document() -> None:
    found = codes(grounding(None, is_hung=True), "s3://kb/a.md", "sharepoint://drive/plan.md", time_left=1)
    assert found == [None, "unavailable"]


HIDDEN = [
    ({"source_type": "s3", "s3_bucket": "hr", "s3_key": "pay.md"}, "s3://hr/pay.md"),
    (
        {"source_type": "sharepoint", "sharepoint_drive_id": "drive", "sharepoint_path": "plan.md"},
        "sharepoint://drive/plan.md",
    ),
]


@pytest.mark.parametrize(("metadata", "uri"), HIDDEN)
@pytest.mark.parametrize("allowed", [["s3", "sharepoint"], ["gcs"]])
def test_what_a_title_leads_to_is_not_told_to_who_may_not_read_it(
    metadata: dict[str, str], uri: str, allowed: list[str]
) -> None:
    """As if nothing had the title, but for the record (Z-1)."""
    stores = MemoryFileSearchStores(STORE)
    stores.add(STORE, "Layoffs", metadata=metadata)

    def asked(title: str) -> SourceOutcome:
        found = sources({"sources": [{"title": title, "fileSearchStore": STORE}]})
        overrides = {"allowedSourceTypes": allowed}
        (outcome,) = grounding(stores).prepare_from_sources(found, ANY, overrides).sources
        return outcome

    hidden, missing = asked("Layoffs"), asked("Nothing")
    assert (hidden.code, hidden.detail, hidden.uri) == (missing.code, missing.detail, missing.uri)
    assert (hidden.hidden, missing.hidden) == (uri, None)


def test_who_may_read_it_is_told_that_its_type_was_left_out() -> None:
    stores = MemoryFileSearchStores(STORE)
    for title, (metadata, _) in zip(("One", "Two"), HIDDEN, strict=True):
        stores.add(STORE, title, metadata=metadata)
    found = sources({"sources": [{"title": title, "fileSearchStore": STORE} for title in ("One", "Two")]})
    result = grounding(stores).prepare_from_sources(found, CONTEXT, {"allowedSourceTypes": ["gcs"]})
    assert [each.code for each in result.sources] == ["source_type_not_allowed"] * 2


def test_a_pointer_of_the_callers_own_is_refused_as_before() -> None:
    result = grounding(None).prepare_from_sources(sources({"sources": ["sharepoint://drive/plan.md"]}), ANY)
    assert [each.code for each in result.sources] == [DocumentForbidden.code]
