"""Documents outside AWS: known to the grounding function alone, which gets no more than it takes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groundwire.settings import GroundingSettings
from infra.constructs.external import ExternalDocuments
from infra.environments import (
    EntraApplication,
    EnvironmentRefused,
    GcsRoot,
    GoogleFederation,
    SharePointRoot,
    StorageRoot,
)
from infra.stack import GroundwireStack
from tests.infra.synthesized import GUEST, Synthesized, app

SECRET = "arn:aws:secretsmanager:eu-north-1:111111111111:secret:groundwire/entra-AbC123"
CERTIFIED = EntraApplication(tenant_id="acme", client_id="groundwire", certificate_secret=SECRET)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory, empty_layer: Path) -> Synthesized:
    """The guest, with a certificate instead of AWS's word."""
    outdir = tmp_path_factory.mktemp("certified")
    assembly = app(outdir)
    GroundwireStack(assembly, environment=replace(GUEST, microsoft=CERTIFIED), dependencies=empty_layer)
    assembly.synth()
    return Synthesized.read(outdir, GUEST.name)


def settings(deployment: Synthesized) -> GroundingSettings:
    """What the deployed grounding function would read from its environment."""
    return GroundingSettings.model_validate(deployment.variables("grounding"))


def test_the_grounding_function_is_told_of_every_root(guest: Synthesized) -> None:
    roots = settings(guest).roots()
    assert [(root.name, root.source_type) for root in roots] == [
        ("handbook", "s3"),
        ("recipes", "s3"),
        ("own", "s3"),
        ("labs", "gcs"),
        ("hr", "sharepoint"),
        ("own-hr", "sharepoint"),
    ]
    labs, hr, own_hr = (roots.by_name[name] for name in ("labs", "hr", "own-hr"))
    assert (labs.bucket, labs.prefix, labs.readers) == ("acme-labs", "published", ("group:staff",))
    assert (hr.bucket, hr.prefix, hr.readers, hr.delegated) == ("b!acme-hr", "Policies", ("scope:hr",), False)
    assert own_hr.delegated


_OWN, _EXTERNAL = ["handbook", "recipes", "own"], ["labs", "hr", "own-hr"]


@pytest.mark.parametrize(
    ("folder", "entry", "names"),
    [
        ("reindex", "handler", _OWN),
        ("reindex", "reconcile", _OWN),
        # What searches saw elsewhere is told to the indexer by name; it has nothing to read it with.
        ("indexer", "handler", _OWN + _EXTERNAL),
    ],
)
def test_what_indexes_reads_s3_alone(guest: Synthesized, folder: str, entry: str, names: list[str]) -> None:
    variables = guest.variables(folder, entry)
    assert [root["name"] for root in json.loads(variables["GROUNDWIRE_STORAGE_ROOTS"])] == names
    assert not {"GROUNDWIRE_GOOGLE", "GROUNDWIRE_MICROSOFT", "GROUNDWIRE_GEMINI_KEY_SECRET"} & set(variables)


def test_how_they_are_read_is_said(guest: Synthesized, certified: Synthesized) -> None:
    keyless, certificate = settings(guest), settings(certified)
    assert keyless.google is not None
    assert GUEST.google is not None
    assert (keyless.google.audience, keyless.google.impersonation_url) == (GUEST.google.audience, None)
    assert keyless.microsoft is not None
    assert (keyless.microsoft.tenant_id, keyless.microsoft.client_id) == ("acme", "groundwire")
    assert (keyless.microsoft.keyless, keyless.microsoft.certificate_secret) == (True, None)
    assert certificate.microsoft is not None
    assert (certificate.microsoft.keyless, certificate.microsoft.certificate_secret) == (False, SECRET)


def test_a_service_account_may_stand_between() -> None:
    url = "https://iamcredentials.example/v1/reader@acme:generateAccessToken"
    google = GoogleFederation(audience="//iam.example/provider", impersonation_url=url)
    told = ExternalDocuments(replace(GUEST, google=google)).google
    assert told is not None
    assert told.impersonation_url == url


def test_without_such_roots_nothing_is_said_and_nothing_allowed(prod: Synthesized) -> None:
    assert not {"GROUNDWIRE_GOOGLE", "GROUNDWIRE_MICROSOFT"} & set(prod.variables("grounding"))
    assert "secretsmanager:" not in str(statements(prod))
    assert "sts:GetWebIdentityToken" not in str(statements(prod))


def statements(deployment: Synthesized) -> list[Any]:
    """Every statement of every policy that a role has."""
    policies = deployment.resources("AWS::IAM::Policy").values()
    return [each for policy in policies for each in policy["Properties"]["PolicyDocument"]["Statement"]]


def beyond(deployment: Synthesized, other: Synthesized) -> dict[str, set[str]]:
    """What the grounding function may do in `deployment` and not in `other`."""
    here, there = deployment.allowed("grounding"), other.allowed("grounding")
    return {name: actions - there.get(name, set()) for name, actions in here.items() if name not in there}


def test_keyless_may_ask_aws_for_its_word_to_microsoft_alone(
    guest: Synthesized, certified: Synthesized
) -> None:
    assert beyond(guest, certified) == {"*": {"sts:GetWebIdentityToken"}}
    (statement,) = (each for each in statements(guest) if each["Action"] == "sts:GetWebIdentityToken")
    assert statement["Condition"] == {
        "ForAllValues:StringEquals": {"sts:IdentityTokenAudience": ["api://AzureADTokenExchange"]}
    }
    assert "secretsmanager:" not in str(statements(guest))


def test_a_certificate_is_exactly_one_secret_and_the_grounding_functions_alone(
    guest: Synthesized, certified: Synthesized
) -> None:
    assert beyond(certified, guest) == {SECRET: {"secretsmanager:GetSecretValue"}}
    actions = [str(each["Action"]) for each in statements(certified)]
    assert [each for each in actions if "secretsmanager:" in each] == ["secretsmanager:GetSecretValue"]
    assert not [each for each in actions if "sts:" in each]


GCS = GcsRoot(name="labs", bucket="acme-labs")
DRIVE = SharePointRoot(name="hr", drive_id="b!acme-hr")
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "gcs without google": ({"external_roots": (GCS,), "google": None}, "'labs' is in Cloud Storage"),
    "sharepoint without microsoft": (
        {"external_roots": (DRIVE,), "microsoft": None},
        "'hr' is in SharePoint",
    ),
    "delegated without tokens": (
        {"external_roots": (replace(DRIVE, delegated=True),), "jwt": None},
        "callers' own tokens",
    ),
    "delegated in part": (
        {"external_roots": (DRIVE, replace(DRIVE, name="mine", prefix="mine", delegated=True))},
        "delegated",
    ),
    "one name twice": ({"external_roots": (replace(GCS, name="recipes"),)}, "same name"),
    "one place twice": ({"external_roots": (GCS, replace(GCS, name="again"))}, "two storage roots hold"),
    "a prefix with a slash": ({"external_roots": (replace(GCS, prefix="kb/"),)}, "not a plain path"),
    "a secret by its name": (
        {"microsoft": replace(CERTIFIED, certificate_secret="groundwire/entra")},
        "the ARN of a secret",
    ),
    "a secret that is cut off": (
        {"microsoft": replace(CERTIFIED, certificate_secret=SECRET[:-7])},
        "the ARN of a secret",
    ),
}


@pytest.mark.parametrize(("change", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_contradicts_itself_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(EnvironmentRefused, match=problem) as caught:
        replace(GUEST, **change)
    assert str(caught.value).startswith("guest: ")


def test_a_bucket_that_is_still_to_be_made_is_nobody_elses() -> None:
    roots = (StorageRoot(name="acme-labs"), StorageRoot(name="kb", bucket="acme-labs"))
    replace(GUEST, storage_roots=roots, external_roots=(GCS, DRIVE))
