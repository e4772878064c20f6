"""X-9 on real clients: a bucket that was there before the index, a second look, and what is gone."""

import json
from typing import Any

from groundwire.settings import ReindexSettings
from reindex.handler import handler, reconcile
from tests.cloud import Cloud, lambda_context
from tests.integration.driving import get, index


def listed(cloud: Cloud) -> dict[str, Any]:
    """A batch as the distributed map hands it over."""
    found = cloud.s3.list_objects_v2(Bucket=cloud.bucket)
    items = [{"Key": each["Key"], "root": "kb", "Size": each["Size"]} for each in found.get("Contents", [])]
    return {"Items": items}


def stored(cloud: Cloud) -> list[Any]:
    """Everything in the table, as it is."""
    pages = cloud.dynamodb.get_paginator("scan").paginate(TableName=cloud.table)
    return sorted((item for page in pages for item in page["Items"]), key=lambda item: str(item["PK"]))


def test_a_bucket_that_was_there_before_the_index(cloud: Cloud) -> None:
    cloud.put("sops/heat.md", "---\nincludes: [../terms.md, gone.md]\n---\n")
    cloud.put("terms.md", "words", "text/markdown")
    cloud.put("a b+c%20.md", "odd", "text/markdown")
    answer = handler(listed(cloud), lambda_context())
    assert (answer["indexed"], answer["failed"]) == (3, [])
    document = get("/v1/documents", uri=cloud.uri("sops/heat.md")).json
    assert document["verdict"] == "invalid"
    assert [each["code"] for each in document["findings"]] == ["target_missing"]
    before = stored(cloud)
    assert handler(listed(cloud), lambda_context())["unchanged"] == 3
    assert stored(cloud) == before


def test_what_no_event_told_is_mended(cloud: Cloud) -> None:
    for key in ("a.md", "b.md", "kept.md"):
        cloud.put(key, key)
    index(cloud, "a.md", "b.md", "kept.md")
    cloud.put("a.md", "changed")
    cloud.s3.delete_object(Bucket=cloud.bucket, Key="b.md")
    batch = handler(listed(cloud), lambda_context())
    assert (batch["indexed"], batch["unchanged"]) == (1, 1)
    state = reconcile({"root": "kb", "prefix": "", "results": [batch]}, lambda_context())
    assert state["cursor"] is None
    assert (state["counts"]["indexed"], state["counts"]["removed"]) == (1, 1)
    assert get("/v1/documents", uri=cloud.uri("b.md")).status == 404
    assert reconcile({"root": "kb", "prefix": ""}, lambda_context())["counts"]["removed"] == 0


def test_results_written_down_are_read(cloud: Cloud) -> None:
    manifest = {
        "DestinationBucket": cloud.bucket,
        "ResultFiles": {"FAILED": [], "PENDING": [], "SUCCEEDED": [{"Key": "r/S_0.jsonl", "Size": 9}]},
    }
    cloud.put("r/manifest.json", json.dumps(manifest))
    cloud.put("r/S_0.jsonl", '{"indexed": 7, "failed": []}\n{"indexed": 2, "failed": []}\n')
    written = {"ResultWriterDetails": {"Bucket": cloud.bucket, "Key": "r/manifest.json"}}
    state = reconcile({"root": "kb", "results": written}, lambda_context())
    assert state["counts"]["indexed"] == 9


def test_the_environment_is_read_as_it_was_written() -> None:
    settings = ReindexSettings(
        table="t", storage_roots=(), index_queue_url="https://queue", event_bus="bus", aws_region="eu-north-1"
    )
    assert ReindexSettings.model_validate(settings.environment()) == settings
