"""Security headers of responses, and languages."""

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse
from django.views.defaults import server_error

from tests import factories


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/accounts/login/", "/", "/nothing-here/"])
def test_every_page_carries_the_policy(address: str, client: Client) -> None:
    client.force_login(factories.make_user())
    response = client.get(address)
    policy = dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";") if " " in part)
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"


def test_error_page_needs_no_database() -> None:
    response = server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    assert 'data-error="server-error"' in response.content.decode()


@pytest.mark.django_db
def test_pages_follow_the_language_that_is_asked_for(client: Client) -> None:
    response = client.get(reverse("account_login"), headers={"Accept-Language": "en-GB,de;q=0.5"})
    assert '<html lang="en"' in response.content.decode()
    assert response["Content-Language"] == "en"
