"""The page of notices: choices by email, webhooks with their secret, and the log of deliveries."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from events.models import Event
from notices import outbox, subscriptions
from notices.models import NoticeDelivery, Webhook
from tests import factories
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db
ADDRESS = "http://127.0.0.1:9/hook?token=x"


@pytest.fixture
def lead(personas: LoggedInPersonas) -> Client:
    return personas.client("lead")


def url(name: str, *args: object) -> str:
    return reverse(f"dashboard:{name}", args=["sums", *args])


def create_webhook(client: Client, **changes: Any) -> Any:
    return client.post(url("create_webhook"), {"address": ADDRESS, "kinds": ["import.done", "rater.paused"], **changes})


def test_secret_is_shown_once(lead: Client) -> None:
    created = create_webhook(lead)
    assert created.status_code == 201
    webhook, secret = created.context["created"]
    assert secret == subscriptions.derive_secret(webhook)
    assert secret in created.content.decode()
    assert secret not in lead.get(url("notices")).content.decode()
    assert Event.objects.get(what="webhook.made").detail == {"host": "127.0.0.1", "kinds": webhook.kinds}


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"address": "http://10.0.0.1/"}, "address", "not_public"),
        ({"address": "ftp://example.org"}, "address", "invalid"),
        ({"kinds": []}, "kinds", "required"),
        ({"kinds": ["gold.made"]}, "kinds", "invalid_choice"),
    ],
)
def test_invalid_webhook_is_refused(lead: Client, changes: dict[str, Any], field: str, code: str) -> None:
    response = create_webhook(lead, **changes)
    assert response.status_code == 422
    assert [error.code for error in response.context["form"].errors.as_data()[field]] == [code]
    assert not Webhook.objects.exists()


@pytest.mark.fault
def test_a_project_has_a_limited_number_of_webhooks(lead: Client) -> None:
    for _ in range(subscriptions.MAX_WEBHOOKS):
        create_webhook(lead)
    response = create_webhook(lead)
    assert [error.code for error in response.context["form"].non_field_errors().as_data()] == ["too_many"]


def test_webhook_is_tested_its_failure_shown_and_sent_again(lead: Client) -> None:
    create_webhook(lead)
    webhook = Webhook.objects.get()
    lead.post(url("test_webhook", webhook.pk))
    assert lead.get(url("notices")).content.decode().count('data-delivery="waiting"') == 1
    delivery = NoticeDelivery.objects.get()
    NoticeDelivery.objects.update(
        state="failed", problem="503", attempts=outbox.MAX_ATTEMPTS, next_attempt_at=None, ended_at=factories.NOW
    )
    page = lead.get(url("notices")).content.decode()
    assert page.count('data-delivery="failed"') == page.count(url("send_notice_again", delivery.pk)) == 1
    lead.post(url("send_notice_again", delivery.pk))
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 0)


def test_deleted_webhook_is_not_shown_and_cannot_be_tested(lead: Client) -> None:
    create_webhook(lead)
    webhook = Webhook.objects.get()
    lead.post(url("delete_webhook", webhook.pk))
    assert "data-webhook" not in lead.get(url("notices")).content.decode()
    assert lead.post(url("test_webhook", webhook.pk)).status_code == 404


def test_choice_of_emails_is_ones_own(personas: LoggedInPersonas, lead: Client) -> None:
    lead.post(url("choose_mail"), {"mail": ["rater.paused"]})
    chosen = {
        person: personas.client(person).get(url("notices")).context["mail_form"].initial["mail"]
        for person in ("lead", "owner")
    }
    assert chosen == {"lead": ["rater.paused"], "owner": []}
    assert lead.post(url("choose_mail"), {"mail": ["gold.made"]}).status_code == 422
    lead.post(url("choose_mail"))
    assert lead.get(url("notices")).context["mail_form"].initial["mail"] == []


def test_webhooks_of_other_projects_are_not_found(personas: LoggedInPersonas) -> None:
    project, lead = factories.make_project(), factories.make_user()
    webhook, _ = subscriptions.create_webhook(
        project=project, address=ADDRESS, kinds=["import.done"], by=lead, now=factories.NOW
    )
    delivery = outbox.send_test(webhook=webhook, by=lead, now=factories.NOW)
    NoticeDelivery.objects.update(state="failed", next_attempt_at=None, ended_at=factories.NOW)
    owner = personas.client("owner")
    for name, number in (("test_webhook", webhook.pk), ("delete_webhook", webhook.pk)):
        assert owner.post(url(name, number)).status_code == 404
    assert owner.post(url("send_notice_again", delivery.pk)).status_code == 404
    assert "data-delivery" not in owner.get(url("notices")).content.decode()
