"""A document's way through both functions: an event in, an answer out."""

from tests.cloud import Cloud
from tests.integration.driving import post, upload

SOP = """---
title: No heat
includes:
  - ./shared/terms.md
  - ../contacts/duty.md
  - ./gone.md
---

Check the thermostat.
"""


def test_from_upload_to_answer(cloud: Cloud) -> None:
    files: dict[str, str | bytes] = {
        "sops/no-heat.md": SOP,
        "sops/shared/terms.md": "---\ntitle: Terms\n---\nWords.\n",
        "contacts/duty.md": "---\ntitle: Duty\nincludes: [../sops/no-heat.md]\n---\nAda.\n",
    }
    upload(cloud, files)
    metadata = {
        "groundingChunks": [
            {
                "retrievedContext": {
                    "title": "No heat",
                    "customMetadata": [
                        {"key": "source_type", "stringValue": "s3"},
                        {"key": "s3_bucket", "stringValue": cloud.bucket},
                        {"key": "s3_key", "stringValue": "sops/no-heat.md"},
                    ],
                }
            },
            {"web": {"uri": "https://example.com"}},
        ]
    }
    answer = post("/v1/ground", {"groundingMetadata": metadata})
    assert answer.status == 200, answer.body
    result = answer.json
    uris = [cloud.uri(key) for key in files]
    assert [each["uri"] for each in result["allDocumentsForAttachment"]] == uris
    assert result["allDocumentsForAttachment"][0]["text"] == SOP
    (bundle,) = result["compositionBundles"]
    assert [(s["relativePath"], s["reason"], s["code"]) for s in bundle["skipped"]] == [
        ("./gone.md", "fetch_failed", "not_found"),
        ("../sops/no-heat.md", "cycle", "ancestor"),
    ]
    assert [(s["status"], s["code"]) for s in result["sources"]] == [
        ("resolved", None),
        ("unresolved", "web_source"),
    ]
    assert result["complete"] is False
    assert result["indexStale"] == []
