"""How a deployment says where SharePoint is and how it is read (Z-4)."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from groundwire.settings import GroundingSettings, MicrosoftSettings, StorageRootSettings

MICROSOFT = {"tenant_id": "contoso", "client_id": "groundwire", "certificate_secret": "graph"}


def settings(**fields: Any) -> GroundingSettings:
    return GroundingSettings(
        table="t",
        storage_roots=(
            StorageRootSettings(name="kb", source_type="sharepoint", bucket="b!1", delegated=True),
        ),
        index_queue_url="q",
        **fields,
    )


def test_what_is_written_to_the_environment_is_read_from_it() -> None:
    for microsoft in (MicrosoftSettings(**MICROSOFT), None):
        written = settings(microsoft=microsoft)
        environment = written.environment()
        assert ("GROUNDWIRE_MICROSOFT" in environment) is (microsoft is not None)
        assert GroundingSettings.model_validate(environment) == written
    (root,) = written.roots()
    assert (root.bucket, root.delegated) == ("b!1", True)


def test_a_drive_may_be_called_one() -> None:
    roots = json.dumps([{"name": "kb", "source_type": "sharepoint", "drive_id": "b!1"}])
    environment = settings().environment() | {"GROUNDWIRE_STORAGE_ROOTS": roots}
    (root,) = GroundingSettings.model_validate(environment).roots()
    assert root.bucket == "b!1"


@pytest.mark.parametrize(
    "change",
    [
        {"certificate_secret": None},
        {"certificate_secret": ""},
        {"keyless": True},
        {"tenant_id": ""},
        {"client_secret": "a secret has no place here"},
    ],
)
def test_there_is_one_credential_and_it_is_no_secret_string(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        MicrosoftSettings(**MICROSOFT | change)


def test_without_a_certificate_aws_vouches() -> None:
    assert (
        MicrosoftSettings(tenant_id="contoso", client_id="groundwire", keyless=True).certificate_secret
        is None
    )
