"""What every answer tells the browser, and what the production settings are checked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse
from django.views.defaults import server_error

from tests import factories

ROOT = Path(__file__).resolve().parents[2]
# As docs/operations.md has it for a platform behind a proxy that ends TLS.
PRODUCTION = {
    "DATABASE_URL": "postgresql://stepmark:secret@127.0.0.1:1/stepmark",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "SECRET_KEY": "a-key-for-this-test-alone-that-is-long-and-varied-0123456789",
    "STEPMARK_ORIGIN": "https://stepmark.example.org",
    "STEPMARK_HOSTS": "stepmark.example.org",
    "STEPMARK_PROXIES": "1",
}


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def shown(expression: str, **environment: str) -> str:
    code = f"from django.conf import settings; print({expression})"
    return manage("shell", "--no-imports", "-c", code, **environment).stdout.strip()


def test_deploy_check_would_warn_of_an_origin_without_tls() -> None:
    """`tests.commands.test_containers` has the documented environment, of which nothing is to be warned."""
    checked = manage("check", "--deploy", "--fail-level", "WARNING", **{**PRODUCTION, "STEPMARK_ORIGIN": "http://a.b"})
    assert checked.returncode != 0
    assert "security.W011" in checked.stderr  # the session cookie would travel in the open


def test_proxies_are_believed_only_when_there_are_some() -> None:
    asked = "settings.SECURE_PROXY_SSL_HEADER, settings.ALLAUTH_TRUSTED_PROXY_COUNT"
    assert shown(asked, **PRODUCTION) == "('HTTP_X_FORWARDED_PROTO', 'https') 1"
    assert shown(asked, **{**PRODUCTION, "STEPMARK_PROXIES": "0"}) == "None 0"


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/accounts/login/", "/", "/nothing-here/"])
def test_every_page_carries_the_policy(address: str, client: Client) -> None:
    client.force_login(factories.make_user())
    response = client.get(address)
    told = dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";") if " " in part)
    assert told["default-src"] == "'none'"
    assert told["script-src"] == told["style-src"] == told["connect-src"] == told["form-action"] == "'self'"
    assert told["frame-ancestors"] == told["base-uri"] == "'none'"
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"


def test_broken_page_is_told_without_the_database() -> None:
    response = server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    assert "Something broke" in response.content.decode()


@pytest.mark.django_db
def test_pages_follow_the_language_that_is_asked_for(client: Client) -> None:
    response = client.get(reverse("account_login"), headers={"Accept-Language": "en-GB,de;q=0.5"})
    assert '<html lang="en"' in response.content.decode()
    assert response["Content-Language"] == "en"
