"""The consensus of some raters: by the labels that remain, without changing the project."""

import json
from typing import Any

import pytest

from labeling.datasets.selection import ManifestFilters
from labeling.models import Consensus, Project, Rater, RaterModelFit, Settlement, Trace
from labeling.quality import adjudication, chosen_raters, resolve
from labeling.quality.chosen_raters import RaterChoice
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, read_file
from tests.labeling.quality import submitted_work

pytestmark = pytest.mark.django_db
GOOD, EARLY, LATE = [1, 1, 1], [1, -1], [1, 1, -1]


@pytest.fixture
def people() -> list[Rater]:
    """A bad annotator and three good ones. The bad one labeled all traces but the last."""
    project = factories.make_project(overlap=3, reserve_problem_share=0.0)
    return submitted_work.make_raters(project, 4)


def make_traces(people: list[Rater]) -> list[Trace]:
    """Outvoted, decisive, tied without them, decided by a person, and without them."""
    bad, one, two, three = people
    plans: list[dict[Rater, list[int]]] = [
        {bad: GOOD, one: EARLY, two: EARLY},
        {bad: GOOD, one: GOOD, two: EARLY, three: EARLY},
        {bad: EARLY, one: EARLY, two: LATE},
        {bad: GOOD, one: EARLY, two: LATE},
        {one: EARLY, two: EARLY, three: EARLY},
    ]
    traces = []
    for plan in plans:
        traces.append(factories.make_trace(one.project))
        for rater, ratings in plan.items():
            submitted_work.submit_trace(rater, traces[-1], ratings)
    resolve.resolve_due_traces(now=factories.NOW)
    adjudication.decide_trace(trace_id=traces[3].pk, first_error=2, by=factories.make_user(), now=factories.NOW)
    return traces


def infer(project: Project, choice: RaterChoice) -> dict[int, Any]:
    revisions = list(chosen_raters.select_affected(project=project, choice=choice))
    inferred = chosen_raters.infer_consensus(project=project, revisions=revisions, choice=choice)
    return {each.current.trace_id: each.draft for each in inferred}


def test_remaining_labels_decide(people: list[Rater]) -> None:
    outvoted, tied, decisive, decided, other = make_traces(people)
    project, bad = people[0].project, people[0].labeler
    assert bad is not None
    states = dict(Settlement.objects.values_list("trace", "state"))
    assert [states[trace.pk] for trace in (outvoted, decisive, decided, other)] == [
        *["settled"] * 2,
        "decided",
        "settled",
    ]
    drafts = infer(project, RaterChoice(without=[bad]))
    assert drafts.keys() == {outvoted.pk, decisive.pk, decided.pk}  # the tied one is not settled
    assert tied.pk not in drafts
    assert (drafts[outvoted.pk].first_error, drafts[outvoted.pk].n_votes, drafts[outvoted.pk].confidence) == (1, 2, 1.0)
    assert drafts[decisive.pk] is None
    assert (drafts[decided.pk].first_error, drafts[decided.pk].source) == (2, "person")
    only = infer(project, RaterChoice(only=[people[1].labeler]))
    assert {trace: draft.first_error for trace, draft in only.items() if trace != decided.pk} == {
        outvoted.pk: 1,
        decisive.pk: 1,
        other.pk: 1,
    }
    assert {draft.n_votes for draft in only.values()} == {1}
    assert infer(project, RaterChoice(only=[]))[outvoted.pk] is None


@pytest.mark.parametrize(("late_detection", "expected"), [(0.5, None), (0.95, 1)])
def test_model_that_settles_traces_decides_where_it_finds_a_place_likely(
    people: list[Rater], late_detection: float, expected: int | None
) -> None:
    """Without the bad annotator, the others find the first error at two steps. The earlier one has probability 0.73 or
    0.84."""
    decisive, bad = make_traces(people)[2], people[0].labeler
    assert bad is not None
    RaterModelFit.objects.create(
        project=people[0].project,
        number=1,
        made_at=factories.NOW,
        n_traces=1,
        n_readings=1,
        n_gold=40,
        rates={"others": [0.02, 0.9, late_detection]},
        hazards={"domains": {}, "all": [0.2] * 25},
        n_checked=40,
        checked_right=40,
        checked_expected=38.0,
        checked_deviation=1.0,
    )
    draft = infer(people[0].project, RaterChoice(without=[bad]))[decisive.pk]
    assert (draft.first_error if draft else None) == expected


@pytest.mark.fault
def test_snapshot_infers_the_consensus_again_and_says_so(people: list[Rater], tmp_path: Any, settings: Any) -> None:
    settings.DATA_DIR = tmp_path
    outvoted, _tied, decisive, decided, other = make_traces(people)
    project, bad = people[0].project, people[0].labeler
    assert bad is not None
    current = list(Settlement.objects.order_by("trace").values())

    def export(**filters: Any) -> tuple[Any, dict[int, dict[int, Any]]]:
        snapshot = build_snapshot(project, "steps", filters=ManifestFilters(is_consensus=True, **filters))
        rows: dict[int, dict[int, Any]] = {}
        for line in read_file(snapshot, "data/steps/train.jsonl").splitlines():
            row = json.loads(line)
            assert str(bad) not in {each["rater"] for each in row["ratings"]} or not filters
            if row["label"] is not None:
                rows.setdefault(row["trace"], {})[row["step"]] = row["label"]
        return snapshot, rows

    n_revisions = Consensus.objects.count()
    made, rows = export(without_labelers=[bad])
    assert rows == {outvoted.pk: {0: 1, 1: -1}, decided.pk: {0: 1, 1: 1, 2: -1}, other.pk: {0: 1, 1: -1}}
    plan = made.plan
    assert (plan["n_inferred"], plan["n_inferred_from_one"], plan["n_undetermined"]) == (2, 0, 1)
    assert made.manifest is not None
    assert made.manifest.left_out["rater"] == 6  # their four labels, and two of the undetermined trace
    assert list(Settlement.objects.order_by("trace").values()) == current
    n_inferred = Consensus.objects.count() - n_revisions
    again, same = export(without_labelers=[bad])
    assert (same, Consensus.objects.count() - n_revisions) == (rows, n_inferred)
    _made, of_one = export(labelers=[people[1].labeler])
    assert of_one.keys() == {outvoted.pk, decisive.pk, decided.pk, other.pk}
    _made, of_two = export(without_labelers=[bad], min_raters=3)
    assert of_two.keys() == {other.pk}
    assert read_file(made, "README.md") != read_file(again, "README.md")
