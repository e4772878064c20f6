"""Who may write is asked of `writers` alone, and refused where it could be read in two ways (Z-5)."""

from typing import Any

import pytest

from groundwire.errors import ConfigurationError
from groundwire.roots import IN_PROCESS, Caller, StorageRoot, StorageRoots, may_read, may_write

ADA = Caller("jwt:https://issuer#ada", frozenset({"authors"}), frozenset({"kb.write"}))


def root(*writers: str, **more: Any) -> StorageRoot:
    return StorageRoot(**{"name": "kb", "source_type": "s3", "bucket": "kb", "writers": writers} | more)


@pytest.mark.parametrize("entry", ["*", ADA.principal, "group:authors", "scope:kb.write"])
def test_an_entry_means_what_it_means_among_readers(entry: str) -> None:
    assert may_write(ADA, root("x", entry))
    assert may_read(ADA, root(readers=("x", entry)))


@pytest.mark.parametrize("entry", ["group:kb.write", "scope:authors", "authors", "jwt:https://issuer#", "**"])
def test_nobody_else_is_meant(entry: str) -> None:
    assert not may_write(ADA, root(entry))


def test_nobody_writes_by_default_and_reading_is_another_right() -> None:
    assert not may_write(ADA, root(readers=("*",)))
    assert not may_read(ADA, root("*"))


def test_the_application_itself_may_and_who_only_has_its_name_may_not() -> None:
    assert may_write(IN_PROCESS, root())
    assert not may_write(Caller(IN_PROCESS.principal), root())


@pytest.mark.parametrize("entry", ["", "group:a b", "a,b", "[a]", "a\n"])
def test_an_entry_that_could_be_read_in_two_ways_is_refused(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="writer"):
        StorageRoots([root(entry)])


@pytest.mark.parametrize("source_type", ["gcs", "sharepoint", "local"])
def test_only_s3_is_written_to(source_type: str) -> None:
    with pytest.raises(ConfigurationError, match="S3 only"):
        StorageRoots([root("*", source_type=source_type)])
