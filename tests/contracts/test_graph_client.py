"""How Graph is asked: with patience where it asks for some, never past the deadline, again after a 401."""

from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from http.cookiejar import CookieJar
from time import time
from typing import Any

import pytest

from groundwire.adapters.graph import Errand
from groundwire.deadline import Deadline
from groundwire.errors import FetchError, Throttled, Unavailable
from groundwire.limits import RETRY_AFTER_S, SHAREPOINT_ATTEMPTS
from local.servers.graph import failure, throttled
from local.servers.loopback import Behaviour, On
from tests.contracts.drives import Drive, MakeDrive
from tests.fakes import HandClock

SOON = Deadline.after(24 * 3600)


class Hand:
    """A drive on a clock that only waiting turns."""

    def __init__(self, make_drive: MakeDrive) -> None:
        self.clock = HandClock()
        self.waits: list[float] = []
        self.drive = make_drive(clock=self.clock, sleep=self._sleep)
        self.location = self.drive.put("a.md", b"text")

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.turn(seconds)

    def fetch(self, seconds: float = 10.0) -> bytes:
        deadline = Deadline.after(seconds, self.clock)
        return self.drive.store.fetch(self.location, deadline=deadline, max_bytes=10).content


@pytest.fixture
def hand(make_drive: MakeDrive) -> Hand:
    return Hand(make_drive)


@pytest.mark.parametrize("status", [429, 503])
def test_a_short_wait_is_waited_for(hand: Hand, status: int) -> None:
    hand.drive.server.script.append(throttled(4, status))
    assert hand.fetch() == b"text"
    assert hand.waits == [4.0]


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_past_the_deadline_fails_at_once_and_is_remembered(hand: Hand, status: int) -> None:
    """The other seven includes of the request do not knock."""
    hand.drive.server.script.append(throttled(120, status))
    for _ in range(8):
        with pytest.raises(Throttled) as caught:
            hand.fetch()
        assert caught.value.code == "throttled"
    assert (len(hand.drive.asked), hand.waits) == (1, [])
    hand.clock.turn(115.0)
    assert hand.fetch() == b"text"
    assert hand.waits == [5.0]


def test_a_wait_of_exactly_what_is_left_is_too_long(hand: Hand) -> None:
    hand.drive.server.script.append(throttled(10))
    with pytest.raises(Throttled):
        hand.fetch(10.0)
    assert hand.waits == []


def test_a_wait_may_be_told_as_a_date(hand: Hand) -> None:
    hand.drive.server.script.append(throttled(formatdate(time() + 300, usegmt=True)))
    with pytest.raises(Throttled, match=r"for (29\d|300) s more"):
        hand.fetch()


@pytest.mark.parametrize("told", ["soon", "nan", ""])
def test_a_wait_that_says_nothing_is_a_short_one(hand: Hand, told: str) -> None:
    hand.drive.server.script.append(throttled(told))
    assert hand.fetch() == b"text"
    assert len(hand.waits) == 1
    assert 0 < hand.waits[0] < 2


@pytest.mark.parametrize("told", ["0", "-5"])
def test_no_wait_is_none(hand: Hand, told: str) -> None:
    hand.drive.server.script.append(throttled(told))
    assert hand.fetch() == b"text"
    assert hand.waits == []


@pytest.mark.parametrize("told", ["inf", "1e99", str(10**30)])
def test_no_answer_bars_the_store_for_good(hand: Hand, told: str) -> None:
    hand.drive.server.script.append(throttled(told))
    with pytest.raises(Throttled):
        hand.fetch()
    hand.clock.turn(RETRY_AFTER_S)
    assert hand.fetch() == b"text"


@pytest.mark.parametrize("status", [429, 503])
def test_who_is_told_to_wait_again_and_again_gives_up(hand: Hand, status: int) -> None:
    hand.drive.server.script += [throttled(1, status)] * 20
    with pytest.raises(Throttled):
        hand.fetch()
    assert len(hand.drive.asked) == SHAREPOINT_ATTEMPTS


def test_the_download_host_throttles_too(hand: Hand) -> None:
    hand.drive.server.downloads.script.append(throttled(3))
    assert hand.fetch() == b"text"
    assert hand.waits == [3.0]


@pytest.mark.parametrize("behaviour", [failure(500, "generalException"), failure(502, "x"), "reset"])
def test_a_failure_that_may_pass_is_asked_about_again(hand: Hand, behaviour: Behaviour) -> None:
    for server in (hand.drive.server, hand.drive.server.downloads):
        server.script.append(behaviour)
        assert hand.fetch() == b"text"
        server.script += [behaviour] * 20
        before = len(server.requests)
        with pytest.raises(Unavailable) as caught:
            hand.fetch()
        assert type(caught.value) is Unavailable
        assert len(server.requests) - before == SHAREPOINT_ATTEMPTS
        server.script.clear()
    assert all(0 < wait < 3 for wait in hand.waits)
    assert len(set(hand.waits)) == len(hand.waits)  # jitter


def test_503_without_a_time_to_wait_is_no_throttling(hand: Hand) -> None:
    hand.drive.server.script += [failure(503, "serviceNotAvailable")] * 3
    with pytest.raises(Unavailable) as caught:
        hand.fetch()
    assert caught.value.code == "unavailable"


def test_nothing_is_asked_twice_where_no_time_is_left(hand: Hand) -> None:
    hand.drive.server.script.append(failure(500, "generalException"))
    with pytest.raises(Unavailable):
        hand.fetch(0.1)
    assert (len(hand.drive.asked), hand.waits) == (1, [])


def test_nothing_is_asked_after_the_deadline(hand: Hand) -> None:
    with pytest.raises(Unavailable):
        hand.fetch(0.0)
    assert hand.drive.asked == []


@pytest.mark.parametrize("where", ["graph", "downloads"])
@pytest.mark.parametrize("how", ["hang", "drip"])
def test_a_store_that_hangs_or_drips_is_left_at_the_deadline(drive: Drive, where: str, how: Any) -> None:
    """B-8. The store never ends its answer by itself: that the test ends is what it shows."""
    location = drive.put("a.md", b"text" * 250)
    drive.store.fetch(location, deadline=SOON, max_bytes=5_000)
    server = drive.server if where == "graph" else drive.server.downloads
    server.requests.clear()
    server.script += [how] * 3
    with pytest.raises(Unavailable):
        drive.store.fetch(location, deadline=Deadline.after(0.5), max_bytes=5_000)
    assert len(server.requests) <= 1


def test_a_refused_token_is_renewed_once(drive: Drive) -> None:
    location = drive.put("a.md", b"text")
    drive.store.fetch(location, deadline=SOON, max_bytes=10)
    drive.server.grants.clear()
    assert drive.store.fetch(location, deadline=SOON, max_bytes=10).content == b"text"
    assert drive.entra.posts == 2
    drive.server.script += [failure(401, "InvalidAuthenticationToken")] * 9
    before = len(drive.asked)
    with pytest.raises(Unavailable, match="401"):
        drive.store.fetch(location, deadline=SOON, max_bytes=10)
    assert (drive.entra.posts, len(drive.asked) - before) == (3, 2)


def test_eight_refused_at_once_renew_the_token_once(drive: Drive) -> None:
    locations = [drive.put(f"{number}.md", b"text") for number in range(8)]
    drive.store.fetch(locations[0], deadline=SOON, max_bytes=10)
    drive.server.grants.clear()
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda each: drive.store.fetch(each, deadline=SOON, max_bytes=10), locations)
        assert {each.content for each in found} == {b"text"}
    assert drive.entra.posts == 2


def test_requests_say_who_asks(drive: Drive) -> None:
    """Undecorated traffic is throttled first."""
    heads: list[str] = []
    answer = drive.server.answer
    drive.server.answer = lambda request: (  # type: ignore[method-assign]
        heads.append(request.headers["User-Agent"]) or answer(request)  # type: ignore[func-returns-value]
    )
    drive.store.exists(drive.location("a.md"), deadline=SOON)
    assert heads[0].startswith("NONISV|Groundwire|Groundwire/")


def test_cookies_are_not_kept(drive: Drive) -> None:
    location = drive.put("a.md", b"text")
    for server in (drive.server, drive.server.downloads):
        server.script.append((503, b"", {"Set-Cookie": "SPOIDCRL=of-a-caller", "Retry-After": "0"}))
    drive.store.fetch(location, deadline=SOON, max_bytes=10)
    jars: list[CookieJar] = [client.cookies.jar for client in drive.graph._both()]
    assert [len(list(jar)) for jar in jars] == [0, 0]


def test_an_answer_without_end_is_not_read_to_its_end(drive: Drive) -> None:
    drive.server.script.append((200, b" " * 2_000_000, {}))
    with pytest.raises(Unavailable, match="too long"):
        drive.store.exists(drive.location("a.md"), deadline=SOON)


def test_a_request_shows_nothing_of_its_caller() -> None:
    errand = Errand("sharepoint://d/a.md", SOON, "the-callers-own-token")
    assert "the-callers-own-token" not in repr(errand)


def test_errors_are_fetch_errors_of_the_document(drive: Drive) -> None:
    drive.server.script.append(On("root:", failure(423, "resourceLocked")))
    with pytest.raises(FetchError) as caught:
        drive.store.exists(drive.location("a.md"), deadline=SOON)
    assert caught.value.uri == drive.location("a.md").uri
