"""Messages of the work page: shorter than the way of pages, and as closed."""

import logging

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from tests import factories

pytestmark = pytest.mark.django_db


def claim_url() -> str:
    return reverse("annotate:claim", args=[factories.make_project().slug])


def test_short_way_asks_who_is_there(client: Client) -> None:
    answer = client.post(claim_url(), {}, content_type="application/json")
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith(reverse("account_login"))


def test_short_way_refuses_what_is_forged() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.make_user())
    assert client.post(claim_url(), {}, content_type="application/json").status_code == 403


def test_short_way_refuses_a_host_that_is_not_ours(client: Client) -> None:
    client.force_login(factories.make_user())
    answer = client.post(claim_url(), {}, content_type="application/json", headers={"Host": "elsewhere.example"})
    assert answer.status_code == 400


def test_short_way_asks_for_the_person_alone(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client.force_login(factories.make_user())
    url = claim_url()
    with django_assert_num_queries(2):  # and for the rater, who is not one here
        assert client.post(url, {}, content_type="application/json").status_code == 404


def test_short_way_says_in_the_log_what_was_refused(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    user = factories.make_user()
    client.force_login(user)
    with caplog.at_level(logging.INFO, logger="django_structlog"):
        client.post(claim_url(), {}, content_type="application/json")
    said = [record.getMessage() for record in caplog.records if "request_finished" in record.getMessage()]
    assert len(said) == 1
    assert "404" in said[0]
