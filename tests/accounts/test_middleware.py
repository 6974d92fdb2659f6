"""Time zones of pages and the API."""

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone

from accounts.middleware import TimeZoneMiddleware


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
