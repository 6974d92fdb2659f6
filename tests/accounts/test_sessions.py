"""Sessions with and without the cache, and their users."""

import datetime as dt
import math
import random
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts import users
from accounts.models import Session, User
from accounts.sessions import PreloadedUserBackend, SessionStore
from events.models import Event
from tests import factories

pytestmark = pytest.mark.django_db


def away(settings: Any) -> dict[str, Any]:
    """Cache settings with an unreachable server."""
    where = {"LOCATION": "redis://127.0.0.1:1/0", "OPTIONS": settings.REDIS_CACHE_OPTIONS}
    return {"default": {"BACKEND": "config.cache.FallbackRedisCache", **where}}


def test_session_costs_one_query_per_request(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client.force_login(factories.make_user())
    with django_assert_num_queries(1):  # loads the session and the user
        client.get(reverse("account_signup"))


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


def test_session_keys_are_random_with_more_than_128_bits() -> None:
    keys = []
    for _ in range(40):
        random.seed(1)  # a predictable generator would repeat its key
        store = SessionStore()
        store.create()
        keys.append(str(store.session_key))
    assert len(set(keys)) == 40
    assert min(map(len, keys)) * math.log2(len(set("".join(keys)))) > 128


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


HOME = reverse_lazy("annotate:home")
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture
def anna() -> User:
    user = factories.make_user("anna")
    user.set_password("seven green ladders")
    user.save()
    return user


def log_in(client: Client, address: str = "198.51.100.7") -> None:
    data = {"login": "anna", "password": "seven green ladders"}
    client.post(reverse("account_login"), data, REMOTE_ADDR=address, headers={"user-agent": FIREFOX})


def test_session_ends_when_idle(client: Client, settings: Any) -> None:
    settings.SESSION_IDLE = dt.timedelta(hours=2)
    client.force_login(factories.make_user())
    for idle, status in ((1.9, 200), (2.1, 302)):
        Session.objects.update(used_at=timezone.now() - dt.timedelta(hours=idle))
        assert client.get(HOME).status_code == status


def test_session_ends_after_its_longest_life_although_it_is_used(client: Client, settings: Any) -> None:
    settings.SESSION_COOKIE_AGE = 10 * 3600
    client.force_login(factories.make_user())
    for hours, status in ((9.9, 200), (10.1, 302)):
        Session.objects.update(authenticated_at=timezone.now() - dt.timedelta(hours=hours))
        assert client.get(HOME).status_code == status


def test_use_of_a_session_is_recorded_every_few_minutes(client: Client, anna: User) -> None:
    log_in(client)
    made = Session.objects.get(user=anna)
    assert (made.address, made.browser) == ("198.51.100.7", FIREFOX)
    client.get(HOME, REMOTE_ADDR="198.51.100.8")
    assert Session.objects.get(user=anna).address == "198.51.100.7"
    Session.objects.update(used_at=timezone.now() - dt.timedelta(minutes=6))
    client.get(HOME, REMOTE_ADDR="198.51.100.8", headers={"user-agent": "Other"})
    used = Session.objects.get(user=anna)
    assert (used.address, used.browser) == ("198.51.100.8", "Other")
    assert used.used_at > timezone.now() - dt.timedelta(minutes=1)
    assert used.authenticated_at == made.authenticated_at


def test_requests_of_the_work_page_keep_a_session_in_use(client: Client) -> None:
    client.force_login(factories.make_user())
    Session.objects.update(used_at=timezone.now() - dt.timedelta(hours=5))
    client.post(reverse("annotate:claim", args=["nowhere"]), {}, content_type="application/json")
    assert Session.objects.get().used_at > timezone.now() - dt.timedelta(minutes=1)


def test_list_shows_own_sessions_that_work(client: Client, anna: User) -> None:
    log_in(client)
    log_in(Client(), address="203.0.113.5")
    for spoiled in ({"used_at": timezone.now() - dt.timedelta(days=5)}, {"session_data": "unreadable"}):
        old = Client()
        log_in(old, address="203.0.113.90")
        Session.objects.filter(pk=old.cookies["sessionid"].value).update(**spoiled)
    Client().force_login(factories.make_user("bert"))
    rows = client.get(reverse("mfa_index")).context["sessions"]
    assert [(each.is_current, each.row.address) for each in rows] == [(True, "198.51.100.7"), (False, "203.0.113.5")]
    page = client.get(reverse("mfa_index")).content.decode()
    assert all(each.row.pk not in page for each in rows)  # a key would be a login


def test_one_session_or_all_others_are_ended(client: Client, anna: User) -> None:
    others = [Client(), Client(), Client()]
    for each in (client, *others):
        log_in(each)
    first = client.get(reverse("mfa_index")).context["sessions"][1].reference
    client.post(reverse("end_session", args=[first]))
    assert sorted(each.get(HOME).status_code for each in others) == [200, 200, 302]
    client.post(reverse("end_other_sessions"))
    assert {each.get(HOME).status_code for each in others} == {302}
    assert client.get(HOME).status_code == 200
    assert Event.objects.filter(what="account.sessions_ended", by=anna.pk).count() == 2


def test_session_of_another_user_is_not_ended(client: Client, anna: User) -> None:
    log_in(client)
    reference = client.get(reverse("mfa_index")).context["sessions"][0].reference
    other = Client()
    other.force_login(factories.make_user("bert"))
    other.post(reverse("end_session", args=[reference]))
    other.post(reverse("end_other_sessions"))
    assert client.get(HOME).status_code == 200


def test_new_password_deletes_the_sessions(client: Client, anna: User) -> None:
    log_in(client)
    users.set_password(user=anna, password="eight blue ladders", now=timezone.now(), is_reset=True)
    assert not Session.objects.filter(user=anna).exists()


def test_details_are_changed_and_names_of_others_refused(client: Client, anna: User) -> None:
    users.create_user(username="bert", email="bert@example.org", now=timezone.now())
    log_in(client)
    address = reverse("change_details")
    taken = client.post(address, {"name": "Anna Ek", "email": "Bert@example.org"})
    assert (taken.status_code, list(taken.context["form"].errors)) == (422, ["email"])
    assert client.post(address, {"name": "Anna Ek", "email": "anna@example.org"}).status_code == 302
    anna.refresh_from_db()
    assert (anna.name, anna.email) == ("Anna Ek", "anna@example.org")
    names = {"account.details_changed", "account.email_changed"}
    assert set(Event.objects.filter(what__in=names).values_list("what", flat=True)) == names
