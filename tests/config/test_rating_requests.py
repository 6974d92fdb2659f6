"""Requests of the work page use a shorter middleware path with the same access checks."""

import logging

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

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
