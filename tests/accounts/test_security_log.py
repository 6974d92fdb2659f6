"""What happens to accounts is logged with address and browser; the person and the operators can see it."""

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import security_log, tokens
from accounts.models import User
from events import audit_log, origins
from events.models import Event, EventOrigin
from tests import factories
from tests.api import api_clients

pytestmark = pytest.mark.django_db
PASSWORD = "seven green ladders"


@pytest.fixture(autouse=True)
def _nobody_has_tried_yet() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("Anna", email="anna@example.org", password=PASSWORD)


@pytest.fixture
def operator(client: Client) -> User:
    user = factories.make_user("operator", is_staff=True)
    client.force_login(user)
    return user


def log_in(name: str, password: str = PASSWORD, **headers: Any) -> Client:
    client = Client(headers={"user-agent": "Firefox"}, REMOTE_ADDR="203.0.113.9")
    client.post(reverse("account_login"), {"login": name, "password": password}, **headers)
    return client


def account_events() -> list[tuple[str, str, int | None]]:
    events = Event.objects.filter(what__startswith="account.").order_by("pk")
    return [(event.what.removeprefix("account."), event.subject, event.by) for event in events]


def test_login_and_logout_are_logged_with_address_and_browser(anna: User) -> None:
    client = log_in("anna@example.org")
    client.post(reverse("account_logout"))
    subject = f"user:{anna.pk}"
    assert account_events() == [("logged_in", subject, anna.pk), ("logged_out", subject, anna.pk)]
    event = Event.objects.get(what="account.logged_in")
    assert event.detail == {"method": "password"}
    assert (event.origin.address, event.origin.browser) == ("203.0.113.9", "Firefox")


def test_failed_logins_name_the_account_and_never_what_was_typed(anna: User) -> None:
    log_in("anna@EXAMPLE.org", "wrong")
    log_in("my secret typed into the wrong field", "wrong")
    assert account_events() == [("login_failed", f"user:{anna.pk}", None), ("login_failed", "", None)]
    assert "secret" not in str(list(Event.objects.values()))


def test_lockout_and_inactive_account_are_logged(anna: User, settings: Any) -> None:
    settings.RATE_LIMIT_FACTOR = 1
    for _ in range(6):
        log_in("anna", "wrong")
    assert [what for what, _subject, _by in account_events()] == ["login_failed"] * 5 + ["locked"]
    cache.clear()
    User.objects.update(is_active=False)
    log_in("anna")
    assert account_events()[-1] == ("login_refused", f"user:{anna.pk}", None)


def test_links_passwords_and_tokens_are_logged(anna: User, client: Client) -> None:
    link = tokens.create_login_link(user=anna, by=None, now=timezone.now())
    client.post(reverse("login_link", args=[link]))
    client.post(reverse("account_change_password"), {"current": "wrong", "password": "eight blue ladders"})
    client.post(reverse("account_change_password"), {"current": PASSWORD, "password": "eight blue ladders"})
    client.post(reverse("tokens"), {"name": "CI", "scopes": ["read"], "days": "30"})
    client.post(reverse("withdraw_token", args=[anna.api_tokens.get().pk]))
    link = tokens.create_password_link(user=anna, by=anna, now=timezone.now())
    client.post(reverse("new_password", args=[link]), {"password": "nine red ladders"})
    assert [what for what, _subject, _by in account_events()] == [
        *("link_made", "link_used", "logged_in", "password_check_failed", "password_changed"),
        *("token_made", "token_revoked", "link_made", "link_used", "password_reset", "logged_in"),
    ]
    assert Event.objects.get(what="account.token_made").detail["scopes"] == ["read"]


def test_use_of_a_token_is_logged_once_an_hour(anna: User) -> None:
    program = api_clients.make_client(anna)
    for _ in range(3):
        program.get(reverse("api:projects"))
    assert [what for what, _subject, _by in account_events()] == ["token_made", "token_used"]


def test_sign_ins_show_only_ones_own(anna: User) -> None:
    log_in("anna", "wrong")
    log_in(factories.make_user("bert", password=PASSWORD).username)
    page = log_in("anna").get(reverse("sign_ins"))
    assert [event.what for event, _label in page.context["rows"]] == ["account.logged_in", "account.login_failed"]
    assert page.content.decode().count("203.0.113.9") == 2


def test_operator_filters_the_log(anna: User, operator: User, client: Client) -> None:
    log_in("anna", "wrong")
    log_in("anna")
    audit_log.log_event(what="gold.made", by=anna, now=factories.NOW)
    audit_log.log_download(file="pay.csv", by=operator, now=factories.NOW, project=3, has_names=True)

    def shown(**query: str) -> list[str]:
        page = client.get(reverse("dashboard:security_log"), query)
        return [event.what for event, *_words in page.context["events"]]

    assert shown() == ["download.made", "account.logged_in", "account.login_failed"]
    assert shown(person="anna@example.org") == ["account.logged_in", "account.login_failed"]
    assert shown(person="nobody") == []
    assert shown(area="download") == ["download.made"]
    assert len(shown(since="x")) == 3


def test_operator_downloads_csv_and_json_lines(anna: User, operator: User, client: Client) -> None:
    log_in("anna")
    first = Event.objects.get()
    for moment in (dt.timedelta(minutes=1), dt.timedelta()):
        audit_log.log_download(file="x.csv", by=anna, now=timezone.now() - moment)
    csv = client.get(reverse("dashboard:download_security_log"), {"area": "account"}).getvalue().decode()
    assert "203.0.113.9,Firefox" in csv.splitlines()[1]
    query = {"format": "jsonl", "after": str(first.pk)}
    lines = client.get(reverse("dashboard:download_security_log"), query).getvalue().decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [first.pk + 1]  # the later ones are too young
    assert Event.objects.filter(what="download.made", detail__file="security-log.jsonl").count() == 1


def test_program_of_an_operator_streams_the_log(anna: User, operator: User) -> None:
    audit_log.log_download(file="x.csv", by=anna, now=factories.NOW)
    address = reverse("api:security_events")
    program = api_clients.make_client(operator)
    (line,) = program.get(address).getvalue().decode().splitlines()
    assert json.loads(line)["detail"] == {"file": "x.csv", "has_names": False}
    assert program.get(address, {"after": json.loads(line)["id"]}).getvalue() == b""
    assert program.get(address, {"after": "x"}).status_code == 422
    assert api_clients.make_client(anna).get(address).status_code == 403
    assert api_clients.make_client(operator, "read").get(address).status_code == 403


def test_only_operators_can_choose_the_scope_of_the_log(anna: User, operator: User, client: Client) -> None:
    data = {"name": "SIEM", "scopes": ["audit"], "days": "30"}
    assert client.post(reverse("tokens"), data).status_code == 201
    client.force_login(anna)
    assert client.post(reverse("tokens"), data).status_code == 422


def test_origins_are_deleted_after_their_time_and_on_erasure(anna: User) -> None:
    now = timezone.now()
    for days, by in ((200, anna), (1, anna), (1, factories.make_user())):
        with origins.request_origin(address="203.0.113.9", browser="x" * 1000):
            audit_log.log_event(what="member.left", by=by, now=now - dt.timedelta(days=days))
    assert origins.delete_old_origins(now=now, days=180) == 1
    origins.erase_origins(user_id=anna.pk, now=now)
    assert EventOrigin.objects.count() == 1
    assert security_log.list_security_events().filter(what="member.left").count() == 3
