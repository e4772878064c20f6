"""Rules Z-1, Z-2 and section 1: what a storage root is, what it holds, and who may read it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.documents import Context
from groundwire.errors import ConfigurationError, DocumentForbidden, PointerRefused
from groundwire.fetching import CanonicalDocumentFetcher, locate
from groundwire.pointers import (
    CanonicalDocumentPointer,
    GcsDocumentPointer,
    LocalDocumentPointer,
    S3DocumentPointer,
    SharePointDocumentPointer,
)
from groundwire.resolution import pointer_from_uri
from groundwire.roots import ANYONE, IN_PROCESS, Caller, StorageRoot, StorageRoots, may_read
from tests.fakes import MemoryStore

KB = StorageRoot("kb", "s3", "facilities-kb", prefix="kb", region="eu-north-1")
PLANT = StorageRoot("plant", "s3", "plant-docs", endpoint="https://Objects.Plant.example:9000/")
PLANS = StorageRoot("plans", "gcs", "facilities-plans")
DRIVE = StorageRoot("policies", "sharepoint", "b!Xy7")
ROOTS = StorageRoots([KB, PLANT, PLANS, DRIVE])


def s3(key: str, bucket: str = "facilities-kb", **place: Any) -> S3DocumentPointer:
    return S3DocumentPointer(s3_bucket=bucket, s3_key=key, **place)


@pytest.mark.parametrize(
    ("pointer", "root"),
    [
        (s3("kb/x.md"), KB),
        (s3("kb/x.md", s3_region="eu-north-1"), KB),
        (s3("x.md", "plant-docs", s3_endpoint="https://objects.plant.example:9000"), PLANT),
        (s3("x.md", "plant-docs", s3_endpoint="HTTPS://OBJECTS.PLANT.EXAMPLE:9000"), PLANT),
        (GcsDocumentPointer(gcs_bucket="facilities-plans", gcs_object="x.md"), PLANS),
        (SharePointDocumentPointer(sharepoint_drive_id="b!Xy7", sharepoint_path="HR/x.md"), DRIVE),
    ],
)
def test_a_pointer_leads_into_its_root(pointer: CanonicalDocumentPointer, root: StorageRoot) -> None:
    assert locate(pointer, ROOTS).root is root


@pytest.mark.parametrize(
    "pointer",
    [
        s3("kb/x.md", "somebody-elses"),
        s3("kb/x.md", "Facilities-kb"),
        s3("kb/x.md", s3_region="us-east-1"),
        s3("kb/x.md", s3_endpoint="https://evil.example"),
        s3("x.md", "plant-docs"),
        s3("x.md", "plant-docs", s3_endpoint="http://objects.plant.example:9000"),
        s3("x.md", "plant-docs", s3_endpoint="https://objects.plant.example"),
        s3("x.md", "plant-docs", s3_endpoint="https://objects.plant.example:9001"),
        s3("x.md", "plant-docs", s3_endpoint="https://objects.plant.example:9000/tenant"),
        s3("x.md", "plant-docs", s3_endpoint="https://objects.plant.example:9000?tenant"),
        s3("x.md", "plant-docs", s3_endpoint="https://objects.plant.example:9000#tenant"),
        s3("x.md", "plant-docs", s3_endpoint="https://tenant@objects.plant.example:9000"),
        s3("x.md", "plant-docs", s3_endpoint="https://objects.plant.example:99999999"),
        s3("x.md", "plant-docs", s3_endpoint="https://[objects.plant.example"),
        s3("x.md", "plant-docs", s3_endpoint=""),
        s3("x.md", "plant-docs", s3_endpoint="https://objects.plant.example:9000", s3_region="eu-north-1"),
        s3("x.md"),
        s3("kb_secret/x.md"),
        s3("kb"),
        s3("KB/x.md"),
        GcsDocumentPointer(gcs_bucket="facilities-kb", gcs_object="kb/x.md"),
        SharePointDocumentPointer(sharepoint_drive_id="b!xy7", sharepoint_path="HR/x.md"),
        LocalDocumentPointer(local_root="kb", local_path="x.md"),
    ],
)
def test_a_pointer_that_differs_in_anything_leads_nowhere(pointer: CanonicalDocumentPointer) -> None:
    """An omitted endpoint is AWS's own, not any; what cannot be parsed equals nothing."""
    with pytest.raises(PointerRefused) as refused:
        locate(pointer, ROOTS)
    assert refused.value.code == "root_not_configured"


@given(endpoint=st.text(max_size=30).map("https://".__add__) | st.text(max_size=30))
def test_an_endpoint_may_be_any_text(endpoint: str) -> None:
    """Authors write it: what cannot be parsed is refused like any other."""
    with pytest.raises(PointerRefused):
        locate(s3("x.md", "plant-docs", s3_endpoint=endpoint), ROOTS)


@pytest.mark.parametrize("key", ["", "x" * 1_025, "ä" * 513, "\ud800.md"])
def test_what_no_store_could_hold_is_no_key(key: str) -> None:
    with pytest.raises(PointerRefused) as refused:
        ROOTS.holding("gcs", "facilities-plans", key)
    assert refused.value.code == "uri_unsupported"
    assert ROOTS.holding("gcs", "facilities-plans", "x" * 1_024) is PLANS


def test_a_uri_takes_region_and_endpoint_of_its_root() -> None:
    """It says neither, and still names the document that a full pointer names."""
    for uri, root in (("s3://plant-docs/a b%20c.md", PLANT), ("s3://facilities-kb/kb/x.md", KB)):
        location = locate(pointer_from_uri(uri, ROOTS), ROOTS)
        assert (location.root, location.uri) == (root, uri)
        assert locate(location.pointer(), ROOTS) == location


def test_of_nested_roots_the_longest_prefix_holds() -> None:
    whole = StorageRoot("whole", "s3", "b")
    inner = StorageRoot("inner", "s3", "b", prefix="hr")
    innermost = StorageRoot("innermost", "s3", "b", prefix="hr/pay")
    roots = StorageRoots([inner, whole, innermost])
    keys = {"x.md": whole, "hr/x.md": inner, "hrx/x.md": whole, "hr/pay/x.md": innermost, "hr/pay": inner}
    for key, root in keys.items():
        assert roots.holding("s3", "b", key) is root


def test_a_prefix_is_compared_by_whole_segments() -> None:
    root = StorageRoot("kb", "s3", "b", prefix="kb")
    assert [root.contains(key) for key in ("kb/x", "kb", "kb_secret/x", "kbx", "x/kb/y")] == [
        True,
        False,
        False,
        False,
        False,
    ]
    assert root.relative("kb/sops/x.md") == "sops/x.md"
    assert root.uri("kb/x") == "s3://b/kb/x"


@pytest.mark.parametrize(
    "roots",
    [
        [KB, replace(KB, bucket="other")],
        [KB, replace(KB, name="twice")],
        [PLANT, replace(PLANT, name="twin", prefix="p", endpoint="https://objects.plant.example")],
        [PLANT, replace(PLANT, name="twin", prefix="p", endpoint=None)],
        [replace(KB, name="")],
        [replace(KB, bucket="")],
        [replace(KB, bucket="a/b")],
        *([replace(KB, prefix=prefix)] for prefix in ("/kb", "kb/", "a//b", "..", "a/./b", "/")),
        *(
            [replace(KB, readers=(reader,))]
            for reader in ("", "group:a b", "a,b", "[a]", "a\tb", "a\n", "a\x00")
        ),
    ],
)
def test_a_configuration_that_reads_two_ways_is_refused(roots: list[StorageRoot]) -> None:
    with pytest.raises(ConfigurationError):
        StorageRoots(roots)


def test_one_bucket_name_may_be_on_two_kinds_of_store() -> None:
    """And one bucket at one endpoint, spelled in two ways, may have several roots."""
    same = replace(PLANT, name="twin", prefix="p", endpoint="https://objects.plant.example:9000")
    assert len(list(StorageRoots([KB, StorageRoot("gkb", "gcs", KB.bucket), PLANT, same]))) == 4


@pytest.mark.parametrize(
    ("readers", "reads"),
    [
        ((), False),
        ((ANYONE,), True),
        (("arn:aws:iam::1:role/app",), True),
        (("arn:aws:iam::1:role/app2",), False),
        (("group:staff",), True),
        (("staff",), False),
        (("scope:read",), True),
        (("group:read",), False),
        (("group:other", "scope:read"), True),
    ],
)
def test_who_may_read_a_root(readers: tuple[str, ...], reads: bool) -> None:
    caller = Caller("arn:aws:iam::1:role/app", frozenset({"staff"}), frozenset({"read"}))
    root = replace(KB, readers=readers)
    assert may_read(caller, root) == reads
    assert may_read(IN_PROCESS, root)
    assert not may_read(Caller("in-process"), replace(KB, readers=()))


def test_a_caller_who_may_not_read_costs_no_request() -> None:
    """Z-1: refused before anything leaves, whether the document is there or not."""
    store = MemoryStore({"kb/x.md": b""})
    fetcher = CanonicalDocumentFetcher({"s3": store}, StorageRoots([KB]))
    for key in ("kb/x.md", "kb/gone.md"):
        with pytest.raises(DocumentForbidden) as refused:
            fetcher.fetch_prepared_document(s3(key), Context(1, 1, Caller("nobody")))
        assert refused.value.code == "forbidden"
    assert store.fetched == {}


def test_every_root_needs_a_fetcher_of_its_kind() -> None:
    with pytest.raises(ConfigurationError, match="gcs"):
        CanonicalDocumentFetcher({"s3": MemoryStore({})}, StorageRoots([KB, PLANS]))
