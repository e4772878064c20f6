"""Events as AWS documents them (tests/events), with only what a test is about changed."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

_FOLDER = Path(__file__).parent / "events"
Event = dict[str, Any]


@cache
def _stored(name: str) -> Event:
    event: Event = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return event


def captured(name: str) -> Event:
    """The stored event of this name, to change at will."""
    return copy.deepcopy(_stored(name))


def object_event(bucket: str, key: str, name: str = "object_created", sequencer: str | None = None) -> Event:
    """What EventBridge says of an object; the key is raw."""
    event = captured(name)
    event["resources"] = [f"arn:aws:s3:::{bucket}"]
    event["detail"]["bucket"]["name"] = bucket
    event["detail"]["object"]["key"] = key
    if sequencer:
        event["detail"]["object"]["sequencer"] = sequencer
    return event


def sqs_batch(*bodies: Any) -> Event:
    """One record a body, with the ids m0, m1, …; what is not text becomes JSON."""
    (record,) = captured("sqs_batch")["Records"]
    texts = [body if isinstance(body, str) else json.dumps(body) for body in bodies]
    return {"Records": [record | {"messageId": f"m{n}", "body": text} for n, text in enumerate(texts)]}


def http_request(
    method: str,
    path: str,
    body: str | None = None,
    *,
    query: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    name: str = "http_api_iam",
    authorizer: Any = ...,
) -> Event:
    """An HTTP API request (payload 2.0); the captured authorizer's unless one is given."""
    event = captured(name)
    context = event["requestContext"]
    event |= {"routeKey": "$default", "rawPath": path, "body": body}
    event["headers"] |= headers or {}
    context["http"] |= {"method": method, "path": path}
    context["routeKey"] = "$default"
    if body is None:
        del event["body"]  # as API Gateway does
    if query:
        # surrogates cannot travel in a query, but an event may hold them
        raw = urlencode(query, errors="surrogatepass")
        event |= {"queryStringParameters": query, "rawQueryString": raw}
    if authorizer is None:
        del context["authorizer"]
    elif authorizer is not ...:
        context["authorizer"] = authorizer
    return event
