"""Login, its rate limits, logout and password changes."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from accounts.models import User

pytestmark = pytest.mark.django_db
PASSWORD = "seven green ladders"


@pytest.fixture(autouse=True)
def _nobody_has_tried_yet(settings: Any) -> Iterator[None]:
    settings.RATE_LIMIT_FACTOR = 1
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def anna() -> User:
    return User.objects.create_user("Anna", email="anna@example.org", password=PASSWORD)


def log_in(client: Client, name: str, password: str = PASSWORD, **headers: Any) -> Any:
    return client.post(reverse("account_login"), {"login": name, "password": password}, **headers)


def error_codes(response: Any) -> list[str]:
    """Return the codes of the errors that the login form shows above its fields."""
    return [error.code for error in response.context["form"].non_field_errors().as_data()]


@pytest.mark.parametrize("name", ["Anna", "anna", "anna@example.org", "Anna@Example.org"])
def test_login_accepts_username_or_email_in_any_case(name: str, client: Client, anna: User) -> None:
    response = log_in(client, name)
    assert (response.status_code, response["Location"]) == (302, reverse("annotate:home"))
    assert client.session["_auth_user_id"] == str(anna.pk)


def test_long_password_is_compared_as_it_was_typed(client: Client, anna: User) -> None:
    """64 characters of one kind, with spaces at both ends: none is required, cut off or changed."""
    password = " " + "xyzzy quux " * 5 + "plugh   "
    assert len(password) == 64
    client.force_login(anna)
    assert (
        client.post(reverse("account_change_password"), {"current": PASSWORD, "password": password}).status_code == 302
    )
    for typed, is_right in (
        (password.strip(), False),
        (password[:-1], False),
        (password.upper(), False),
        (password, True),
    ):
        fresh = Client()
        assert (log_in(fresh, "anna", typed).status_code == 302) == is_right


@pytest.mark.parametrize("name", ["Anna", "nobody"])
def test_login_does_not_reveal_whether_the_name_exists(name: str, client: Client, anna: User) -> None:
    response = log_in(client, name, "another guess")
    assert error_codes(response) == ["username_password_mismatch"]
    assert "_auth_user_id" not in client.session


def test_login_refuses_the_sixth_attempt_even_with_the_right_password(client: Client, anna: User) -> None:
    for n in range(5):
        log_in(client, "anna", f"guess {n}", REMOTE_ADDR=f"10.0.0.{n}")
    response = log_in(client, "anna", REMOTE_ADDR="10.0.0.99")
    assert error_codes(response) == ["too_many_login_attempts"]
    assert "_auth_user_id" not in client.session


def test_login_limits_an_address_that_tries_many_accounts(client: Client) -> None:
    for n in range(10):
        assert error_codes(log_in(client, f"person{n}", "guess")) == ["username_password_mismatch"]
    assert error_codes(log_in(client, "person11", "guess")) == ["too_many_login_attempts"]
    elsewhere = log_in(client, "person11", "guess", REMOTE_ADDR="10.9.9.9")
    assert error_codes(elsewhere) == ["username_password_mismatch"]


@pytest.mark.fault
def test_login_limits_requests_of_one_address(client: Client) -> None:
    statuses = [log_in(client, "", "").status_code for _ in range(45)]  # some are given back meanwhile
    assert (set(statuses[:30]), statuses[-1]) == ({200}, 429)


def test_login_ignores_forwarded_addresses_without_a_trusted_proxy(client: Client, anna: User, settings: Any) -> None:
    for n in range(11):
        response = log_in(client, f"person{n}", "guess", HTTP_X_FORWARDED_FOR=f"10.0.0.{n}")
    assert error_codes(response) == ["too_many_login_attempts"]
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    response = log_in(client, "person12", "guess", HTTP_X_FORWARDED_FOR="10.0.0.44")
    assert error_codes(response) == ["username_password_mismatch"]


def test_login_does_not_query_for_an_overlong_name(client: Client) -> None:
    """PostgreSQL refuses to compare with a text of this length, which would be a server error."""
    response = log_in(client, "x" * 100_000)
    assert [error.code for error in response.context["form"].errors.as_data()["login"]] == ["max_length"]


@pytest.mark.parametrize("name", ["account_login", "account_inactive"])
def test_login_pages_accept_a_malformed_redirect_target(name: str, client: Client) -> None:
    for odd in ("http://[", "//[::1", "http://\u2100.x"):
        assert client.get(reverse(name), {"next": odd}).status_code == 200


def test_login_redirects_only_within_the_platform(client: Client, anna: User) -> None:
    address = reverse("account_login")
    data = {"login": "anna", "password": PASSWORD}
    assert client.post(address, {**data, "next": "/join/x"})["Location"] == "/join/x"
    client.logout()
    assert client.post(address, {**data, "next": "https://example.org/"})["Location"] == reverse("annotate:home")


def test_sign_up_is_closed(client: Client) -> None:
    address = reverse("account_signup")
    assert client.post(address, {"username": "eve", "password1": PASSWORD}).status_code == 405
    assert not User.objects.exists()


def test_logout_ends_the_session_on_the_server(client: Client, anna: User) -> None:
    client.force_login(anna)
    session_key = client.cookies["sessionid"].value
    client.post(reverse("account_logout"))
    client.cookies["sessionid"] = session_key
    assert client.get(reverse("annotate:home")).status_code == 302


def test_change_password_ends_every_other_session(client: Client, anna: User) -> None:
    elsewhere = Client()
    for each in (client, elsewhere):
        each.force_login(anna)
    data = {"current": PASSWORD, "password": "eight blue ladders"}
    assert client.post(reverse("account_change_password"), data).status_code == 302
    assert client.get(reverse("annotate:home")).status_code == 200
    assert elsewhere.get(reverse("annotate:home")).status_code == 302


@pytest.mark.parametrize(("current", "password"), [("wrong", "eight blue ladders"), (PASSWORD, "anna"), (PASSWORD, "")])
def test_change_password_marks_the_invalid_field(current: str, password: str, client: Client, anna: User) -> None:
    client.force_login(anna)
    response = client.post(reverse("account_change_password"), {"current": current, "password": password})
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    anna.refresh_from_db()
    assert anna.check_password(PASSWORD)
