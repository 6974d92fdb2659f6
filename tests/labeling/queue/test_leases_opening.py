"""A claim, a request, or the first message opens an assignment, and writes the same row."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from labeling import queue
from labeling.models import Assignment, Guideline, Project, Rater
from tests import factories
from tests.labeling.assignments.clients import WorkPageClient

pytestmark = pytest.mark.django_db

FIXED = ("state", "holds_slot", "opened_at", "lease_ends_at", "guideline", "saw_reference_answer", "saw_final_verdict")


def by_claim(rater: Rater, now: dt.datetime) -> None:
    queue.claim_trace(rater_id=rater.pk, now=now, opened=True)


def by_request(rater: Rater, now: dt.datetime) -> None:
    claim = queue.claim_trace(rater_id=rater.pk, now=now - dt.timedelta(minutes=1))
    queue.open_assignment(assignment_id=claim.assignment_id, rater_id=rater.pk, now=now)


def by_claim_of_what_is_held(rater: Rater, now: dt.datetime) -> None:
    queue.claim_trace(rater_id=rater.pk, now=now - dt.timedelta(minutes=1))
    queue.claim_trace(rater_id=rater.pk, now=now, opened=True)


def by_message(rater: Rater, now: dt.datetime) -> None:
    claim = queue.claim_trace(rater_id=rater.pk, now=now - dt.timedelta(minutes=1))
    client = WorkPageClient(Assignment.objects.get(pk=claim.assignment_id))
    client.send(client.write(0, 1), now=now)


WAYS = (by_claim, by_request, by_claim_of_what_is_held, by_message)


@pytest.mark.parametrize("shows", [False, True])
@pytest.mark.parametrize("open_one", WAYS)
def test_every_way_to_open_writes_the_same_row(
    now: dt.datetime, open_one: Callable[[Rater, dt.datetime], None], shows: bool
) -> None:
    project = factories.make_project(shows_reference_answer=shows, shows_final_verdict=not shows, lease_seconds=1234)
    guideline = Guideline.objects.create(project=project, version=1, body="Be fair.", published_at=now)
    Project.objects.filter(pk=project.pk).update(guideline=guideline)
    trace = factories.make_trace(project, ["One."])
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=1, now=now)
    rater = factories.make_rater(project, read_guideline=guideline)
    open_one(rater, now)
    (found,) = Assignment.objects.values(*FIXED)
    expected: dict[str, Any] = {
        "state": "opened",
        "holds_slot": True,
        "opened_at": now,
        "lease_ends_at": now + dt.timedelta(seconds=1234),
        "guideline": guideline.pk,
        "saw_reference_answer": shows,
        "saw_final_verdict": not shows,
    }
    assert found == expected
