"""Sessions with and without the cache, and their users."""

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import Session, User
from accounts.sessions import PreloadedUserBackend, SessionStore
from tests import factories

pytestmark = pytest.mark.django_db


def away(settings: Any) -> dict[str, Any]:
    """Cache settings with an unreachable server."""
    where = {"LOCATION": "redis://127.0.0.1:1/0", "OPTIONS": settings.REDIS_CACHE_OPTIONS}
    return {"default": {"BACKEND": "config.cache.FallbackRedisCache", **where}}


def test_session_costs_one_query_per_request(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client.force_login(factories.make_user())
    with django_assert_num_queries(1):  # loads the session and the user
        client.get(reverse("account_change_password"))


def test_session_survives_a_broken_cache(client: Client, settings: Any) -> None:
    client.force_login(factories.make_user())
    settings.CACHES = away(settings)
    assert client.get(reverse("account_change_password")).status_code == 200


def test_session_starts_and_ends_without_the_cache(client: Client, settings: Any) -> None:
    settings.CACHES = away(settings)
    client.force_login(factories.make_user())
    assert client.get(reverse("account_change_password")).status_code == 200
    client.post(reverse("account_logout"))
    assert client.get(reverse("account_change_password")).status_code == 302


def test_session_key_chosen_by_the_client_is_replaced(client: Client) -> None:
    client.cookies["sessionid"] = "a" * 32
    assert client.get(reverse("account_change_password")).status_code == 302
    store = SessionStore("a" * 32)
    assert not store.load()
    assert store.session_key is None


def test_session_deleted_on_the_server_ends_immediately(client: Client) -> None:
    client.force_login(factories.make_user())
    client.get(reverse("account_change_password"))
    Session.objects.get().delete()
    assert client.get(reverse("account_change_password")).status_code == 302


def test_session_ends_when_the_user_becomes_inactive(client: Client) -> None:
    client.force_login(factories.make_user())
    User.objects.update(is_active=False)
    assert client.get(reverse("account_change_password")).status_code == 302


def test_session_ends_when_the_password_changes(client: Client) -> None:
    user = factories.make_user()
    client.force_login(user)
    user.set_password("seven green ladders")
    user.save()
    assert client.get(reverse("account_change_password")).status_code == 302


def test_session_row_refers_to_its_user(client: Client) -> None:
    user = factories.make_user()
    client.force_login(user)
    assert Session.objects.get().user == user
    client.post(reverse("account_logout"))
    assert not Session.objects.exclude(user=None).exists()


def test_session_expires(client: Client) -> None:
    client.force_login(factories.make_user())
    for ends_in, status in ((dt.timedelta(minutes=1), 200), (dt.timedelta(days=-1), 302)):
        Session.objects.update(expire_date=timezone.now() + ends_in)
        assert client.get(reverse("account_change_password")).status_code == status


def test_login_works_and_is_rate_limited_without_the_cache(client: Client, settings: Any) -> None:
    settings.CACHES, settings.RATE_LIMIT_FACTOR = away(settings), 1
    user = factories.make_user()
    user.set_password("seven green ladders")
    user.save()
    wrong, right = ({"login": user.username, "password": word} for word in ("six red ladders", "seven green ladders"))
    assert client.post(reverse("account_login"), right).status_code == 302
    client.post(reverse("account_logout"))
    responses = [client.post(reverse("account_login"), wrong) for _ in range(6)]
    codes = [[error.code for error in each.context["form"].non_field_errors().as_data()] for each in responses]
    assert codes == [["username_password_mismatch"]] * 5 + [["too_many_login_attempts"]]


def test_get_user_equals_the_row() -> None:
    made = factories.make_user("ada")
    User.objects.filter(pk=made.pk).update(email="ada@example.org", is_staff=True)
    with CaptureQueriesContext(connection) as queries:
        found = PreloadedUserBackend().get_user(str(made.pk))
    stored = User.objects.get(pk=made.pk)
    assert found is not None
    assert (found.is_staff, found.is_superuser, found.is_active) == (True, False, True)
    assert all(getattr(found, field.attname) == getattr(stored, field.attname) for field in User._meta.concrete_fields)
    assert len(queries) == 1


def test_get_user_ignores_inactive_and_missing_users() -> None:
    made = factories.make_user()
    User.objects.filter(pk=made.pk).update(is_active=False)
    assert PreloadedUserBackend().get_user(made.pk) is None
    assert PreloadedUserBackend().get_user(made.pk + 1) is None
