"""A document's way through both functions: an event in, an answer out."""

import json
from typing import Any

import pytest

from grounding.handler import handler as grounding_handler
from indexer.handler import handler as indexer_handler
from tests.integration.conftest import Cloud

SOP = """---
title: No heat
includes:
  - ./shared/terms.md
  - ../contacts/duty.md
  - ./gone.md
---

Check the thermostat.
"""


def indexed(cloud: Cloud, context: Any, *keys: str, kind: str = "Object Created") -> Any:
    """Delivers one event a key, in one batch; returns the handler's answer."""
    records = [
        {
            "messageId": f"m{number}",
            "receiptHandle": "r",
            "body": json.dumps(event(cloud, key, kind, number)),
            "attributes": {},
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "awsRegion": "eu-north-1",
        }
        for number, key in enumerate(keys)
    ]
    return indexer_handler({"Records": records}, context)


def event(cloud: Cloud, key: str, kind: str = "Object Created", number: int = 0) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": kind,
        "source": "aws.s3",
        "account": "111122223333",
        "time": "2026-03-02T08:15:00Z",
        "region": "eu-north-1",
        "resources": [f"arn:aws:s3:::{cloud.bucket}"],
        "detail": {
            "version": "0",
            "bucket": {"name": cloud.bucket},
            "object": {"key": key, "size": 1, "etag": "x", "sequencer": f"0069C2F1A40AB31D{number:02X}"},
            "request-id": "SQK6ZSAE6E49RQM5",
            "requester": "111122223333",
            "source-ip-address": "198.51.100.17",
            "reason": "PutObject",
        },
    }


def call(context: Any, method: str, path: str, body: Any = None, query: dict[str, str] | None = None) -> Any:
    """An HTTP API request by an IAM caller; returns (status, JSON)."""
    request = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "queryStringParameters": query or {},
        "requestContext": {
            "http": {"method": method, "path": path, "sourceIp": "198.51.100.17"},
            "stage": "$default",
            "requestId": "JKJaXmPLvHcESHA=",
            "authorizer": {"iam": {"userArn": "arn:aws:sts::111122223333:assumed-role/app/session"}},
        },
        "body": body if isinstance(body, str | None) else json.dumps(body),
        "isBase64Encoded": False,
    }
    answer = grounding_handler(request, context)
    return answer["statusCode"], json.loads(answer["body"])


@pytest.fixture
def handbook(cloud: Cloud, lambda_context: Any) -> Cloud:
    """Three documents, indexed, one of which includes the other two and one that is not there."""
    cloud.put("sops/no-heat.md", SOP)
    cloud.put("sops/shared/terms.md", "---\ntitle: Terms\n---\nWords.\n")
    cloud.put("contacts/duty.md", "---\ntitle: Duty\nincludes: [../sops/no-heat.md]\n---\nAda.\n")
    keys = ("sops/no-heat.md", "sops/shared/terms.md", "contacts/duty.md")
    assert indexed(cloud, lambda_context, *keys) == {"batchItemFailures": []}
    return cloud


def test_ground(handbook: Cloud, lambda_context: Any) -> None:
    metadata = {
        "groundingChunks": [
            {
                "retrievedContext": {
                    "title": "No heat",
                    "customMetadata": [
                        {"key": "source_type", "stringValue": "s3"},
                        {"key": "s3_bucket", "stringValue": handbook.bucket},
                        {"key": "s3_key", "stringValue": "sops/no-heat.md"},
                    ],
                }
            },
            {"web": {"uri": "https://example.com"}},
        ]
    }
    status, result = call(lambda_context, "POST", "/v1/ground", {"groundingMetadata": metadata})
    assert status == 200, result
    uris = [handbook.uri(key) for key in ("sops/no-heat.md", "sops/shared/terms.md", "contacts/duty.md")]
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
