"""Every response of every URL, refusals and redirects included, has the security headers."""

import re
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.urls import reverse

from tests.people.personas import MEMBERS, OUTSIDERS, LoggedInPersonas
from tests.test_permissions import URL_CASES

pytestmark = pytest.mark.django_db

EXPECTED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# What a personal page may be stored for: nothing, or only by the browser of the person.
_PRIVATE = re.compile(r"\b(no-store|private)\b")
PUBLIC = {"live", "ready", "metrics", "api:schema"}


def check(name: str, response: Any) -> None:
    for header, value in EXPECTED.items():
        assert response.headers.get(header) == value, (name, header)
    is_page = response.headers.get("Content-Type", "").startswith("text/html")
    assert response.headers.get("Permissions-Policy") == (settings.PERMISSIONS_POLICY if is_page else None), name
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    if "script-src" in policy:
        assert "require-trusted-types-for 'script'" in policy, name
    if name not in PUBLIC:
        assert _PRIVATE.search(response.headers["Cache-Control"]), name


@pytest.mark.parametrize("name", URL_CASES)
@pytest.mark.fault
def test_every_url_has_the_headers(name: str, personas: LoggedInPersonas) -> None:
    case = URL_CASES[name]
    address = reverse(name, kwargs=case.arguments(personas.cast))
    admitted = next((each for each in MEMBERS if case.answers[each] < 400), MEMBERS[0])
    for person in (OUTSIDERS[0], admitted):
        for method in (case.method, "delete" if case.method != "delete" else "get"):
            with transaction.atomic():
                check(name, getattr(personas.client(person), method)(address, case.body))
                transaction.set_rollback(True)


def test_refusals_before_any_view_have_the_headers() -> None:
    client = Client(raise_request_exception=False)
    check("missing", client.get("/nothing-here/"))
    check("host", client.get("/", headers={"Host": "evil.example"}))
    check("csrf", Client(enforce_csrf_checks=True).post("/accounts/login/"))
