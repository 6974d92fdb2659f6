"""Any number of machine labels changes nothing in what people say: agreement, gold, settlements, evaluation."""

import random
from typing import Any

import pytest

from labeling import queue
from labeling.assignments.machine_submissions import MachineRating, MachineSubmission, save_machine_submissions
from labeling.datasets import manifest
from labeling.datasets.selection import ManifestFilters
from labeling.models import AgreementTally, Assignment, Consensus, GoldAnswer, Project, Settlement, Trace
from labeling.quality import project_stats, tallies
from prm import generations, labeled_traces
from tests import factories
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db

_BY_PEOPLE = ("headline", "everything", "mix", "domains", "gold")


def label_by_people(project: Project, n: int, dice: random.Random) -> None:
    raters = submitted_work.make_raters(project, 3)
    for _ in range(n):
        trace = factories.make_trace(project, ["One.", "Two.", "Three."])
        for rater in dice.sample(raters, dice.randint(1, 3)):
            first = dice.choice([0, 1, 2, 3])
            submitted_work.submit_trace(rater, trace, ([1] * first + [-1])[:3])


def label_by_machines(project: Project, n: int, dice: random.Random) -> None:
    traces = list(Trace.objects.filter(project=project).values_list("pk", flat=True))
    for number in range(n):
        rater = factories.make_machine_rater(project, f"{dice.choice(['judge', 'Monte Carlo', 'PRM'])}: {number}")
        submitted = []
        for trace in traces:
            first = dice.choice([0, 1, 2, 3])
            ratings = [_rate(place, rating, dice) for place, rating in enumerate(([1] * first + [-1])[:3])]
            submitted.append(MachineSubmission(trace, ratings, saw_reference_answer=dice.random() < 0.5))
        save_machine_submissions(rater=rater, submitted=submitted, now=factories.NOW)


def _rate(position: int, rating: int, dice: random.Random) -> MachineRating:
    """Rate as a judge with two votes, a Monte Carlo rater, or a search that only inferred the step."""
    kind = dice.choice(["judge", "monte_carlo", "inferred"])
    if kind == "judge":
        return MachineRating(position, rating, 0.5, 2, 1, "A reason.", "2.1")
    return MachineRating(position, rating, 0.25, 8, 2) if kind == "monte_carlo" else MachineRating(position, rating)


def describe_people(project: Project) -> dict[str, Any]:
    """Return everything that labels of people decide, after all background work."""
    submitted_work.refresh_quality(now=factories.NOW)
    trace_ids = list(Trace.objects.filter(project=project).values_list("pk", flat=True))
    differing = tallies.recount_tallies(trace_ids=trace_ids, now=factories.NOW)
    content = project_stats.build_stats_content(project_id=project.pk, now=factories.NOW)
    frozen = manifest.freeze_manifest(
        project=project,
        filters=ManifestFilters(purposes=["work"]),
        purpose="generation",
        now=factories.NOW,
        by=None,
    )
    labels = labeled_traces.load_trace_labels(frozen)
    return {
        "differing": differing,
        "statistics": {name: content[name] for name in _BY_PEOPLE if name in content},
        "tallies": list(AgreementTally.objects.order_by("pk").values_list("trace", "first", "second", "first_end")),
        "gold": list(GoldAnswer.objects.order_by("pk").values_list("rater", "verdict")),
        "settlements": list(Settlement.objects.order_by("trace").values_list("trace", "state", "reason", "n_votes")),
        "consensus": dict(Consensus.objects.order_by("revision").values_list("trace", "first_error")),  # the latest
        "evaluation": (labels.traces, labels.first_errors.tolist(), labels.is_reserve.tolist()),
        "new_submissions": generations.count_new_submissions(project),
        "labeled_here": [queue.is_labeled_here(trace_id=trace) for trace in trace_ids],
        "slots": list(Assignment.objects.filter(holds_slot=True).order_by("pk").values_list("pk", flat=True)),
    }


@pytest.mark.fault
@pytest.mark.parametrize("seed", range(4))
def test_machine_labels_change_nothing_of_people(seed: int) -> None:
    dice = random.Random(seed)
    project = factories.make_project(overlap=2)
    label_by_people(project, 6, dice)
    before = describe_people(project)
    label_by_machines(project, dice.choice([1, 5]), dice)
    assert describe_people(project) == before
    assert Assignment.objects.filter(rater__kind="machine").count() >= 6
