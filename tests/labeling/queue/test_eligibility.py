"""Python explains why a rater is refused, and `claim.sql` refuses: both agree for every combination."""

import datetime as dt
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from django.db import connection, transaction

import rawsql
from labeling import gates, queue
from labeling.gates import OnboardingGate
from labeling.models import ConsentText, Guideline, Project, Rater
from labeling.models.project import ProjectState
from labeling.models.rater import RaterStage
from labeling.queue import claim
from labeling.queue.claim import ClaimRequest
from tests import factories
from tests.labeling.queue import queues

pytestmark = pytest.mark.django_db

PURPOSES = {
    OnboardingGate.TRAINING: {"training"},
    OnboardingGate.SCREENING: {"screening"},
    OnboardingGate.WORK: {"work", "gold"},
}
WAYS = ("none", "read", "changed", "unread")  # whether the project has a text, and which one the rater has seen
CHANCES = (queues.GOLD, queues.RESERVE, queues.UNIFORM, queues.POLICY)
ARMS = ("training", "screening", "gold", "chosen", "top_up", "opinion", "reserve", "uniform", "policy")


class Case(NamedTuple):
    is_paused: bool
    is_removed: bool
    state: ProjectState
    guideline: str
    consent: str
    stage: RaterStage


def cases() -> Iterator[Case]:
    yield from itertools.starmap(
        Case, itertools.product((False, True), (False, True), ProjectState, WAYS, WAYS, RaterStage)
    )


class Texts(NamedTuple):
    old: int
    new: int


def seen(way: str, texts: Texts) -> tuple[int | None, int | None]:
    """Return the version that the project requires, and the one that the rater has read."""
    return {
        "none": (None, None),
        "read": (texts.new, texts.new),
        "changed": (texts.new, texts.old),
        "unread": (texts.new, None),
    }[way]


def put(case: Case, rater: Rater, guidelines: Texts, consents: Texts, now: dt.datetime) -> Rater:
    wanted_guideline, read_guideline = seen(case.guideline, guidelines)
    wanted_consent, agreed_text = seen(case.consent, consents)
    Project.objects.filter(pk=rater.project_id).update(
        state=case.state, guideline=wanted_guideline, consent_text=wanted_consent
    )
    Rater.objects.filter(pk=rater.pk).update(
        paused_at=now if case.is_paused else None,
        removed_at=now if case.is_removed else None,
        read_guideline=read_guideline,
        agreed_text=agreed_text,
        stage=case.stage,
    )
    return Rater.objects.select_related("project").get(pk=rater.pk)


@pytest.fixture
def rater(now: dt.datetime) -> Rater:
    project = factories.make_project()
    for arm in ARMS:
        queues.fill_lane(project, 2, arm=arm)
    return factories.make_rater(project)


def texts(model: Any, project: Project, now: dt.datetime) -> Texts:
    made = [model.objects.create(project=project, version=n, body=f"text {n}", published_at=now).pk for n in (1, 2)]
    return Texts(*made)


@pytest.mark.fault
def test_both_definitions_of_eligibility_agree(rater: Rater, now: dt.datetime) -> None:
    guidelines, consents = texts(Guideline, rater.project, now), texts(ConsentText, rater.project, now)
    chance = itertools.cycle(CHANCES)
    for case in cases():
        with transaction.atomic():
            found = put(case, rater, guidelines, consents, now)
            is_left = claim.is_work_left(ClaimRequest(rater.pk, now, chance=0.5))
            taken = claim.take_slot(ClaimRequest(rater.pk, now, chance=next(chance)))
            is_refused = queue.ineligibility_reason(found, found.project) != ""
            station = gates.next_gate(rater=found, project=found.project)
            transaction.set_rollback(True)
        assert (taken is None) == is_refused, case
        assert is_left != is_refused, case
        if taken is not None:
            assert taken.purpose in PURPOSES[station], case


@pytest.mark.parametrize("arm", ARMS)
def test_lane_is_served_only_at_its_stage(now: dt.datetime, arm: str) -> None:
    """This holds for any chance: shares decide the order of lanes, and never keep a rater from the only lane that has
    work."""
    project = factories.make_project(proven_gold_share=0.02)
    queues.fill_lane(project, 1, arm=arm)
    for stage, proven_at in itertools.product(RaterStage, (None, now)):
        rater = factories.make_rater(project, stage=stage, proven_at=proven_at)
        is_way_in = arm in ("training", "screening")
        is_served = arm == stage if is_way_in else stage == RaterStage.WORKING and arm != "gold"  # never only gold
        for chance in (0.0, *CHANCES, 0.999):
            with transaction.atomic():
                taken = claim.take_slot(ClaimRequest(rater.pk, now, chance, opened=True))
                transaction.set_rollback(True)
            assert (taken is not None) == is_served, (stage, proven_at, chance)
        if not is_served:
            with pytest.raises(queue.QueueRefusal):
                queue.claim_trace(rater_id=rater.pk, now=now)


def test_the_claim_can_be_explained(rater: Rater, now: dt.datetime) -> None:
    """The file is one whole statement, and its plan reads entries by an index, not the whole table."""
    asked = ClaimRequest(rater.pk, now, chance=queues.POLICY).parameters()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = "\n".join(row for (row,) in rawsql.fetch_rows(f"EXPLAIN {claim.CLAIM_SQL}", asked))
    assert "LockRows" in plan
    assert "Seq Scan on labeling_queueentry" not in plan
