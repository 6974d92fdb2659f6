"""Sessions with and without the cache."""

from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from accounts.sessions import SessionStore
from tests import factories

pytestmark = pytest.mark.django_db
AWAY = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1/0"}


def test_session_costs_one_query_a_request(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client.force_login(factories.make_user())
    with django_assert_num_queries(1):  # the person
        client.get(reverse("account_change_password"))


def test_session_outlives_the_cache(client: Client, settings: Any) -> None:
    client.force_login(factories.make_user())
    settings.CACHES = {"default": {**AWAY, "OPTIONS": settings.REDIS_CACHE_OPTIONS}}
    assert client.get(reverse("account_change_password")).status_code == 200


def test_session_begins_and_ends_without_the_cache(client: Client, settings: Any) -> None:
    settings.CACHES = {"default": {**AWAY, "OPTIONS": settings.REDIS_CACHE_OPTIONS}}
    client.force_login(factories.make_user())
    assert client.get(reverse("account_change_password")).status_code == 200
    client.post(reverse("account_logout"))
    assert client.get(reverse("account_change_password")).status_code == 302


def test_session_is_found_again_when_the_cache_forgot_it(client: Client) -> None:
    client.force_login(factories.make_user())
    cache.clear()
    assert client.get(reverse("account_change_password")).status_code == 200


def test_session_that_was_never_made_is_not_kept(client: Client) -> None:
    client.cookies["sessionid"] = "a" * 32
    assert client.get(reverse("account_change_password")).status_code == 302
    assert cache.get(f"session:{'a' * 32}") is None


def test_session_ended_at_the_server_is_over_for_every_copy(client: Client) -> None:
    client.force_login(factories.make_user())
    client.get(reverse("account_change_password"))
    Session.objects.get().delete()
    SessionStore(client.cookies["sessionid"].value).delete()
    assert client.get(reverse("account_change_password")).status_code == 302
