"""Use case: the documents that sources name without saying where they are (G-2, G-3).

Each way of looking up is one step for all sources that still need it: by groundwire_id in the index; by
resource name in the catalogue, or one by one in the service; by store and display name in the catalogue, for
which a store that we do not fill is listed. What fails costs the sources that needed it, never the request.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from groundwire.catalogue import CatalogueEntry, newest, store_of
from groundwire.deadline import Deadline
from groundwire.errors import DocumentNotFound, FetchError, PointerRefused
from groundwire.limits import CATALOGUE_FRESH_S, CATALOGUE_KEPT_S, LISTING_ON_PATH_S, LOOKUPS_AT_ONCE
from groundwire.listing import list_store
from groundwire.pointers import CanonicalDocumentPointer, Location
from groundwire.ports import CatalogueWriter, DocumentIds, FileSearchStores
from groundwire.resolution import KnowledgeSource, id_in, own_pointer, pointer_in
from groundwire.roots import StorageRoots

NO_SUCH_NAME: Final = "no File Search document of ours has this name"
_RESOURCE_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
"""What a title may be instead of a display name: the last part of a resource name."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a source leads to; `note` says what an author may want to mend."""

    pointer: CanonicalDocumentPointer
    note: str | None = None
    named: bool = False
    """Whether the source itself said where its document is: its URI is then no news to the caller."""


Looked = Found | PointerRefused


@dataclass(frozen=True, slots=True)
class SourceLookup:
    """Finds pointers; without stores, catalogue and index it knows those that sources carry themselves."""

    roots: StorageRoots
    ids: DocumentIds | None = None
    catalogue: CatalogueWriter | None = None
    stores: FileSearchStores | None = None
    store_names: Sequence[str] | None = None
    """The stores that may be looked into; None: whichever the sources of a request name."""

    def find(
        self,
        sources: Sequence[KnowledgeSource],
        deadline: Deadline,
        may_read: Callable[[CanonicalDocumentPointer], bool] = lambda _: True,
    ) -> tuple[list[Looked], list[str]]:
        """For each source a pointer or why there is none, in order; and which ways of looking up failed.

        Of several documents of one title, those count that the caller may read: the others neither win nor
        make it ambiguous (Z-1).
        """
        return _Search(self, sources, deadline, may_read).run()


@dataclass(slots=True)
class _Search:
    """What one request has found out."""

    at: SourceLookup
    sources: Sequence[KnowledgeSource]
    deadline: Deadline
    may_read: Callable[[CanonicalDocumentPointer], bool]
    looked: dict[int, Looked] = field(default_factory=dict)
    entries: dict[str, CatalogueEntry] = field(default_factory=dict)
    titled: dict[tuple[str, str], list[CatalogueEntry]] = field(default_factory=dict)
    located: dict[str, Location] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def run(self) -> tuple[list[Looked], list[str]]:
        for index, source in enumerate(self.sources):
            try:
                if pointer := own_pointer(source, self.at.roots):
                    self.looked[index] = Found(pointer, named=True)
            except PointerRefused as refused:
                self.looked[index] = refused
        for step in (self._by_id, self._by_name, self._by_title, self._by_title_as_id):
            if len(self.looked) == len(self.sources):
                break
            step({index: each for index, each in enumerate(self.sources) if index not in self.looked})
        for index, source in enumerate(self.sources):
            self.looked.setdefault(index, self._refusal(source))
        return [self.looked[index] for index in range(len(self.sources))], self.errors

    # -- the ways, in the order of G-3 ---------------------------------------------------------

    def _by_id(self, sources: Mapping[int, KnowledgeSource]) -> None:
        self._identify(source.groundwire_id for source in sources.values())
        for index, source in sources.items():
            if location := self.located.get(source.groundwire_id or ""):
                self.looked[index] = Found(location.pointer())

    def _by_name(self, sources: Mapping[int, KnowledgeSource]) -> None:
        self._take({index: source.document_name for index, source in sources.items()})

    def _by_title(self, sources: Mapping[int, KnowledgeSource]) -> None:
        if self.at.catalogue is None:
            return
        titled = {index: source for index, source in sources.items() if source.title}
        wanted = {(store, each.title or "") for each in titled.values() for store in self._stores(each)}
        begun = self._list({store for store, _ in wanted}, CATALOGUE_KEPT_S)
        self._each(wanted, self._look_for_title)
        missed = {each for each in wanted if not self.titled[each]}
        listed = self._list({store for store, _ in missed} - begun, CATALOGUE_FRESH_S)
        self._each((each for each in missed if each[0] in listed), self._look_for_title)
        for index, source in titled.items():
            self._choose(index, source)

    def _by_title_as_id(self, sources: Mapping[int, KnowledgeSource]) -> None:
        """Some answers have the last part of the resource name for a title."""
        self._take(
            {
                index: f"{source.file_search_store}/documents/{source.title}"
                for index, source in sources.items()
                if source.file_search_store and _RESOURCE_ID.fullmatch(source.title or "")
            }
        )

    # -- what they share -----------------------------------------------------------------------

    @property
    def _catalogue(self) -> CatalogueWriter:
        assert self.at.catalogue is not None
        return self.at.catalogue

    def _take(self, named: Mapping[int, str | None]) -> None:
        """The pointers of the entries with these resource names: in the catalogue, or else in the service."""
        allowed = {i: name for i, name in named.items() if name and self._may_look_into(store_of(name))}
        names = set(allowed.values())
        catalogue = self.at.catalogue
        if catalogue and names:
            known = self._tried("catalogue", lambda: catalogue.named(names, deadline=self.deadline))
            self.entries |= known or {}
        if self.at.stores:
            self._each(names - set(self.entries), self._ask)
        held = {index: self.entries[name] for index, name in allowed.items() if name in self.entries}
        self._identify(id_in(entry.metadata) for entry in held.values())
        self.looked |= {index: self._pointer_of(entry) for index, entry in held.items()}

    def _choose(self, index: int, source: KnowledgeSource) -> None:
        """The newest active document of the source's title; `ambiguous` where nothing decides."""
        titled = [self.titled.get((store, source.title or ""), []) for store in self._stores(source)]
        self._identify(id_in(entry.metadata) for entries in titled for entry in entries)
        known = [[entry for entry in entries if self._may_be_known(entry)] for entries in titled]
        found = [newest(entries) for entries in known]
        candidates = [entry for entries in found for entry in entries]
        if not candidates:
            # What the caller may not read is found for the audit record only, which needs no more than one.
            hidden = [entry for entries in titled for entry in newest(entries)]
            if hidden:
                self.looked[index] = self._pointer_of(hidden[0])
            return
        pointers = {repr(looked): looked for looked in map(self._pointer_of, candidates)}
        if len(pointers) > 1:
            where = "several stores" if sum(map(bool, found)) > 1 else "one store, made at the same time,"
            detail = f"{len(candidates)} documents of {where} have this title"
            self.looked[index] = PointerRefused("ambiguous", detail)
            return
        (looked,) = pointers.values()
        active = sum(entry.state == "active" for entries in known for entry in entries)
        if isinstance(looked, Found) and active > len(candidates):
            looked = Found(looked.pointer, f"the newest of {active} documents of this title")
        self.looked[index] = looked

    def _may_be_known(self, entry: CatalogueEntry) -> bool:
        looked = self._pointer_of(entry)
        return not isinstance(looked, Found) or self.may_read(looked.pointer)

    def _pointer_of(self, entry: CatalogueEntry) -> Looked:
        try:
            if pointer := pointer_in(entry.metadata):
                return Found(pointer)
        except PointerRefused as refused:
            return refused
        if location := self.located.get(id_in(entry.metadata) or ""):
            return Found(location.pointer())
        return PointerRefused("metadata_missing", "the document's metadata holds no complete pointer")

    def _refusal(self, source: KnowledgeSource) -> PointerRefused:
        named = source.groundwire_id or source.document_name or (source.title and self.at.catalogue)
        if named and self.errors:
            return PointerRefused("document_not_found", f"could not be looked up: {', '.join(self.errors)}")
        if named:
            return PointerRefused("document_not_found", NO_SUCH_NAME)
        if source.uri:
            return PointerRefused(
                "uri_unsupported", "a document URI is s3://, gs:// or sharepoint:// with a key"
            )
        return PointerRefused("metadata_missing", "the source's metadata holds no complete pointer")

    def _stores(self, source: KnowledgeSource) -> Sequence[str]:
        if source.file_search_store is None:
            named = dict.fromkeys(each.file_search_store for each in self.sources if each.file_search_store)
            return list(named) if self.at.store_names is None else self.at.store_names
        return [source.file_search_store] if self._may_look_into(source.file_search_store) else []

    def _may_look_into(self, store: str) -> bool:
        return self.at.store_names is None or store in self.at.store_names

    def _identify(self, ids: Iterable[str | None]) -> None:
        wanted = {each for each in ids if each and each not in self.located}
        index = self.at.ids
        if index and wanted:
            known = self._tried("index", lambda: index.identified(wanted, deadline=self.deadline))
            self.located |= known or {}

    def _list(self, names: set[str], seconds: float) -> set[str]:
        """Lists the stores that nobody has listed for so long, unless we fill them ourselves (G-2).

        Returns those of which more is known now.
        """
        stores, catalogue, deadline = self.at.stores, self._catalogue, self._part_of_the_time()
        listed: set[str] = set()

        def bring_up_to_date(name: str) -> None:
            before = catalogue.listing(name, deadline=deadline)
            now = time.time()
            if stores and (before is None or not (before.ours or before.completed > now - seconds)):
                listed.add(name)
                list_store(stores, catalogue, name, deadline=deadline, now=now)

        may_be_missing = self.at.store_names is None  # one that was declared may not
        self._each(
            names,
            lambda name: self._tried("listing", lambda: bring_up_to_date(name), missing=may_be_missing),
        )
        return listed

    def _part_of_the_time(self) -> Deadline:
        """What listing may take: the documents still have to be fetched."""
        return Deadline.after(min(LISTING_ON_PATH_S, self.deadline.left() / 2))

    def _look_for_title(self, wanted: tuple[str, str]) -> None:
        store, title = wanted
        found = self._tried("catalogue", lambda: self._catalogue.titled(store, title, deadline=self.deadline))
        self.titled[wanted] = found or []

    def _ask(self, name: str) -> None:
        stores, catalogue = self.at.stores, self.at.catalogue
        assert stores is not None
        entry = self._tried("get", lambda: stores.document(name, deadline=self.deadline))
        if entry is None:
            return
        self.entries[name] = entry
        if catalogue:
            self._tried("catalogue", lambda: self._keep(catalogue, entry))

    def _keep(self, catalogue: CatalogueWriter, entry: CatalogueEntry) -> None:
        """Unless our importer keeps it: its entry does not end, and nobody would list it again."""
        listing = catalogue.listing(entry.store, deadline=self.deadline)
        if not (listing and listing.ours):
            catalogue.put([entry], expires=time.time() + CATALOGUE_FRESH_S)

    def _each[T](self, values: Iterable[T], look: Callable[[T], None]) -> None:
        todo = list(values)
        if len(todo) < 2:
            for each in todo:
                look(each)
            return
        with ThreadPoolExecutor(min(len(todo), LOOKUPS_AT_ONCE), "lookup") as pool:
            list(pool.map(look, todo))

    def _tried[T](self, way: str, look: Callable[[], T], *, missing: bool = True) -> T | None:
        """What `look` gives; None where it is not there, or cannot be asked, which is an error.

        Without `missing`, not being there is an error too.
        """
        try:
            return look()
        except FetchError as error:
            reason = f"{way}: {error.code}"
            if reason not in self.errors and not (missing and isinstance(error, DocumentNotFound)):
                self.errors.append(reason)
            return None
