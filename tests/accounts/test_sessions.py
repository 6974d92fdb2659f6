"""Sessions with and without the cache."""

from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from accounts.sessions import SessionStore
from tests import factories

pytestmark = pytest.mark.django_db


def away(settings: Any) -> dict[str, Any]:
    """The caches of the settings, at an address where nobody answers."""
    where = {"LOCATION": "redis://127.0.0.1:1/0", "OPTIONS": settings.REDIS_CACHE_OPTIONS}
    plain = {"BACKEND": "django.core.cache.backends.redis.RedisCache", **where}
    return {"default": {"BACKEND": "config.cache.Cache", **where}, "sessions": plain}


def test_session_costs_one_query_a_request(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client.force_login(factories.make_user())
    with django_assert_num_queries(1):  # the person
        client.get(reverse("account_change_password"))


def test_session_outlives_the_cache(client: Client, settings: Any) -> None:
    client.force_login(factories.make_user())
    settings.CACHES = away(settings)
    assert client.get(reverse("account_change_password")).status_code == 200


def test_session_begins_and_ends_without_the_cache(client: Client, settings: Any) -> None:
    settings.CACHES = away(settings)
    client.force_login(factories.make_user())
    assert client.get(reverse("account_change_password")).status_code == 200
    client.post(reverse("account_logout"))
    assert client.get(reverse("account_change_password")).status_code == 302


def test_session_is_found_again_when_the_cache_forgot_it(client: Client) -> None:
    client.force_login(factories.make_user())
    caches["sessions"].clear()
    assert client.get(reverse("account_change_password")).status_code == 200


def test_session_that_was_never_made_is_not_kept(client: Client) -> None:
    client.cookies["sessionid"] = "a" * 32
    assert client.get(reverse("account_change_password")).status_code == 302
    assert caches["sessions"].get(f"session:{'a' * 32}") is None


def test_session_ended_at_the_server_is_over_for_every_copy(client: Client) -> None:
    client.force_login(factories.make_user())
    client.get(reverse("account_change_password"))
    Session.objects.get().delete()
    SessionStore(client.cookies["sessionid"].value).delete()
    assert client.get(reverse("account_change_password")).status_code == 302


def test_password_lets_in_and_guessing_is_limited_without_the_cache(client: Client, settings: Any) -> None:
    settings.CACHES = away(settings)
    user = factories.make_user()
    user.set_password("seven green ladders")
    user.save()
    wrong, right = ({"login": user.username, "password": word} for word in ("six red ladders", "seven green ladders"))
    assert client.post(reverse("account_login"), right).status_code == 302
    client.post(reverse("account_logout"))
    answers = [client.post(reverse("account_login"), wrong) for _ in range(6)]
    assert "Too many tries" not in answers[0].content.decode()
    assert "Too many tries" in answers[-1].content.decode()
