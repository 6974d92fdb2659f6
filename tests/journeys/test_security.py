"""Passkeys in a real browser, with the virtual authenticator of its DevTools, and the pages around them."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import User
from events.models import Event
from tests import factories
from tests.journeys.conftest import Visit, accessibility_violations

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "seven green ladders"


@pytest.fixture
def ada() -> User:
    user = factories.make_user("ada")
    user.set_password(PASSWORD)
    user.save()
    return user


def add_virtual_authenticator(page: Page) -> tuple[Any, str]:
    """Plug in a device that stores passkeys and verifies its user, without asking anyone."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    added = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return devtools, str(added["authenticatorId"])


def test_passkey_is_created_and_logs_in_and_confirms(visit: Visit, ada: User, settings: Any) -> None:
    page = visit(ada)
    devtools, device = add_virtual_authenticator(page)
    page.goto(reverse("mfa_index"))
    page.locator(f"a[href='{reverse('mfa_add_webauthn')}']").click()
    page.locator("form[data-passkey=create] button").click()
    page.wait_for_url(f"**{reverse('mfa_view_recovery_codes')}")
    assert page.locator("[data-code]").count() == 10
    assert Authenticator.objects.filter(user=ada, type="webauthn").count() == 1
    stored = devtools.send("WebAuthn.getCredentials", {"authenticatorId": device})["credentials"]
    assert len(stored) == 1

    # as a second step after the password
    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    page.locator("input[name=login]").fill("ada")
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("form:has(input[name=password]) button[type=submit]").click()
    page.wait_for_url(f"**{reverse('mfa_authenticate')}")
    page.locator("form[data-passkey=get] button").click()
    page.wait_for_url(reverse("annotate:home"))

    # without the password
    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    page.locator("form[data-passkey=get] button").click()
    page.wait_for_url(reverse("annotate:home"))
    assert Event.objects.filter(what="account.logged_in").latest("pk").detail["method"] == "webauthn"

    # as a confirmation
    page.goto(f"{reverse('account_reauthenticate')}?next={reverse('tokens')}")
    page.locator("form[data-passkey=get] button").click()
    page.wait_for_url(lambda url: urlsplit(url).path == reverse("tokens"))
    assert Event.objects.get(what="account.confirmed").detail["method"] == "webauthn"


def test_passkey_of_another_account_is_refused(visit: Visit, ada: User) -> None:
    page = visit(ada)
    add_virtual_authenticator(page)
    page.goto(reverse("mfa_add_webauthn"))
    page.locator("form[data-passkey=create] button").click()
    page.wait_for_url(f"**{reverse('mfa_view_recovery_codes')}")
    Authenticator.objects.filter(user=ada).delete()
    page.context.clear_cookies()
    page.goto(reverse("account_login"))
    with page.expect_navigation(url=f"**{reverse('account_login')}"):
        page.locator("form[data-passkey=get] button").click()
    assert Event.objects.get(what="account.login_failed").detail["method"] == "webauthn"
    page.goto(reverse("annotate:home"))
    page.wait_for_url(f"**{reverse('account_login')}**")


def test_cancelled_passkey_leaves_a_message(visit: Visit, ada: User) -> None:
    page = visit(ada)
    page.goto(reverse("mfa_add_webauthn"))
    page.evaluate(
        "() => { navigator.credentials.create = () => Promise.reject(new DOMException('', 'NotAllowedError')); }"
    )
    page.locator("form[data-passkey=create] button").click()
    expect(page.locator("[data-passkey-error]")).to_be_visible()
    assert not Authenticator.objects.exists()


@pytest.mark.parametrize("width", [1440, 390])
def test_security_pages_are_accessible(width: int, visit: Visit, ada: User) -> None:
    page = visit(ada, width=width)
    names = ("mfa_index", "change_details", "mfa_activate_totp", "mfa_add_webauthn", "account_reauthenticate")
    found = {}
    for name in names:
        page.goto(reverse(name))
        found[name] = accessibility_violations(page)
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, name
    assert found == {name: [] for name in names}
