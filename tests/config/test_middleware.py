"""The shorter middleware path of the work page, with the same access checks, and time zones."""

import logging

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from config.middleware import TimeZoneMiddleware
from tests import factories

pytestmark = pytest.mark.django_db


def claim_url() -> str:
    return reverse("annotate:claim", args=[factories.make_project().slug])


def test_rating_request_requires_a_login(client: Client) -> None:
    answer = client.post(claim_url(), {}, content_type="application/json")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(reverse("account_login"))


def test_rating_request_without_a_csrf_token_is_refused() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.make_user())
    assert client.post(claim_url(), {}, content_type="application/json").status_code == 403


def test_rating_request_to_an_unknown_host_is_refused(client: Client) -> None:
    client.force_login(factories.make_user())
    answer = client.post(claim_url(), {}, content_type="application/json", headers={"Host": "elsewhere.example"})
    assert answer.status_code == 400


def test_rating_request_loads_only_the_user(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client.force_login(factories.make_user())
    url = claim_url()
    with django_assert_num_queries(2):  # the user, and the rater, who does not exist here
        assert client.post(url, {}, content_type="application/json").status_code == 404


def test_refused_rating_request_is_logged(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    user = factories.make_user()
    client.force_login(user)
    with caplog.at_level(logging.INFO, logger="django_structlog"):
        client.post(claim_url(), {}, content_type="application/json")
    lines = [record.getMessage() for record in caplog.records if "request_finished" in record.getMessage()]
    assert len(lines) == 1
    assert "404" in lines[0]


def shown_in(path: str, zone: str | None) -> str:
    def page(request: HttpRequest) -> HttpResponse:
        return HttpResponse(timezone.get_current_timezone_name())

    request = RequestFactory().get(path)
    if zone is not None:
        request.COOKIES["zone"] = zone
    told = TimeZoneMiddleware(page)(request)
    assert timezone.get_current_timezone_name() == "UTC"  # the next request is independent
    assert isinstance(told, HttpResponse)
    return told.content.decode()


def test_pages_use_the_time_zone_of_the_browser() -> None:
    assert shown_in("/", "Asia/Tokyo") == "Asia/Tokyo"


@pytest.mark.parametrize("zone", [None, "", "Middle/Earth", "../../../etc/passwd", "Asia/Tokyo\n", "x" * 5000])
def test_unknown_time_zone_is_utc(zone: str | None) -> None:
    assert shown_in("/", zone) == "UTC"


def test_api_uses_utc() -> None:
    assert shown_in("/api/v1/projects", "Asia/Tokyo") == "UTC"
