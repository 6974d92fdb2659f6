"""A campaign with bad annotators is repaired: their labels are set aside, and the traces that they spoiled are labeled
again. Measured over HTTP on other seeds too; the distribution over many seeds is in `bench.settling`."""

import io
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from labeling.models import Consensus, FirstErrorReport, Settlement, Trace
from labeling.quality import rater_model
from people.models import Membership
from stats.crowd_analysis import CONSENSUS_METHODS
from tests import factories
from tests.campaign.annotators import Annotator, Campaign, Judge, all_positive, draw_honest, finds

pytestmark = [pytest.mark.django_db, pytest.mark.fault]
REFRESHED_EVERY = 5  # rounds
SEED, TRACES = 14, 398
MOST_ROUNDS, NIGHTS = 400, 2


@dataclass
class CampaignResult:
    n_labels: int  # of work, those that were set aside included
    n_settled: int
    wrong: set[int]  # settled traces
    by_consensus: dict[str, int]  # how many of the settled traces are right, by method

    @property
    def n_right(self) -> int:
        return self.n_settled - len(self.wrong)

    @property
    def share_wrong(self) -> float:
        return len(self.wrong) / self.n_settled


def run_campaign(judges: Sequence[Judge], campaign: Campaign) -> CampaignResult:
    """Let all annotators work until nothing is left, also after the nightly fits that follow. A lead sets aside the
    labels of each paused one."""
    people = [campaign.hire(judge) for judge in judges]
    lead, set_aside, n_idle, nights = hire_lead(campaign), set[int](), 0, 0
    for number in range(1, MOST_ROUNDS):
        has_worked = sum(person.work() == 200 for person in campaign.dice.sample(people, len(people))) > 0
        n_idle = 0 if has_worked else n_idle + 1
        if n_idle == 2:
            if nights == NIGHTS:
                break
            nights, n_idle = nights + 1, 1
            rater_model.enqueue_fit(project_id=campaign.project.pk, now=timezone.now())
        if n_idle or number % REFRESHED_EVERY == 0:
            campaign.refresh()
            for person in find_paused(people):
                if person.rater.pk not in set_aside:
                    set_labels_aside(lead, person)
                    set_aside.add(person.rater.pk)
            campaign.refresh()
    assert not Settlement.objects.filter(project=campaign.project, state__in=("reading", "asked")).exists()
    return measure(campaign)


def hire_lead(campaign: Campaign) -> Client:
    lead = factories.make_user()
    Membership.objects.create(project=campaign.project, user=lead, role="lead", joined_at=timezone.now())
    client = Client()
    client.force_login(lead)
    return client


def find_paused(people: Sequence[Annotator]) -> list[Annotator]:
    for person in people:
        person.rater.refresh_from_db()
    return [person for person in people if person.rater.paused_at is not None]


def set_labels_aside(lead: Client, person: Annotator) -> None:
    address = reverse("dashboard:set_labels_aside", args=[person.campaign.project.slug, person.rater.pk])
    sent = lead.post(address, {"scope": "all", "reason": "paused by the evidence", "confirmed": "1"})
    assert sent.status_code == 302, sent.content


def measure(campaign: Campaign) -> CampaignResult:
    settled = dict(
        Consensus.objects.filter(
            project=campaign.project,
            trace__settlement__state="settled",
            revision=F("trace__settlement__consensus_revision"),
        ).values_list("trace", "first_error")
    )
    texts = dict(Trace.objects.filter(project=campaign.project).values_list("pk", "problem__text"))
    answers = {trace: campaign.answers[text] for trace, text in texts.items()}
    labels = write_labels(campaign)
    return CampaignResult(
        n_labels=labels.count("\n") - 1,
        wrong={trace for trace, first_error in settled.items() if first_error != answers[trace]},
        n_settled=len(settled),
        by_consensus={
            method: sum(found == answers[trace] for trace, found in infer(labels, method, campaign) if trace in settled)
            for method in CONSENSUS_METHODS
        },
    )


def write_labels(campaign: Campaign) -> str:
    """Return all labels of work as a CSV file for `manage.py consensus`, those that were set aside included."""
    rows = FirstErrorReport.objects.filter(project=campaign.project).order_by("pk")
    lines = [
        f"{trace},{rater},{-1 if end is None else end},{n_steps}\n"
        for trace, rater, end, n_steps in rows.values_list("trace", "rater", "first_error", "trace__n_steps")
    ]
    return "".join(["task,worker,label,steps\n", *lines])


def infer(labels: str, method: str, campaign: Campaign) -> Iterator[tuple[int, int | None]]:
    file, out = campaign.folder / "labels.csv", io.StringIO()
    file.write_text(labels)
    call_command("consensus", csv=str(file), method=method, json=True, stdout=out)
    for row in json.loads(out.getvalue()):
        yield int(row["task"]), None if row["label"] == "-1" else int(row["label"])


@pytest.mark.timeout(1200)  # two whole campaigns: two minutes of processor time
def test_repaired_campaign_is_right_for_few_more_labels_than_a_clean_one(tmp_path: Path) -> None:
    repaired, clean = (run_seed(tmp_path, SEED, is_clean=is_clean) for is_clean in (False, True))
    assert repaired.share_wrong <= 0.03
    assert repaired.n_labels <= 1.15 * clean.n_labels
    assert repaired.n_right >= max(repaired.by_consensus.values())


def run_seed(folder: Path, seed: int, *, is_clean: bool) -> CampaignResult:
    random.seed(seed)  # shares of gold
    slug = "clean" if is_clean else "spoiled"
    campaign = Campaign(folder, traces=TRACES, gold=90, seed=seed, slug=slug)
    bad = [] if is_clean else [all_positive, finds(0.3, campaign.dice)]
    return run_campaign([*bad, *draw_honest(campaign, 8 - len(bad))], campaign)
