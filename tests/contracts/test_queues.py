"""The queues: what grounding asks for, the indexer understands; what is kept, is kept as it came."""

import json

import pytest

from groundwire.adapters.sqs import SqsDeadLetters, SqsIndexQueue
from groundwire.errors import Unavailable
from groundwire.limits import KEY_BYTES, MAX_DOCS
from groundwire.pointers import Location
from groundwire.roots import StorageRoot, StorageRoots
from indexer.messages import Look, tasks
from tests.cloud import Cloud

KB = StorageRoot("kb", "s3", "facilities-kb", prefix="docs")
ROOTS = StorageRoots([KB])
SQS_BYTES = 256 * 1024


def test_what_is_asked_for_is_what_is_looked_at(cloud: Cloud) -> None:
    wanted = [
        Location(KB, f"docs/{key}")
        for key in ("a.md", "a b+c%20d#?&.md", "é/日本.md", "/x//y/", "\x01\u202e\U000e0041.md", "q'\"\\.md")
    ]
    SqsIndexQueue(cloud.sqs, cloud.queue).request(wanted)
    (message,) = cloud.messages(cloud.queue)
    assert tasks(message["Body"], ROOTS) == [Look(each, None) for each in wanted]


def test_all_documents_of_a_request_fit_into_one_message(cloud: Cloud) -> None:
    wanted = [Location(KB, f"docs/{n:02}{'日' * ((KEY_BYTES - 7) // 3)}") for n in range(MAX_DOCS)]
    SqsIndexQueue(cloud.sqs, cloud.queue).request(wanted)
    (message,) = cloud.messages(cloud.queue)
    assert len(message["Body"].encode()) < SQS_BYTES
    assert tasks(message["Body"], ROOTS) == [Look(each, None) for each in wanted]


def test_a_queue_that_takes_nothing_is_unavailable(cloud: Cloud) -> None:
    nowhere = cloud.queue + "-gone"
    with pytest.raises(Unavailable):
        SqsIndexQueue(cloud.sqs, nowhere).request([Location(KB, "docs/a.md")])
    with pytest.raises(Unavailable):
        SqsDeadLetters(cloud.sqs, nowhere).keep("body", "reason")


def test_a_message_is_kept_as_it_came_with_the_reason(cloud: Cloud) -> None:
    body = json.dumps({"what": "é\n<&>\"'"}, ensure_ascii=False) + " not json"
    SqsDeadLetters(cloud.sqs, cloud.dead_letters).keep(body, "the message is not JSON")
    (message,) = cloud.messages(cloud.dead_letters)
    assert message["Body"] == body
    assert message["MessageAttributes"]["reason"]["StringValue"] == "the message is not JSON"
