"""Views that need a recent confirmation, and how users give it."""

import datetime as dt
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.core.cache import cache
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from accounts.models import ApiToken, Session, User
from events.models import Event, EventOrigin
from people.models import Role
from tests import factories
from tests.accounts.test_factors import current_code
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
PASSWORD = "seven green ladders"
CONFIRM = reverse("account_reauthenticate")
GUARDED = {
    "annotate:download_your_data",
    "change_details",
    "dashboard:change_member_role",
    "dashboard:create_invitation",
    "dashboard:create_reset_link",
    "dashboard:create_webhook",
    "dashboard:deliver_snapshot",
    "dashboard:download_audit",
    "dashboard:download_bad_lines",
    "dashboard:download_security_log",
    "dashboard:download_snapshot_file",
    "dashboard:erase_member",
    "dashboard:hard_negatives",
    "dashboard:remove_member",
    "dashboard:reset_factors",
    "dashboard:restore_member",
    "mfa_activate_totp",
    "mfa_add_webauthn",
    "mfa_deactivate_totp",
    "mfa_download_recovery_codes",
    "mfa_generate_recovery_codes",
    "mfa_remove_webauthn",
    "mfa_view_recovery_codes",
    "sso_connect",
    "sso_disconnect",
    "tokens",
}


def guarded(patterns: list[URLPattern | URLResolver], namespace: str = "") -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from guarded(pattern.url_patterns, inner)
        elif getattr(pattern.callback, "needs_confirmation", False):
            yield f"{namespace}{pattern.name}"


def test_list_of_guarded_views_is_complete() -> None:
    assert set(guarded(get_resolver().url_patterns)) == GUARDED


@pytest.fixture
def stale(personas: LoggedInPersonas) -> LoggedInPersonas:
    """The users, with passwords and with logins of two hours ago."""
    for person in ("owner", "lead", "engineer"):
        user = getattr(personas.cast, person)
        user.set_password(PASSWORD)
        user.save()
        client = Client()
        client.force_login(user)
        personas.sessions[person] = client.cookies["sessionid"].value
    Session.objects.update(authenticated_at=timezone.now() - dt.timedelta(hours=2))
    cache.clear()
    return personas


def asks(response: Any) -> bool:
    return bool(response.status_code == 302) and urlsplit(response["Location"]).path == CONFIRM


def role_address(personas: LoggedInPersonas) -> str:
    cast = personas.cast
    member = cast.membership(cast.annotator).pk
    return reverse("dashboard:change_member_role", kwargs={"slug": cast.project.slug, "member": member})


def test_guarded_views_ask_after_an_old_login(stale: LoggedInPersonas) -> None:
    cast, owner = stale.cast, stale.client("owner")
    slug, member = cast.project.slug, cast.membership(cast.annotator).pk
    of_member = {"slug": slug, "member": member}
    posts: dict[str, Any] = {
        "tokens": {},
        "change_details": {},
        "sso_connect": {},
        "sso_disconnect": {},
        "dashboard:create_invitation": {"slug": slug},
        "dashboard:create_webhook": {"slug": slug},
        "dashboard:deliver_snapshot": {"slug": slug, "name": "any"},
        **dict.fromkeys(
            [f"dashboard:{name}" for name in ("change_member_role", "create_reset_link", "erase_member")], of_member
        ),
        **dict.fromkeys(
            [f"dashboard:{name}" for name in ("remove_member", "reset_factors", "restore_member")], of_member
        ),
    }
    gets: dict[str, Any] = {
        "annotate:download_your_data": {},
        "dashboard:download_audit": {"slug": slug},
        "dashboard:download_bad_lines": {"slug": slug, "job": 1},
        "dashboard:download_security_log": {},
        "dashboard:hard_negatives": {"slug": slug},
        "dashboard:download_snapshot_file": {"slug": slug, "name": "any", "file": "train.jsonl"},
        "mfa_remove_webauthn": {"pk": 1},
        **{name: {} for name in GUARDED if name.startswith("mfa_") and name != "mfa_remove_webauthn"},
    }
    assert set(posts) | set(gets) == GUARDED
    assert [name for name, kwargs in posts.items() if not asks(owner.post(reverse(name, kwargs=kwargs)))] == []
    assert [name for name, kwargs in gets.items() if not asks(owner.get(reverse(name, kwargs=kwargs)))] == []
    cast.annotator.refresh_from_db()
    assert not ApiToken.objects.exists()
    assert cast.membership(cast.annotator).role == Role.ANNOTATOR


@pytest.mark.parametrize("page", ["annotators", "pay"])
def test_table_is_downloaded_after_a_confirmation(page: str, stale: LoggedInPersonas) -> None:
    address = reverse(f"dashboard:{page}", kwargs={"slug": stale.cast.project.slug})
    client = stale.client("owner")
    assert client.get(address).status_code == 200
    assert asks(client.get(address, {"csv": page}))
    assert not Event.objects.filter(what="download.made").exists()
    client.post(CONFIRM, {"password": PASSWORD})
    assert client.get(address, {"csv": page})["Content-Type"].startswith("text/csv")


def test_selected_traces_are_downloaded_after_a_confirmation(stale: LoggedInPersonas) -> None:
    trace = factories.make_trace(stale.cast.project)
    address = reverse("dashboard:change_traces", kwargs={"slug": stale.cast.project.slug})
    client = stale.client("owner")
    assert asks(client.post(address, {"action": "export", "trace": trace.pk}))
    file = client.post(CONFIRM, {"password": PASSWORD, "next": address})
    assert file["Content-Type"].startswith("text/csv")


def test_change_is_made_after_the_confirmation(stale: LoggedInPersonas) -> None:
    client, cast = stale.client("owner"), stale.cast
    asked = client.post(role_address(stale), {"role": "reviewer"})
    target = parse_qs(urlsplit(asked["Location"]).query)["next"][0]
    assert target == role_address(stale)
    wrong = client.post(CONFIRM, {"password": "six red ladders", "next": target})
    assert wrong.status_code == 422
    assert cast.membership(cast.annotator).role == Role.ANNOTATOR
    before = client.cookies["sessionid"].value
    done = client.post(CONFIRM, {"password": PASSWORD, "next": target})
    assert done.status_code == 302
    assert cast.membership(cast.annotator).role == Role.REVIEWER
    assert client.cookies["sessionid"].value != before
    assert not Session.objects.filter(pk=before).exists()
    names = ["account.confirmation_failed", "account.confirmed"]
    events = Event.objects.filter(what__in=names, by=cast.owner.pk).order_by("pk")
    assert list(events.values_list("what", flat=True)) == names
    assert EventOrigin.objects.filter(event__in=events, address="127.0.0.1").count() == 2
    assert not asks(client.post(role_address(stale), {"role": "annotator"}))


def test_token_is_made_and_shown_after_the_confirmation(stale: LoggedInPersonas) -> None:
    client = stale.client("engineer")
    client.post(reverse("tokens"), {"name": "CI", "scopes": ["read"], "days": "30"})
    assert not ApiToken.objects.exists()
    made = client.post(CONFIRM, {"password": PASSWORD, "next": reverse("tokens")})
    assert made.status_code == 201
    assert ApiToken.objects.get().user == stale.cast.engineer


def test_waiting_request_is_made_once_and_only_for_its_page(stale: LoggedInPersonas) -> None:
    client = stale.client("engineer")
    client.post(reverse("tokens"), {"name": "CI", "scopes": ["read"], "days": "30"})
    other = client.post(CONFIRM, {"password": PASSWORD, "next": reverse("annotate:home")})
    assert other["Location"] == reverse("annotate:home")
    again = client.post(CONFIRM, {"password": PASSWORD, "next": reverse("tokens")})
    assert again.status_code == 302
    assert not ApiToken.objects.exists()


def test_permissions_are_checked_again_after_the_confirmation(stale: LoggedInPersonas) -> None:
    client, cast = stale.client("engineer"), stale.cast
    client.post(role_address(stale), {"role": "lead"})
    refused = client.post(CONFIRM, {"password": PASSWORD, "next": role_address(stale)})
    assert refused.status_code == 403
    assert cast.membership(cast.annotator).role == Role.ANNOTATOR


def test_code_of_the_app_confirms(stale: LoggedInPersonas) -> None:
    secret = generate_totp_secret()
    TOTP.activate(stale.cast.lead, secret)
    client = stale.client("lead")
    target = reverse("mfa_view_recovery_codes")
    assert client.post(CONFIRM, {"code": "000000", "next": target}).status_code == 422
    assert client.post(CONFIRM, {"code": current_code(secret), "next": target})["Location"] == target
    assert Event.objects.get(what="account.confirmed").detail["method"] == "totp"


def test_download_leads_back_to_its_page(stale: LoggedInPersonas) -> None:
    page = reverse("annotate:your_data")
    address = reverse("annotate:download_your_data")
    for referer, back in ((f"http://testserver{page}", page), ("https://evil.example/x", "/"), ("", "/")):
        asked = stale.client("owner").get(address, headers={"referer": referer})
        assert parse_qs(urlsplit(asked["Location"]).query)["next"] == [back]


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"])
def test_confirmation_leads_only_to_this_platform(target: str, stale: LoggedInPersonas) -> None:
    assert stale.client("owner").post(CONFIRM, {"password": PASSWORD, "next": target})["Location"] == "/"


def test_scripts_of_a_page_are_sent_to_the_confirmation(stale: LoggedInPersonas) -> None:
    asked = stale.client("owner").post(role_address(stale), {"role": "reviewer"}, headers={"HX-Request": "true"})
    assert asked.status_code == 204
    assert urlsplit(asked["HX-Redirect"]).path == CONFIRM


def test_guesses_of_the_password_are_limited(stale: LoggedInPersonas, settings: Any) -> None:
    settings.RATE_LIMIT_FACTOR = 1
    client = stale.client("owner")
    statuses = [client.post(CONFIRM, {"password": "six red ladders"}).status_code for _ in range(15)]
    assert (statuses[0], statuses[-1]) == (422, 429)
    cache.clear()


def test_user_without_a_password_needs_a_new_login_for_credentials_only(stale: LoggedInPersonas) -> None:
    User.objects.filter(pk=stale.cast.reviewer.pk).update(password="!")
    client = Client()
    client.force_login(User.objects.get(pk=stale.cast.reviewer.pk))
    Session.objects.update(authenticated_at=timezone.now() - dt.timedelta(hours=2))
    assert client.get(reverse("annotate:download_your_data")).status_code == 200
    for name in ("mfa_activate_totp", "mfa_add_webauthn", "account_change_password"):
        assert asks(client.get(reverse(name)))
    assert asks(client.post(reverse("tokens")))
    assert asks(client.post(reverse("annotate:erase_account")))
    assert b"data-no-means" in client.get(CONFIRM).content
    Session.objects.update(authenticated_at=timezone.now())
    assert client.get(reverse("account_change_password")).status_code == 200
    set_password = client.post(reverse("account_change_password"), {"password": "eight blue ladders"})
    assert set_password.status_code == 302
    assert User.objects.get(pk=stale.cast.reviewer.pk).check_password("eight blue ladders")
