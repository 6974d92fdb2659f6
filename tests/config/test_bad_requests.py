"""Error pages for requests that cannot be parsed."""

from urllib.parse import urlencode

import pytest
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.people.personas import LoggedInPersonas

TOO_LONG = "x" * 10_000_000
BODIES = [
    ("application/x-www-form-urlencoded", urlencode({"address": TOO_LONG})),
    (
        "multipart/form-data; boundary=b",
        f'--b\r\nContent-Disposition: form-data; name="address"\r\n\r\n{TOO_LONG}\r\n--b--\r\n',
    ),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "body"), BODIES)
@pytest.mark.parametrize("name", ["dashboard:upload_import_file", "dashboard:order_snapshot"])
def test_ten_megabytes_in_a_form_are_refused_in_words(
    name: str, kind: str, body: str, personas: LoggedInPersonas
) -> None:
    cast, client = personas.cast, Client()
    client.force_login(cast.lead)
    response = client.post(reverse(name, args=[cast.project.slug]), body, content_type=kind)
    assert response.status_code == 413
    assert 'data-error="form-too-large"' in response.content.decode()


@pytest.mark.django_db
def test_too_many_fields_are_refused_in_words() -> None:
    client = Client()
    client.force_login(factories.make_user("ada"))
    body = "&".join(f"a{n}=1" for n in range(1500))
    response = client.post(reverse("account_login"), body, content_type="application/x-www-form-urlencoded")
    assert response.status_code == 400
    assert 'data-error="bad-request"' in response.content.decode()
