"""What the indexer cannot act on is recorded; what it may act on later is retried; neither fails the rest."""

import pytest

from tests.e2e.deployed.stack import Stack

_SEQUENCER = "0061F2A5C71B2C8D1E"


@pytest.mark.parametrize("shape", ["{word}, not JSON", '{{"detail-type": "{word}"}}', '["{word}"]'])
def test_a_message_nobody_knows_is_kept_as_a_dead_letter_and_acknowledged(
    stack: Stack, folder: str, shape: str
) -> None:
    body = shape.format(word=folder)
    stack.put({f"{folder}/good.md": "Good\n"})
    stack.send(body, stack.object_event(f"{folder}/good.md", _SEQUENCER))

    assert body in stack.dead_letter(folder)
    stack.indexed(f"{folder}/good.md")
    stack.queue_is_empty()


def test_an_event_about_another_bucket_is_acknowledged(stack: Stack, folder: str) -> None:
    event = stack.object_event(f"{folder}/a.md", _SEQUENCER)
    stack.send(event.replace(stack.deployment.bucket, "somebody-elses-bucket"))
    stack.queue_is_empty()
    assert stack.asked(f"{folder}/a.md").status == 404


def test_a_record_that_keeps_failing_is_dead_lettered_and_its_neighbours_are_indexed(
    stack: Stack, folder: str
) -> None:
    bucket, failing = stack.deployment.bucket, f"{folder}/archived.md"
    good = [f"{folder}/good-{number}.md" for number in range(3)]
    with stack.quick_retries():
        # The store will not hand over an archived object: not a fault of the document, so it is tried again.
        stack.s3.put_object(Bucket=bucket, Key=failing, Body=b"Later\n", StorageClass="GLACIER")
        stack.put(dict.fromkeys(good, "Good\n"))
        stack.send(*(stack.object_event(key, _SEQUENCER) for key in (good[0], failing, *good[1:])))

        for key in good:
            stack.indexed(key)
        assert f'"{failing}"' in stack.dead_letter(failing)
        stack.queue_is_empty()
    assert stack.asked(failing).status == 404
