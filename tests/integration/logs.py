"""Everything the functions write: log and debug records, metrics and whatever else is printed."""

import builtins
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from grounding.handler import logger as grounding_logger
from importer.handler import logger as importer_logger
from indexer.handler import logger as indexer_logger
from uploads.handler import logger as uploads_logger


class Written:
    """What was written so far."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def clear(self) -> None:
        self.stream.seek(0)
        self.stream.truncate()


@contextmanager
def writing() -> Iterator[Written]:
    """Collects all of it, formatted as the platform would receive it."""
    written = Written()
    with pytest.MonkeyPatch.context() as patch:
        # Not sys.stdout: pytest puts its own there when the test begins.
        patch.setattr(builtins, "print", partial(print, file=written.stream))
        for logger in (grounding_logger, importer_logger, indexer_logger, uploads_logger):
            patch.setattr(logger.registered_handler, "stream", written.stream)
        debug = logging.getLogger("groundwire.debug")
        patch.setattr(debug, "handlers", [logging.StreamHandler(written.stream)])
        patch.setattr(debug, "level", logging.INFO)
        # What botocore, urllib3 and ours say at the level that Lambda's root logger has.
        root = logging.StreamHandler(written.stream)
        root.setLevel(logging.WARNING)
        logging.getLogger().addHandler(root)
        yield written
        logging.getLogger().removeHandler(root)
