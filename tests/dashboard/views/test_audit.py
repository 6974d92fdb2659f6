"""The audit log: filters, paging, the file, and the downloads that it records."""

import csv
import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from dashboard.event_labels import AREA_LABELS
from dashboard.views import audit
from events import audit_log
from labeling.models import Project
from people import members
from people.models import Role
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return factories.make_project("sums")


@pytest.fixture
def lead(project: Project, client: Client) -> User:
    user = factories.make_user("lead")
    members.add_member(project=project, user=user, role=Role.LEAD, now=factories.NOW)
    client.force_login(user)
    return user


def log(project: Project, what: str, by: User | None, *, days: int = 0, **detail: object) -> None:
    audit_log.log_event(
        what=what, by=by, now=factories.NOW + dt.timedelta(days=days), project=project.pk, subject="x:1", detail=detail
    )


def shown(client: Client, **query: Any) -> list[str]:
    page = client.get(reverse("dashboard:audit", args=["sums"]), query)
    assert page.status_code == 200
    return [event.what for event, *_rest in page.context["events"]]


def test_filters_narrow_the_events(client: Client, project: Project, lead: User) -> None:
    log(project, "gold.made", lead)
    log(project, "gold.retired", None, days=1)
    log(project, "rater.paused", lead, days=2)
    log(factories.make_project(), "gold.made", lead)
    assert shown(client) == ["rater.paused", "gold.retired", "gold.made"]
    assert shown(client, area="gold") == ["gold.retired", "gold.made"]
    assert shown(client, area="gold", person=lead.pk) == ["gold.made"]
    assert shown(client, person=0) == ["gold.retired"]
    day = (factories.NOW + dt.timedelta(days=1)).date()
    assert shown(client, since=day, until=day) == ["gold.retired"]


def test_details_leave_out_what_is_empty(client: Client, project: Project, lead: User) -> None:
    log(project, "labels.set_aside", lead, labels=3, assignment=None, reason="", is_late=False)
    page = client.get(reverse("dashboard:audit", args=["sums"]))
    [(_event, _person, _label, details)] = page.context["events"]
    assert dict(details) == {"labels": 3, "is_late": False}
    assert "is_late: false" in page.content.decode()


@pytest.mark.parametrize("query", [{"area": "<b>"}, {"person": "x"}, {"person": "999999"}, {"since": "yesterday"}])
def test_invalid_filters_show_everything_and_say_so(
    client: Client, project: Project, lead: User, query: dict[str, str]
) -> None:
    log(project, "gold.made", lead)
    page = client.get(reverse("dashboard:audit", args=["sums"]), query)
    assert len(page.context["events"]) == 1
    assert 'role="alert"' in page.content.decode()


def test_pages_lead_to_older_events(client: Client, project: Project, lead: User) -> None:
    for n in range(audit.PAGE_SIZE + 2):
        log(project, "gold.made", lead, days=n)
    page = client.get(reverse("dashboard:audit", args=["sums"]), {"area": "gold"})
    assert len(page.context["events"]) == audit.PAGE_SIZE
    older = client.get(reverse("dashboard:audit", args=["sums"]) + page.context["rows"].older)
    assert len(older.context["events"]) == 2


def test_file_has_the_filtered_events_and_no_formula(client: Client, project: Project, lead: User) -> None:
    lead.name = "=HYPERLINK(1)"
    lead.save()
    log(project, "gold.made", lead, use="hidden")
    log(project, "rater.paused", None)
    response = client.get(reverse("dashboard:download_audit", args=["sums"]), {"area": "gold"})
    rows = list(csv.DictReader(response.getvalue().decode().splitlines()))
    assert [(row["event"], row["person"][:2], row["detail"]) for row in rows] == [
        ("gold.made", "'=", '{"use": "hidden"}')
    ]


def test_every_area_has_words() -> None:
    assert all(str(label) for label in AREA_LABELS.values())
