"""A new project protects itself: the evidence pauses bad annotators, and honest ones keep working."""

import random
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from bench import protection
from events.models import Event
from labeling.quality import project_stats
from tests.campaign.annotators import (
    Annotator,
    Campaign,
    all_positive,
    draw_honest,
    finds,
    hire_lead,
    set_labels_aside,
)
from tests.labeling.quality import agreement_by_hand
from tests.labeling.quality.test_project_stats_recomputed import assert_page_equals, read_long_table, read_page

REFRESHED_EVERY = 5  # rounds


def run(campaign: Campaign, people: list[Annotator], *, rounds: int) -> None:
    """Let each annotator label one trace per round, in random order, until the claim is refused."""
    for number in range(1, rounds + 1):
        for person in campaign.dice.sample(people, len(people)):
            person.rater.refresh_from_db()
            status = person.work()
            assert (status == 409) == (person.rater.paused_at is not None)
        if number % REFRESHED_EVERY == 0:
            campaign.refresh()


def hire_crowd(campaign: Campaign) -> list[Annotator]:
    judges = [all_positive, finds(0.3, campaign.dice), *draw_honest(campaign, 6)]
    return [campaign.hire(judge) for judge in judges]


def list_paused(people: list[Annotator]) -> list[int]:
    for person in people:
        person.rater.refresh_from_db()
    return [number for number, person in enumerate(people) if person.rater.paused_at is not None]


@pytest.mark.fault
def test_bad_annotators_of_a_hundred_simulated_campaigns_are_paused_in_time() -> None:
    """The same campaign without HTTP, judged by the same function."""
    runs = [protection.run_campaign(seed) for seed in range(100)]
    assert sum(run.after.get(0, 999) <= protection.ALL_POSITIVE_BY for run in runs) >= 95
    assert sum(run.after.get(1, 999) <= protection.FINDS_FEW_BY for run in runs) >= 95
    assert sum(number > 1 for run in runs for number in run.after) <= 12  # of 600 honest colleagues


@pytest.mark.fault
def test_honest_crowd_keeps_working() -> None:
    assert len(protection.run_crowd(2).after) <= 2  # of 100


@pytest.mark.fault
@pytest.mark.django_db
def test_spammer_is_paused_by_the_25th_submission(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path  # of the snapshots
    random.seed(19)  # shares of gold
    campaign = Campaign(tmp_path, traces=120, gold=20, seed=19)
    people = hire_crowd(campaign)
    run(campaign, people, rounds=20)
    assert 0 in list_paused(people)
    assert not [number for number in list_paused(people) if number > 1]
    assert people[0].n_submitted <= 25
    assert people[0].rater.is_paused_by_check
    event = Event.objects.filter(what="rater.paused", subject=f"rater:{people[0].rater.pk}").get()
    assert event.by is None
    assert event.detail["evidence"]["is_overwhelming"]
    assert set(event.detail["evidence"]["signals"]) == {"gold", "agreement", "repeats", "speed"}
    lead = hire_lead(campaign)
    before = compare_page_with_recomputation(campaign, lead)
    set_labels_aside(lead, people[0])
    campaign.refresh()
    assert compare_page_with_recomputation(campaign, lead) < before


def compare_page_with_recomputation(campaign: Campaign, lead: Client) -> int:
    """Compare the agreement page with a recomputation from the exported long table. Return the number of units."""
    project_stats.compute_project_stats(project_id=campaign.project.pk, now=timezone.now())
    rows = read_long_table(campaign.project)
    by_hand = agreement_by_hand.compute(rows, agreement_by_hand.is_planned, first=2)
    assert_page_equals(read_page(lead, campaign.project, ""), by_hand, least=50)
    return int(by_hand["n"])


@pytest.mark.slow
@pytest.mark.fault
@pytest.mark.django_db
def test_whole_campaign_pauses_both_bad_annotators_and_nobody_else(tmp_path: Path) -> None:
    random.seed(7)
    campaign = Campaign(tmp_path, traces=398, gold=90, seed=7)
    people = hire_crowd(campaign)
    run(campaign, people, rounds=100)
    assert list_paused(people) == [0, 1]
    assert people[0].n_submitted <= 25
    assert people[1].n_submitted <= 60
