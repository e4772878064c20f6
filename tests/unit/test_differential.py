"""The command line against the independent implementation, over a few hostile folders of many."""

import contextlib
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest

from groundwire_cli.main import main
from tests import differential


def in_process(arguments: Sequence[str]) -> tuple[int, Any, str]:
    """What `differential.run` gives, without a process for each folder."""
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            status = main(list(arguments))
        except SystemExit as ending:
            status = int(ending.code or 0)
    text = said.getvalue()
    return status, json.loads(text) if text else None, complained.getvalue()


@pytest.mark.parametrize("number", range(120))
def test_a_hostile_folder(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential, "run", in_process)
    case = differential.generate(differential.Dice(f"suite/{number}"))
    assert differential.differences(case, ids=number % 20 == 0, usage=number == 0) == []
