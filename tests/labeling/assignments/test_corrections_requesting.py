"""A lead requests a correction. The rater corrects the submission or leaves it unchanged, which answers the request."""

import datetime as dt
from typing import Any

import pytest

from accounts.models import User
from events.models import Event
from labeling import assignments
from labeling.models import Assignment, CorrectionRequest
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
NOW = factories.NOW
LATER = NOW + dt.timedelta(days=90)


@pytest.fixture
def lead() -> User:
    return factories.make_user("lead")


@pytest.fixture
def submitted() -> Assignment:
    project = factories.make_project(correction_days=7)
    return submitted_work.submit_trace(factories.make_rater(project), factories.make_trace(project), [1, 1, 1])


def user_of(assignment: Assignment) -> User:
    assert assignment.rater.user is not None
    return assignment.rater.user


def test_correction_request_is_shown_only_to_its_rater(submitted: Assignment, lead: User) -> None:
    assignments.request_correction(assignment_id=submitted.pk, note=" Look at step 2. ", by=lead, now=NOW)
    request = assignments.open_correction_requests(user=user_of(submitted)).get()
    assert (request.note, request.revision, request.assignment) == ("Look at step 2.", 1, submitted)
    assert not assignments.open_correction_requests(user=lead).exists()
    assert Event.objects.get(what="correction.asked").by == lead.pk


def test_requested_correction_is_possible_after_the_correction_days(submitted: Assignment, lead: User) -> None:
    with pytest.raises(assignments.CorrectionRefused) as refusal:
        submitted_work.correct_step(submitted, 1, -1, now=LATER)
    assert refusal.value.code == "too_late"
    assignments.request_correction(assignment_id=submitted.pk, note="Look at step 2.", by=lead, now=LATER)
    submitted_work.correct_step(submitted, 1, -1, now=LATER)
    request = CorrectionRequest.objects.get()
    assert (request.answered_at, request.was_corrected) == (LATER, True)
    assert Event.objects.get(what="correction.answered").detail == {"was_corrected": True}


def test_declining_answers_a_request(submitted: Assignment, lead: User) -> None:
    assignments.request_correction(assignment_id=submitted.pk, note="Sure?", by=lead, now=NOW)
    mine: dict[str, Any] = {
        "assignment_id": submitted.pk,
        "rater_id": submitted.rater_id,
        "by": user_of(submitted),
        "now": NOW,
    }
    assert assignments.decline_correction(**mine)
    assert CorrectionRequest.objects.get().was_corrected is False
    assert not assignments.decline_correction(**mine)
    assert not assignments.decline_correction(**{**mine, "rater_id": submitted.rater_id + 1})


def test_impossible_correction_requests_are_refused(submitted: Assignment, lead: User) -> None:
    def ask(note: str = "Look.") -> None:
        assignments.request_correction(assignment_id=submitted.pk, note=note, by=lead, now=NOW)

    with pytest.raises(assignments.CorrectionRefused) as refusal:
        ask(" ")
    assert refusal.value.code == "no_note"
    ask()
    with pytest.raises(assignments.CorrectionRefused) as refusal:
        ask()
    assert refusal.value.code == "already_requested"
    Assignment.objects.update(purpose="gold")
    with pytest.raises(assignments.CorrectionRefused) as refusal:
        ask()
    assert refusal.value.code == "gold"
    submitted.rater.removed_at = NOW
    submitted.rater.save()
    Assignment.objects.update(purpose="work")
    with pytest.raises(assignments.CorrectionRefused) as refusal:
        ask()
    assert refusal.value.code == "rater_removed"
