"""A campaign with bad annotators protects itself and is repaired: the evidence pauses them, their labels are set aside,
and the traces that they spoiled are labeled again.

Twelve simulated campaigns keep the limits. One over HTTP keeps them too, and the simulation settles its labels exactly
as the platform does. Only the number of traces between the decision on a pause and the pause varies from run to run.
`CAMPAIGN_SEEDS="1 2 3"` tests other seeds over HTTP; `-o junit_family=xunit1 --junit-xml FILE` records the figures."""

import io
import json
import os
import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F
from django.test import Client
from django.utils import timezone

from bench import protection, settling
from bench.settling import SettledProject
from events.models import Event
from labeling.models import Consensus, FirstErrorReport, Settlement
from labeling.quality import project_stats, rater_model
from stats.crowd_analysis import CONSENSUS_METHODS
from tests import factories
from tests.campaign.annotators import Annotator, Campaign, join, set_labels_aside
from tests.labeling.quality import agreement_by_hand
from tests.labeling.quality.test_project_stats_recomputed import assert_page_equals, read_long_table, read_page

pytestmark = [pytest.mark.fault]
REFRESHED_EVERY, SOON, STATS_EVERY = 5, 60, 20  # rounds
SEEDS = [int(seed) for seed in os.environ.get("CAMPAIGN_SEEDS", "2").split()]
MOST_WRONG, MOST_LABELS = 0.03, 1.15
AS_GOOD = 0.99  # traces settled right, to those that the best method of `manage.py consensus` finds
MOST_ROUNDS, NIGHTS = 400, 2


@dataclass
class CampaignResult:
    n_labels: int  # of work, those that were set aside included
    settled: dict[int, int | None]  # first errors by number of the trace
    wrong: set[int]

    @property
    def n_right(self) -> int:
        return len(self.settled) - len(self.wrong)

    @property
    def share_wrong(self) -> float:
        return len(self.wrong) / len(self.settled)


def run_campaign(campaign: Campaign, lead: Client) -> CampaignResult:
    """Let all annotators work until nothing is left, also after the nightly fits that follow. A lead sets aside the
    labels of each paused one."""
    done, nights, busy, has_worked = set[int](), 0, campaign.people, False
    for number in range(1, MOST_ROUNDS):
        busy = [person for person in campaign.dice.sample(busy, len(busy)) if person.work()]
        has_worked |= len(busy) > 0
        if busy and number % REFRESHED_EVERY:
            continue
        if not has_worked:
            if nights == NIGHTS:
                break
            nights += 1
            rater_model.enqueue_fit(project_id=campaign.project.pk, now=timezone.now())
        campaign.refresh(with_stats=not has_worked or number <= SOON or number % STATS_EVERY == 0)
        for person in find_paused(campaign):
            if person.number not in done and person.shown is None:
                set_labels_aside(lead, person)
                done.add(person.number)
                campaign.run_jobs()
        busy, has_worked = campaign.people, False
    assert not Settlement.objects.filter(project=campaign.project, state__in=("reading", "asked")).exists()
    return measure(campaign)


def find_paused(campaign: Campaign) -> list[Annotator]:
    for person in campaign.people:
        person.rater.refresh_from_db()
    return [person for person in campaign.people if person.rater.paused_at is not None]


def measure(campaign: Campaign) -> CampaignResult:
    current = Consensus.objects.filter(
        project=campaign.project,
        trace__settlement__state="settled",
        revision=F("trace__settlement__consensus_revision"),
    )
    settled = {campaign.numbers[trace]: end for trace, end in current.values_list("trace", "first_error")}
    return CampaignResult(
        n_labels=FirstErrorReport.objects.filter(project=campaign.project).count(),
        settled=settled,
        wrong={number for number, end in settled.items() if end != campaign.find_answer(number)},
    )


def write_labels(campaign: Campaign) -> str:
    """Return all labels of work as a CSV file for `manage.py consensus`, those that were set aside included."""
    rows = FirstErrorReport.objects.filter(project=campaign.project).order_by("pk")
    lines = [
        f"{trace},{rater},{-1 if end is None else end},{n_steps}\n"
        for trace, rater, end, n_steps in rows.values_list("trace", "rater", "first_error", "trace__n_steps")
    ]
    return "".join(["task,worker,label,steps\n", *lines])


def count_right_by_consensus(campaign: Campaign, result: CampaignResult) -> dict[str, int]:
    """Return how many of the settled traces `manage.py consensus` finds right, by method."""
    file = campaign.folder / "labels.csv"
    file.write_text(write_labels(campaign))
    found = {method: dict(infer(file, method, campaign)) for method in CONSENSUS_METHODS}
    return {
        method: sum(ends[number] == campaign.find_answer(number) for number in result.settled)
        for method, ends in found.items()
    }


def infer(file: Path, method: str, campaign: Campaign) -> Iterator[tuple[int, int | None]]:
    out = io.StringIO()
    call_command("consensus", csv=str(file), method=method, json=True, stdout=out)
    for row in json.loads(out.getvalue()):
        yield campaign.numbers[int(row["task"])], None if row["label"] == "-1" else int(row["label"])


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("seed", SEEDS)
def test_campaign_protects_itself_and_is_repaired(
    tmp_path: Path, settings: Any, seed: int, record_property: Callable[[str, object], None]
) -> None:
    settings.DATA_DIR = tmp_path  # of the snapshots
    random.seed(seed)  # shares of gold
    campaign = Campaign(tmp_path, *settling.create_project(seed, is_clean=False), slug="spoiled")
    lead = join(campaign.project, factories.make_user(), "lead")
    result = run_campaign(campaign, lead)
    clean = settling.run_campaign(seed, is_clean=True)
    by_consensus = count_right_by_consensus(campaign, result)
    figures = {
        "paused after": {person.number: person.n_submitted for person in find_paused(campaign)},
        "wrong": result.share_wrong,
        "settled": len(result.settled),
        "labels": result.n_labels,
        "of clean": result.n_labels / clean.n_labels,
        "right": result.n_right,
        **by_consensus,
    }
    record_property("figures", json.dumps(figures))
    assert_bad_annotators_were_paused(campaign)
    assert result.share_wrong <= MOST_WRONG
    assert result.n_labels <= MOST_LABELS * clean.n_labels
    assert result.n_right >= AS_GOOD * max(by_consensus.values())
    assert_simulation_settles_the_same(campaign, result)
    assert_page_equals_recomputation(campaign, lead)


def assert_bad_annotators_were_paused(campaign: Campaign) -> None:
    """Only the two bad ones, in time, by the check, and with the evidence in the log."""
    paused = find_paused(campaign)
    assert [person.number for person in paused] == [0, 1]
    assert paused[0].n_submitted <= protection.ALL_POSITIVE_BY
    assert paused[1].n_submitted <= protection.FINDS_FEW_BY
    for person in paused:
        assert person.rater.is_paused_by_check
        event = Event.objects.filter(what="rater.paused", subject=f"rater:{person.rater.pk}").get()
        assert event.by is None
        assert event.detail["evidence"]["is_overwhelming"]
        assert set(event.detail["evidence"]["signals"]) == {"gold", "agreement", "repeats", "speed"}


def assert_simulation_settles_the_same(campaign: Campaign, result: CampaignResult) -> None:
    """`bench.settling` settles the same labels, set aside and fitted at the same moments, as the platform did."""
    seed = campaign.simulated.answer_seed
    assert seed is not None
    simulated, people = settling.create_project(seed, is_clean=False)
    copy = SettledProject(simulated, uses_model=True)
    for what, *numbers in campaign.course:
        match what, numbers:
            case "label", [person, trace]:
                copy.record(person, people[person], trace)
            case "settle", []:
                copy.settle_due()
            case "set aside", [person]:
                copy.set_labels_aside(person)
            case "fit", []:
                copy.fit_raters()
    assert {trace: copy.find_first_error(trace, end) for trace, end in copy.settled.items()} == result.settled


def assert_page_equals_recomputation(campaign: Campaign, lead: Client) -> None:
    project_stats.compute_project_stats(project_id=campaign.project.pk, now=timezone.now())
    rows = read_long_table(campaign.project)
    by_hand = agreement_by_hand.compute(rows, agreement_by_hand.is_planned, first=2)
    assert_page_equals(read_page(lead, campaign.project, ""), by_hand, least=500)


@pytest.mark.timeout(600)
def test_each_of_twelve_simulated_campaigns_is_repaired_within_the_limits(
    record_property: Callable[[str, object], None],
) -> None:
    """The two bad annotators of a campaign are honest in its clean twin. All others give the same results in both."""
    pairs = [(settling.run_campaign(seed), settling.run_campaign(seed, is_clean=True)) for seed in range(12)]
    shares_wrong = [float(repaired.share_wrong) for repaired, _ in pairs]
    labels = [float(repaired.n_labels / clean.n_labels) for repaired, clean in pairs]
    record_property("figures", json.dumps({"wrong": shares_wrong, "labels": labels}))
    assert max(shares_wrong) <= MOST_WRONG
    assert max(labels) <= MOST_LABELS
    assert statistics.mean(shares_wrong) <= MOST_WRONG / 2
    assert statistics.mean(labels) <= 1.05
    assert all(each.n_settled >= 0.9 * settling.TRACES for pair in pairs for each in pair)
    assert sum(repaired.n_right - repaired.n_right_by_consensus for repaired, _ in pairs) >= 0
