"""Rate limits with and without Redis, and the pages and requests that they limit."""

from functools import partial
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from accounts import rate_limits, tokens
from accounts.rate_limits import TooManyRequests
from tests import factories
from tests.accounts.test_sessions import away

NOW = 1_800_000_000.0


@pytest.fixture(autouse=True, params=["with Redis", "without Redis"])
def _limits_are_on(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.RATE_LIMIT_FACTOR = 1
    cache.clear()
    rate_limits._connect.cache_clear()
    if request.param == "without Redis":
        settings.CACHES = away(settings)


def take_until_refused(actions: dict[str, float], *, now: float = NOW, **keys: object) -> tuple[int, int]:
    """Return how often the units could be taken, and the seconds to wait for more."""
    for n in range(100_000):
        try:
            rate_limits.take(actions, now=now, **keys)
        except TooManyRequests as error:
            return n, error.seconds
    raise AssertionError("there is no limit")


def test_bucket_holds_its_amount_and_refills_evenly() -> None:
    assert take_until_refused({"login": 1}, address="a") == (30, 2)
    assert take_until_refused({"login": 1}, address="a", now=NOW + 10) == (5, 2)
    assert take_until_refused({"login": 1}, address="b") == (30, 2)


def test_refused_action_takes_nothing() -> None:
    """Attempts that the limit of the address refuses do not use up the limit of the account."""
    assert take_until_refused({"login_failed": 1}, address="a")[0] == 10
    with pytest.raises(TooManyRequests):
        rate_limits.take({"login_failed": 1}, now=NOW, address="a", account="anna")
    assert take_until_refused({"login_failed": 1}, account="anna")[0] == 5


def test_units_can_be_given_back() -> None:
    for _ in range(100):
        rate_limits.take({"login_failed": 1}, now=NOW, account="anna")
        rate_limits.take({"login_failed": -1}, now=NOW, account="anna")
    assert take_until_refused({"login_failed": 1}, account="anna")[0] == 5


def test_more_units_than_a_bucket_holds_are_not_refused_forever() -> None:
    rate_limits.take({"write_bytes": 1e12}, now=NOW, rater=1)
    with pytest.raises(TooManyRequests) as caught:
        rate_limits.take({"write_bytes": 1e6}, now=NOW, rater=1)
    assert caught.value.seconds <= rate_limits.DAY
    rate_limits.take({"write_bytes": 1e12}, now=NOW + rate_limits.DAY + 1, rater=1)


def test_factor_multiplies_limits_and_zero_turns_them_off(settings: Any) -> None:
    settings.RATE_LIMIT_FACTOR = 2
    assert take_until_refused({"login": 1}, address="a")[0] == 60
    settings.RATE_LIMIT_FACTOR = 0
    rate_limits.take({"login": 1}, now=NOW, address="a")


def refused_after(limit: int, ask: Any) -> Any:
    """Return the first refusal. A machine that is slow may allow a few more than the limit."""
    for n in range(2 * limit + 5):
        response = ask()
        if response.status_code == 429:
            assert n >= limit
            assert int(response.headers["Retry-After"]) >= 1
            return response
    raise AssertionError("nothing was refused")


@pytest.mark.fault
@pytest.mark.django_db
def test_pages_that_check_a_secret_are_limited(client: Client) -> None:
    for name, action in (("login_link", "link"), ("annotate:join", "join")):
        limit, url = rate_limits.LIMITS[action][0], reverse(name, args=["unknown"])
        refused_after(int(limit.amount), partial(client.post, url))
        assert client.get(url).status_code == 410  # reading is not limited
    client.force_login(factories.make_user())
    refused_after(5, lambda: client.post(reverse("account_change_password"), {"current": "guess"}))
    refused_after(10, lambda: client.post(reverse("tokens"), {}))


@pytest.mark.django_db
@pytest.mark.fault
def test_api_limits_tokens_and_addresses(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {name: tuple(each._replace(amount=3) for each in of) for name, of in rate_limits.LIMITS.items()}
    monkeypatch.setattr(rate_limits, "LIMITS", limits)
    user = factories.make_user()
    _, secret = tokens.create_api_token(user=user, name="n", scopes=["read"], lasts=None, now=factories.NOW)
    for name, header in (
        ("api:schema", {}),
        ("api:projects", {"Authorization": "Bearer wrong"}),
        ("api:projects", {"Authorization": f"Bearer {secret}"}),
    ):
        refusal = refused_after(3, partial(client.get, reverse(name), headers=header))
        assert refusal.headers["Content-Type"] == "application/problem+json"
        assert refusal.json()["status"] == 429
