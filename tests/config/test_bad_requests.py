"""Error pages for requests that cannot be parsed."""

import io
from urllib.parse import urlencode

import pytest
from django.core.exceptions import RequestDataTooBig
from django.core.handlers.wsgi import WSGIRequest
from django.test import Client
from django.urls import reverse

from config import bad_requests
from tests import factories
from tests.people.personas import make_personas

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
def test_ten_megabytes_in_a_form_are_refused_in_words(name: str, kind: str, body: str) -> None:
    cast, client = make_personas(), Client()
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


def test_whole_body_is_read_before_the_response() -> None:
    """If the server closed the connection early, the browser would show a connection error."""
    sent = io.BytesIO(bytes(200_000))
    request = WSGIRequest({"REQUEST_METHOD": "POST", "CONTENT_LENGTH": "200000", "wsgi.input": sent})
    assert bad_requests.render_bad_request(request, RequestDataTooBig()).status_code == 413
    assert sent.tell() == 200_000
