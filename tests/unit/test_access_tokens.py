"""One token for all who need it, and nobody waits longer than they have."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from groundwire.adapters.access_tokens import AccessToken, AccessTokens, NoToken


class Exchange:
    """Gives numbered tokens, once it is let go."""

    def __init__(self, lifetime: timedelta = timedelta(hours=1)) -> None:
        self.lifetime = lifetime
        self.count = 0
        self.fails = False
        self.released = threading.Event()
        self.released.set()

    def __call__(self) -> AccessToken:
        self.count += 1
        number = self.count
        self.released.wait()
        if self.fails:
            raise NoToken("OAuthError invalid_grant")
        return AccessToken(f"token-{number}", datetime.now(UTC) + self.lifetime)


@pytest.fixture
def exchange() -> Iterator[Exchange]:
    made = Exchange()
    yield made
    made.released.set()


def test_a_token_is_handed_out_again_while_it_lasts(exchange: Exchange) -> None:
    tokens = AccessTokens(exchange)
    assert [tokens.take(60).value for _ in range(3)] == ["token-1"] * 3


def test_a_token_about_to_end_is_renewed(exchange: Exchange) -> None:
    exchange.lifetime = timedelta(minutes=3)
    tokens = AccessTokens(exchange)
    assert [tokens.take(60).value for _ in range(2)] == ["token-1", "token-2"]


def test_all_who_come_while_an_exchange_is_under_way_share_it(exchange: Exchange) -> None:
    exchange.released.clear()
    tokens = AccessTokens(exchange)
    arrived = threading.Barrier(17)

    def take() -> str:
        arrived.wait()
        return tokens.take(60).value

    with ThreadPoolExecutor(16) as pool:
        taken = [pool.submit(take) for _ in range(16)]
        arrived.wait()
        exchange.released.set()
        assert {each.result() for each in taken} == {"token-1"}
    assert exchange.count == 1


def test_a_failure_is_everybodys_who_waits_and_nobodys_later(exchange: Exchange) -> None:
    exchange.fails = True
    tokens = AccessTokens(exchange)
    with pytest.raises(NoToken, match="invalid_grant"):
        tokens.take(60)
    exchange.fails = False
    assert tokens.take(60).value == "token-2"


def test_nobody_waits_longer_than_they_have_and_the_exchange_is_not_in_vain(exchange: Exchange) -> None:
    exchange.released.clear()
    tokens = AccessTokens(exchange)
    for _ in range(2):
        with pytest.raises(NoToken, match="too long"):
            tokens.take(0.01)
    exchange.released.set()
    assert tokens.take(60).value == "token-1"


def test_an_exchange_that_never_ends_is_given_up(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundwire.adapters.access_tokens._GIVEN_UP_AFTER_S", 0.0)
    exchange.released.clear()
    tokens = AccessTokens(exchange)
    for _ in range(2):
        with pytest.raises(NoToken, match="too long"):
            tokens.take(0.01)
    exchange.released.set()
    tokens.take(60)
    assert exchange.count >= 2


def test_a_token_does_not_show_itself() -> None:
    assert "secret" not in repr(AccessToken("secret", datetime.now(UTC)))
