"""What leads from a File Search document back to ours fits into what the service takes (X-10)."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundwire.catalogue import GROUNDWIRE_ID
from groundwire.imports import display_name, metadata
from groundwire.limits import DISPLAY_NAME_BYTES, KEY_BYTES, METADATA_VALUE_BYTES
from groundwire.nodes import document_id
from groundwire.pointers import Location
from groundwire.resolution import id_in, pointer_in
from groundwire.roots import StorageRoot, is_key

POINTER = {"source_type", "s3_bucket", "s3_key", "s3_region", "s3_endpoint", "s3_force_path_style"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.one_of(
    TEXT,
    st.builds(
        lambda char, times, end: char * times + end,
        st.sampled_from("aé日😀"),
        st.integers(60, KEY_BYTES),
        st.sampled_from([".md", "/b.md", "/"]),
    ),
).filter(is_key)
ROOTS = st.builds(
    StorageRoot,
    name=st.just("kb"),
    source_type=st.just("s3"),
    bucket=st.just("facilities-kb"),
    region=st.sampled_from([None, "eu-north-1"]),
    endpoint=st.one_of(st.none(), st.just("https://minio.example"), st.just("https://" + "m" * 250)),
    force_path_style=st.booleans(),
)
LOCATIONS = st.builds(Location, ROOTS, KEYS)


def located(key: str, **options: Any) -> Location:
    return Location(StorageRoot("kb", "s3", "facilities-kb", **options), key)


@given(LOCATIONS, TEXT, st.sampled_from(["text/markdown", "application/pdf"]))
@example(located("a" * METADATA_VALUE_BYTES), "title", "text/plain")
@example(located("a" * (METADATA_VALUE_BYTES + 1)), "title", "text/plain")
@example(located("é" * (METADATA_VALUE_BYTES // 2)), "é" * 129, "text/plain")
@example(located("é" * (METADATA_VALUE_BYTES // 2 + 1)), "é" * 128, "text/plain")
def test_the_service_takes_it_and_it_leads_back(location: Location, name: str, mime_type: str) -> None:
    given_metadata = metadata(location, name, mime_type)
    assert len(given_metadata) <= 20
    assert all(0 < len(value.encode()) <= METADATA_VALUE_BYTES for value in given_metadata.values())
    assert id_in(given_metadata) == document_id(location)
    pointer = location.pointer()
    fits = all(
        len(part.encode()) <= METADATA_VALUE_BYTES for part in (location.key, location.root.endpoint or "")
    )
    found = pointer_in({key: value for key, value in given_metadata.items() if key in POINTER})
    assert found == (pointer if fits else None)
    assert bool(POINTER & set(given_metadata)) is fits, "whole, or not at all"
    assert given_metadata.get("mime_type") == mime_type
    assert given_metadata.get("display_name") == (
        name if 0 < len(name.encode()) <= METADATA_VALUE_BYTES else None
    )


@given(KEYS, st.one_of(st.none(), st.text()))
@example("a.md", "x" * 2000)
@example("a.md", "é" * 256 + "é")
@example("a.md", "\ud800")
@example("a.md", "  ")
def test_a_display_name_is_what_the_service_takes(key: str, title: str | None) -> None:
    location = located(key)
    name = display_name(location, title)
    assert len(name.encode()) <= DISPLAY_NAME_BYTES
    whole = title.strip() if title and title.isprintable() and title.strip() else None
    if whole:
        assert whole.startswith(name)
        assert len(name.encode()) > DISPLAY_NAME_BYTES - 4 or name == whole


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Water leak", "Water leak"),
        (None, "water-leak.md"),
        (" \n", "water-leak.md"),
        ("\ud800", "water-leak.md"),
        ("é" * 300, "é" * 256),
        ("a" + "é" * 300, "a" + "é" * 255),
        ("😀" * 200, "😀" * 128),
    ],
)
def test_a_title_or_the_name_of_the_file_cut_at_a_character(title: str | None, expected: str) -> None:
    assert display_name(located("sops/water-leak.md"), title) == expected


def test_a_store_that_speaks_s3s_protocol_is_named_whole() -> None:
    location = located("a.md", region="r1", endpoint="https://minio.example", force_path_style=True)
    assert metadata(location, "A", "text/markdown") == {
        GROUNDWIRE_ID: document_id(location),
        "source_type": "s3",
        "s3_bucket": "facilities-kb",
        "s3_key": "a.md",
        "s3_region": "r1",
        "s3_endpoint": "https://minio.example",
        "s3_force_path_style": "true",
        "display_name": "A",
        "mime_type": "text/markdown",
    }
