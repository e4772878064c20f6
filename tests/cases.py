"""The conformance corpus: worked inputs with their right answers, one parametrised test each.

`GROUNDWIRE_CASES` names another folder of the same format to run against the same rules.
"""

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(os.environ.get("GROUNDWIRE_CASES") or Path(__file__).parent / "cases")


def cases(name: str) -> list[Any]:
    """The cases of `<name>.yaml`, each a pytest parameter named by its id."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return [pytest.param(case, id=case["id"]) for case in yaml.load(text, yaml.CSafeLoader)]


def content(value: Any) -> bytes:
    """The bytes of a document given as text or as `{base64: …}`."""
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else str(value).encode()
