"""A campaign with two bad annotators is repaired: few wrong traces, for few more labels than good annotators need."""

import random
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from labeling.models import Assignment
from labeling.quality import consensus
from people.models import Membership
from tests import factories
from tests.campaign.annotators import Annotator, Campaign, all_positive, draw_honest, finds

pytestmark = [pytest.mark.django_db, pytest.mark.fault]
MAX_WRONG, MAX_RATIO = 0.03, 1.15
REFRESHED_EVERY, MAX_ROUNDS = 5, 400  # rounds


class Lead:
    """A lead who sets aside the labels of everyone whom the evidence has paused."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign, user, self.done = campaign, factories.make_user(), set[int]()
        Membership.objects.create(
            project=campaign.project, user=user, role="lead", joined_at=campaign.project.created_at
        )
        self.client = Client()
        self.client.force_login(user)

    def set_aside_paused(self, people: list[Annotator]) -> None:
        for person in people:
            person.rater.refresh_from_db()
            if person.rater.paused_at is not None and person.rater.pk not in self.done:
                self.done.add(person.rater.pk)
                address = reverse("dashboard:set_labels_aside", args=[self.campaign.project.slug, person.rater.pk])
                data = {"scope": "all", "reason": "Paused by the evidence.", "confirmed": "yes"}
                assert self.client.post(address, data).status_code == 302


def finish(campaign: Campaign, people: list[Annotator]) -> None:
    """Let everyone label until nothing is left, with a lead who repairs meanwhile."""
    lead, idle = Lead(campaign), 0
    for number in range(1, MAX_ROUNDS):
        worked = [person.work() == 200 for person in campaign.dice.sample(people, len(people))]
        if number % REFRESHED_EVERY == 0 or not any(worked):
            campaign.refresh()
            lead.set_aside_paused(people)
        idle = 0 if any(worked) else idle + 1
        if idle == 3:
            return
    raise AssertionError("the campaign never ends")


def measure(campaign: Campaign) -> tuple[int, float]:
    """Return the number of labels of work, set aside or not, and the share of settled traces that are wrong."""
    labels = Assignment.objects.submitted().filter(project=campaign.project, purpose="work").count()
    rows = consensus.current_revisions(project_id=campaign.project.pk).select_related("trace__problem")
    wrong = [row.first_error != campaign.answers[row.trace.problem.text] for row in rows]
    assert len(wrong) > 0.9 * 398
    return labels, sum(wrong) / len(wrong)


def test_repaired_campaign_has_few_wrong_traces_for_few_more_labels(tmp_path: Path) -> None:
    random.seed(11)
    n_labels, wrong = {}, {}
    for name in ("clean", "repaired"):
        folder = tmp_path / name
        folder.mkdir()
        campaign = Campaign(folder, traces=398, gold=90, seed=11, slug=name)
        judges = draw_honest(campaign, 8)
        if name == "repaired":
            judges = [all_positive, finds(0.3, campaign.dice), *judges[2:]]
        finish(campaign, [campaign.hire(judge) for judge in judges])
        n_labels[name], wrong[name] = measure(campaign)
    assert wrong["repaired"] <= MAX_WRONG
    assert n_labels["repaired"] <= MAX_RATIO * n_labels["clean"]
