"""Second factors: adding, using, losing and requiring them, as a browser does it without scripts."""

import datetime as dt
import time
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth as totp
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import factors, tasks, tokens
from accounts.models import Session, User
from events.models import Event, EventOrigin
from events.revocations import read_revocations
from people import members
from people.models import Role
from tests import factories
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
PASSWORD = "seven green ladders"


@pytest.fixture(autouse=True)
def _limits_are_on(settings: Any) -> Iterator[None]:
    settings.RATE_LIMIT_FACTOR = 1
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def anna() -> User:
    user = factories.make_user("anna")
    user.set_password(PASSWORD)
    user.save()
    return user


def current_code(secret: str, *, age: int = 0) -> str:
    """Return the code of now, or of so many half minutes ago."""
    return str(totp.format_hotp_value(totp.hotp_value(secret, int(time.time()) // 30 - age)))


def give_app(user: User) -> str:
    secret: str = totp.generate_totp_secret()
    totp.TOTP.activate(user, secret)
    cache.clear()  # the code of this half minute may be used again
    return secret


def log_in(client: Client) -> Any:
    return client.post(reverse("account_login"), {"login": "anna", "password": PASSWORD})


def events_of(user: User) -> list[str]:
    events = Event.objects.filter(subject=f"user:{user.pk}").order_by("pk")
    return [each.removeprefix("account.") for each in events.values_list("what", flat=True)]


@pytest.mark.usefixtures("real_connections")
def test_app_is_added_with_its_code_and_brings_recovery_codes(client: Client, anna: User) -> None:
    client.force_login(anna)
    page = client.get(reverse("mfa_activate_totp"))
    secret = page.context["form"].secret
    assert page.context["totp_svg_data_uri"].startswith("data:image/svg+xml;base64,")
    wrong = client.post(reverse("mfa_activate_totp"), {"code": "000000"})
    assert wrong.context["form"].errors.as_data()["code"]
    added = client.post(reverse("mfa_activate_totp"), {"code": current_code(secret)})
    assert added["Location"] == reverse("mfa_view_recovery_codes")
    assert factors.has_second_factor(anna)
    assert len(client.get(added["Location"]).context["unused_codes"]) == 10
    assert "factor_added" in events_of(anna)


def test_secret_of_an_app_is_encrypted_in_the_database(anna: User, settings: Any) -> None:
    secret = give_app(anna)
    row = Authenticator.objects.get(type="totp")
    assert secret not in str(row.data)
    assert row.wrap().validate_code(current_code(secret))
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [settings.SECRET_KEY]
    cache.clear()
    assert row.wrap().validate_code(current_code(secret))
    settings.SECRET_KEY_FALLBACKS = []
    cache.clear()
    assert not row.wrap().validate_code(current_code(secret))


def test_password_alone_does_not_log_in(client: Client, anna: User) -> None:
    secret = give_app(anna)
    assert log_in(client)["Location"] == reverse("mfa_authenticate")
    assert client.get(reverse("annotate:home")).status_code == 302
    assert client.post(reverse("mfa_authenticate"), {"code": "000000"}).status_code == 200
    assert client.get(reverse("annotate:home")).status_code == 302
    done = client.post(reverse("mfa_authenticate"), {"code": current_code(secret)})
    assert done["Location"] == reverse("annotate:home")
    assert client.get(reverse("annotate:home")).status_code == 200
    assert events_of(anna)[-2:] == ["factor_failed", "logged_in"]
    assert Event.objects.get(what="account.logged_in").detail["method"] == "totp"
    assert EventOrigin.objects.filter(event__what="account.factor_failed", address="127.0.0.1").exists()


def test_code_works_once(client: Client, anna: User) -> None:
    code = current_code(give_app(anna))
    log_in(client)
    client.post(reverse("mfa_authenticate"), {"code": code})
    elsewhere = Client()
    log_in(elsewhere)
    elsewhere.post(reverse("mfa_authenticate"), {"code": code})
    assert elsewhere.get(reverse("annotate:home")).status_code == 302


def test_code_expires(client: Client, anna: User) -> None:
    secret = give_app(anna)
    log_in(client)
    for age, is_right in ((3, False), (-3, False), (0, True)):
        response = client.post(reverse("mfa_authenticate"), {"code": current_code(secret, age=age)})
        assert (response.status_code == 302) == is_right


def test_wrong_codes_are_limited_per_account(client: Client, anna: User) -> None:
    secret = give_app(anna)
    log_in(client)
    for number in range(5):
        client.post(reverse("mfa_authenticate"), {"code": f"00000{number}"})
    refused = client.post(reverse("mfa_authenticate"), {"code": current_code(secret)})
    assert [error.code for error in refused.context["form"].errors.as_data()["code"]] == ["rate"]
    assert client.get(reverse("annotate:home")).status_code == 302


def test_recovery_code_logs_in_once_and_is_logged(client: Client, anna: User) -> None:
    give_app(anna)
    code = RecoveryCodes.activate(anna).get_unused_codes()[0]
    for expected in (200, 302):
        browser = Client()
        log_in(browser)
        browser.post(reverse("mfa_authenticate"), {"code": code})
        assert browser.get(reverse("annotate:home")).status_code == expected
    assert events_of(anna).count("recovery_code_used") == 1


def test_login_link_asks_for_the_second_factor(client: Client, anna: User) -> None:
    give_app(anna)
    token = tokens.create_login_link(user=anna, by=None, now=timezone.now())
    assert client.post(reverse("login_link", args=[token]))["Location"] == reverse("mfa_authenticate")


def test_removed_app_is_noted_for_restored_backups(client: Client, anna: User) -> None:
    give_app(anna)
    client.force_login(anna)
    with_commit = client.post(reverse("mfa_deactivate_totp"))
    assert with_commit.status_code == 302
    assert not factors.has_second_factor(anna)
    assert "factor_removed" in events_of(anna)


ODD_CREDENTIALS = (
    "",
    "x",
    "[]",
    "{}",
    "7",
    '"text"',
    '{"id": 1}',
    '{"response": []}',
    '{"id": "eA", "rawId": "eA", "type": "public-key", "response": {"userHandle": 5}}',
    '{"id": "eA", "rawId": "eA", "type": "public-key", "response": {"userHandle": "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"}}',
    '{"id": "eA", "rawId": "eA", "type": "public-key", "response": {"clientDataJSON": "e30",'
    ' "authenticatorData": "AAAA", "signature": "AA", "userHandle": "MQ"}}',
    '{"id": "eA", "rawId": "eA", "type": "public-key", "response": {"clientDataJSON": "e30",'
    ' "attestationObject": "AA"}}',
)


@pytest.mark.parametrize("credential", ODD_CREDENTIALS)
def test_odd_passkeys_are_refused(credential: str, client: Client, anna: User) -> None:
    client.get(reverse("mfa_login_webauthn"), headers={"Accept": "application/json"})
    assert client.post(reverse("mfa_login_webauthn"), {"credential": credential}).status_code == 302
    assert client.get(reverse("annotate:home")).status_code == 302
    if credential not in {"", "x", "[]", "{}"}:  # these are no answer of a passkey at all
        assert Event.objects.filter(what="account.login_failed").exists()
    client.force_login(anna)
    client.get(reverse("mfa_add_webauthn"))
    assert client.post(reverse("mfa_add_webauthn"), {"credential": credential, "name": "Key"}).status_code == 200
    assert not Authenticator.objects.exists()


# --- required by role ----------------------------------------------------------------------------------------------


@pytest.mark.fault
def test_role_that_needs_a_factor_leads_to_enrollment_only(personas: LoggedInPersonas, settings: Any) -> None:
    settings.SECOND_FACTOR_ROLES = ["lead"]
    enroll = f"{reverse('mfa_index')}?required=yes"
    lead, annotator = personas.client("lead"), personas.client("annotator")
    for name in ("annotate:home", "tokens", "sign_ins", "account_change_password", "annotate:your_data"):
        assert lead.get(reverse(name))["Location"] == enroll
        assert annotator.get(reverse(name)).status_code == 200
    slug = {"slug": personas.cast.project.slug}
    assert lead.get(reverse("dashboard:members", kwargs=slug))["Location"] == enroll
    assert lead.post(reverse("annotate:claim", kwargs=slug), {}, content_type="application/json").status_code == 403
    page = lead.get(enroll)
    assert b"data-must-enroll" in page.content
    assert lead.get(reverse("mfa_activate_totp")).status_code == 200
    give_app(personas.cast.lead)
    assert lead.get(reverse("dashboard:members", kwargs=slug)).status_code == 200


def test_operators_may_need_a_factor(client: Client, anna: User, settings: Any) -> None:
    settings.SECOND_FACTOR_ROLES = ["operator"]
    client.force_login(anna)
    assert client.get(reverse("annotate:home")).status_code == 200
    User.objects.filter(pk=anna.pk).update(is_staff=True)
    assert client.get(reverse("annotate:home")).status_code == 302


def test_crowd_workers_need_no_factor_and_have_no_pages(personas: LoggedInPersonas, settings: Any) -> None:
    settings.SECOND_FACTOR_ROLES = ["annotator"]
    User.objects.filter(pk=personas.cast.annotator.pk).update(is_worker=True)
    client = personas.client("annotator")
    assert client.get(reverse("annotate:home")).status_code == 200
    names = (
        "mfa_index",
        "mfa_activate_totp",
        "mfa_deactivate_totp",
        "mfa_view_recovery_codes",
        "mfa_download_recovery_codes",
        "mfa_generate_recovery_codes",
        "mfa_add_webauthn",
        "account_reauthenticate",
        "change_details",
        "tokens",
        "account_change_password",
    )
    assert {name: client.get(reverse(name)).status_code for name in names} == dict.fromkeys(names, 404)
    posts = ("end_other_sessions", "sso_connect", "sso_disconnect", "sso_confirm")
    assert {name: client.post(reverse(name)).status_code for name in posts} == dict.fromkeys(posts, 404)


# --- lost ----------------------------------------------------------------------------------------------------------


def test_owner_resets_the_factors_of_a_member(personas: LoggedInPersonas, mailoutbox: Any, settings: Any) -> None:
    cast = personas.cast
    give_app(cast.lead)
    assert Session.objects.filter(user=cast.lead).exists()
    address = reverse(
        "dashboard:reset_factors", kwargs={"slug": cast.project.slug, "member": cast.membership(cast.lead).pk}
    )
    assert personas.client("lead").post(address).status_code == 403
    assert personas.client("owner").post(address).status_code == 302
    assert not Authenticator.objects.filter(user=cast.lead).exists()
    assert not Session.objects.filter(user=cast.lead).exists()
    event = Event.objects.get(what="account.factors_reset")
    assert (event.by, event.subject) == (cast.owner.pk, f"user:{cast.lead.pk}")


def test_owner_cannot_reset_the_factors_of_someone_with_another_project(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    elsewhere = members.create_owned_project(name="Far", slug="far", by=cast.stranger, now=factories.NOW)
    members.add_member(project=elsewhere, user=cast.reviewer, role=Role.REVIEWER, now=factories.NOW)
    give_app(cast.reviewer)
    kwargs = {"slug": cast.project.slug, "member": cast.membership(cast.reviewer).pk}
    assert personas.client("owner").post(reverse("dashboard:reset_factors", kwargs=kwargs)).status_code == 403
    assert factors.has_second_factor(cast.reviewer)


@pytest.mark.usefixtures("real_connections")
def test_reset_is_noted_and_mailed_to_the_person(anna: User, settings: Any, tmp_path: Any, mailoutbox: Any) -> None:
    settings.REVOCATIONS_FILE = tmp_path / "revocations.jsonl"
    give_app(anna)
    call_command("reset_factors", "anna")
    [line] = read_revocations(what="factors")
    assert line["remaining"] == []
    tasks.mail_account_change(anna.pk, "factors_reset", "anna@example.org")
    assert mailoutbox[0].to == ["anna@example.org"]
    assert dt.datetime.fromisoformat(line["at"])
