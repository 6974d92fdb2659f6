"""Figures of the pool: of people alone, and with a machine that judged all traces."""

import random
from collections import Counter

import pytest
from django.urls import reverse

from labeling.models import Trace
from machines import label_weights, pool_figures
from machines.models import MachinePassport
from machines.passport_data import PassportTrace
from tests import factories
from tests.machines import machine_labels
from tests.people.personas import LoggedInPersonas


def make_pool(n: int = 400, n_labeled: int = 60) -> list[PassportTrace]:
    """Create traces of which a third has an error at the second of three steps; the machine is right on nine of ten."""
    dice = random.Random(5)
    rows = []
    for number in range(n):
        truth = 1 if number % 3 == 0 else 3
        end = truth if dice.random() < 0.9 else 4 - truth
        row = PassportTrace(number, number, "", 3, is_right=number % 2 == 0, end=end)
        row.labels = {place: -1 if place == end else 1 for place in range(min(end + 1, 3))}
        if number < n_labeled:
            row.people = {1: truth}
            row.given = Counter([-1 if place == truth else 1 for place in range(min(truth + 1, 3))])
        rows.append(row)
    return rows


def test_machine_shortens_the_interval_of_the_pool() -> None:
    rows = make_pool()
    found = pool_figures.build_pool_figures(rows, dict.fromkeys(range(400), 1.0))
    rate = found["error_rate"]
    assert (rate["human"], rate["n_labeled"], rate["n_pool"]) == (pytest.approx(1 / 3), 60, 400)
    assert rate["low"] < 0.335 < rate["high"]
    assert rate["saved"] > 0.15
    assert (found["error_rate_right"]["n_labeled"], found["error_rate_right"]["n_pool"]) == (30, 200)
    # 20 negative steps among 20 × 2 + 40 × 3.
    assert found["negative"]["human"] == pytest.approx(20 / 160)
    assert found["positive"]["human"] == pytest.approx(140 / 160)
    assert found["neutral"]["reason"] is not None


def test_agreement_compares_the_first_two_people() -> None:
    rows, dice = make_pool(), random.Random(7)
    for row in rows[:60]:
        truth = row.people[1]
        # Two people agree on all right traces, and on half of the wrong ones; a third settles what they differ on.
        second = truth if truth == 3 or dice.random() < 0.5 else 3
        row.people = {1: truth, 2: second} | ({} if second == truth else {3: truth})
    rows[60].people = {1: 3}
    agreed = sum(len(set(list(row.people.values())[:2])) == 1 for row in rows[:60])
    found = pool_figures.build_pool_figures(rows, dict.fromkeys(range(400), 1.0))["agreement"]
    assert (found["human"], found["n_labeled"]) == (pytest.approx(agreed / 60), 60)
    assert found["low"] < found["value"] < found["high"]
    assert found["saved"] > 0.05


def test_gold_and_traces_without_a_weight_count_for_nothing() -> None:
    rows = make_pool()
    for row in rows[:10]:
        row.accepted = {1}
    weights = {row.trace: 1.0 for row in rows if row.trace >= 20}
    found = pool_figures.build_pool_figures(rows, weights)["error_rate"]
    assert (found["n_labeled"], found["n_pool"]) == (40, 390)


def test_unreadable_answers_count_as_the_mean() -> None:
    rows = make_pool()
    for row in rows[100:200]:
        row.end, row.labels = None, {}
    found = pool_figures.build_pool_figures(rows, dict.fromkeys(range(400), 1.0))["error_rate"]
    assert found["n_pool"] == 400
    assert found["low"] < 0.335 < found["high"]


@pytest.mark.django_db
def test_labels_of_a_batch_weigh_what_their_probabilities_say() -> None:
    project = factories.make_project()
    traces = [factories.make_trace(project) for _ in range(4)]
    for rank, (trace, q) in enumerate(zip(traces[:2], (0.7, 0.2), strict=True)):
        trace.draws.create(
            project=project,
            batch=1,
            rank=rank,
            arm="policy",
            q=q,
            pool_size=4,
            n_left=4 - rank,
            drawn_at=factories.NOW,
        )
    person = factories.make_rater(project)
    factories.make_submitted(person, traces[3], population="chosen")
    found = label_weights.load_label_weights(project.pk, [trace.pk for trace in traces])
    # v_m = 1 + (N - M) / (N - m) (1 / ((N - m + 1) q) - 1), with N = 4 and M = 2.
    assert found == {
        traces[0].pk: pytest.approx(1 + 2 / 3 * (1 / (4 * 0.7) - 1)),
        traces[1].pk: pytest.approx(1 + 2 / 2 * (1 / (3 * 0.2) - 1)),
        traces[2].pk: 1.0,
    }


@pytest.mark.django_db
def test_agreement_page_shows_the_pool_beside_people_alone(personas: LoggedInPersonas) -> None:
    project = personas.cast.project
    machine = factories.make_machine_rater(project)
    machine_labels.label_by_machine(machine, {factories.make_trace(project): None})
    passport = machine_labels.issue_passport(machine)
    address = reverse("dashboard:agreement", args=[project.slug])
    page = personas.client("lead").get(address).content.decode()
    assert 'data-pool-figure="error_rate"' not in page  # no label by people yet
    figures = pool_figures.build_pool_figures(make_pool(), dict.fromkeys(range(400), 1.0))
    MachinePassport.objects.filter(pk=passport.pk).update(content={**passport.content, "pool": figures})
    person = factories.make_rater(project)
    machine_labels.settle([person], Trace.objects.earliest("pk"), None)
    page = personas.client("lead").get(address).content.decode()
    assert 'data-pool-figure="error_rate"' in page
