"""Consents and guidelines read are rows with version and time, and are required before the next trace."""

import datetime as dt
from functools import partial

import pytest

from events.models import Event
from labeling import onboarding
from labeling.models import Assignment, Consent, GuidelineAcknowledgment, Project, Rater
from labeling.projects import lifecycle
from tests import factories
from tests.labeling import onboarding_project

pytestmark = pytest.mark.django_db
LATER = dt.timedelta(hours=1)


@pytest.fixture
def project() -> Project:
    return onboarding_project.make_project(work=4)


@pytest.fixture
def rater(project: Project) -> Rater:
    return factories.make_rater(project)


def read(rater: Rater, now: dt.datetime) -> None:
    rater.project.refresh_from_db()
    assert rater.project.guideline is not None
    assert rater.user is not None
    onboarding.acknowledge_guideline(rater=rater, guideline=rater.project.guideline, by=rater.user, now=now)


def agree(rater: Rater, now: dt.datetime) -> None:
    rater.project.refresh_from_db()
    assert rater.project.consent_text is not None
    assert rater.user is not None
    onboarding.give_consent(rater=rater, text=rater.project.consent_text, by=rater.user, now=now)


def test_consent_and_guideline_come_before_the_first_trace(project: Project, rater: Rater, now: dt.datetime) -> None:
    lifecycle.publish_guideline(project=project, body="Rate.", by=None, now=now)
    lifecycle.publish_consent_text(project=project, body="Yes?", by=None, now=now)
    assert onboarding_project.refusal_of_claim(rater, now) == "consent"
    agree(rater, now)
    assert onboarding_project.refusal_of_claim(rater, now) == "guideline"
    read(rater, now + LATER)
    assert onboarding_project.refusal_of_claim(rater, now) == ""
    given, reading = Consent.objects.get(), GuidelineAcknowledgment.objects.get()
    assert (given.text.version, given.given_at) == (1, now)
    assert (reading.guideline.version, reading.read_at) == (1, now + LATER)


def test_agreeing_twice_is_one_row_and_one_event(project: Project, rater: Rater, now: dt.datetime) -> None:
    lifecycle.publish_guideline(project=project, body="Rate.", by=None, now=now)
    read(rater, now)
    read(rater, now + LATER)
    assert GuidelineAcknowledgment.objects.get().read_at == now
    assert Event.objects.get(what="guideline.read").detail == {"version": 1}


@pytest.mark.parametrize(
    ("publish", "station"),
    [
        (partial(lifecycle.publish_guideline, body="Rate well."), "guideline"),
        (partial(lifecycle.publish_consent_text, body="Still yes?"), "consent"),
    ],
)
def test_changed_version_is_read_again_before_the_next_trace(
    publish: partial[object], station: str, project: Project, rater: Rater, now: dt.datetime
) -> None:
    lifecycle.publish_guideline(project=project, body="Rate.", by=None, now=now)
    lifecycle.publish_consent_text(project=project, body="Yes?", by=None, now=now)
    agree(rater, now)
    read(rater, now)
    in_hand = onboarding_project.claim_next(rater, now).assignment_id
    onboarding.claim_trace(rater_id=rater.pk, by=rater.user, now=now)  # prefetched
    publish(project=project, by=None, now=now)
    assert Assignment.objects.filter(state="held").count() == 0
    assert onboarding_project.refusal_of_claim(rater, now) == station
    # An open trace keeps its guideline.
    onboarding_project.submit_assignment(in_hand, rater, now)
    assert Assignment.objects.filter(pk=in_hand, guideline__version=1, state="submitted").exists()
    (agree if station == "consent" else read)(rater, now)
    assert onboarding_project.refusal_of_claim(rater, now) == ""


def test_superseded_version_cannot_be_acknowledged(project: Project, rater: Rater, now: dt.datetime) -> None:
    old = lifecycle.publish_guideline(project=project, body="Rate.", by=None, now=now)
    lifecycle.publish_guideline(project=project, body="Rate well.", by=None, now=now)
    assert rater.user is not None
    with pytest.raises(onboarding.VersionSuperseded):
        onboarding.acknowledge_guideline(rater=rater, guideline=old, by=rater.user, now=now)
    assert onboarding_project.refusal_of_claim(rater, now) == "guideline"
    assert not GuidelineAcknowledgment.objects.exists()


def test_empty_consent_text_needs_no_consent(project: Project, rater: Rater, now: dt.datetime) -> None:
    lifecycle.publish_consent_text(project=project, body="Yes?", by=None, now=now)
    assert lifecycle.publish_consent_text(project=project, body="  ", by=None, now=now) is None
    assert onboarding_project.refusal_of_claim(rater, now) == ""
