import datetime as dt
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from events.models import Event
from labeling import queue
from labeling.datasets import manifest as manifests
from labeling.datasets.selection import ManifestFilters
from labeling.models import (
    AgreementTally,
    Assignment,
    Consensus,
    Exposure,
    FirstErrorReport,
    GoldAnswer,
    Project,
    ProjectStats,
    Settlement,
    SuggestionPlan,
    Trace,
)
from labeling.models.assignment import AssignmentPurpose
from labeling.models.suggestion import SuggestionEnd
from labeling.projects import suggestions
from labeling.projects.suggestions import SuggestionsRefused
from labeling.quality import consensus, gold_monitor, resolve, suggestion_effects
from labeling.queue import exposures
from machines import passports
from prm import generations, labeled_traces
from tests import factories
from tests.factories import NOW
from tests.labeling import suggested_project
from tests.labeling.quality import submitted_work
from tests.labeling.queue import queues
from tests.machines import machine_labels

pytestmark = pytest.mark.django_db
LATER = NOW + dt.timedelta(minutes=5)


def ratings_of(trace: Trace, first_error: int | None) -> list[int]:
    return [rating for _, rating in machine_labels.list_ratings(trace, first_error)]


def answer(
    plan: SuggestionPlan, trace: Trace, arm: str, first_error: int | None, *, machine: int | None = 0, **fields: str
) -> Assignment:
    """Let a new rater of this arm submit a trace that the machine has labeled."""
    rater = suggested_project.find_rater(plan, trace, arm)
    assignment = suggested_project.assign(plan, rater, trace, machine, **fields)
    return suggested_project.submit(assignment, ratings_of(trace, first_error))


# Settings


@pytest.mark.parametrize(("reveal", "suggest"), [(0.0, 0.0), (0.5, 0.5), (-0.1, 0.3)])
def test_shares_leave_a_blind_control_group(reveal: float, suggest: float) -> None:
    with pytest.raises(SuggestionsRefused):
        suggested_project.start(factories.make_project(), reveal=reveal, suggest=suggest)


def test_only_a_machine_of_the_project_can_suggest() -> None:
    project = factories.make_project()
    for rater in (factories.make_rater(project), factories.make_machine_rater(factories.make_project())):
        with pytest.raises(SuggestionsRefused):
            suggestions.start_suggestions(
                project=project, machine=rater, reveal_share=0, suggest_share=0.5, by=None, now=NOW
            )


def test_another_setting_replaces_the_plan() -> None:
    project = factories.make_project()
    first = suggested_project.start(project, suggest=0.5)
    second = suggested_project.start(project, suggest=0.3)
    first.refresh_from_db()
    assert (first.ended_because, suggestions.find_plan(project.pk)) == (SuggestionEnd.CHANGED, second)
    assert suggestions.stop_suggestions(plan=second, because=SuggestionEnd.LEAD, by=None, now=NOW)
    assert not suggestions.stop_suggestions(plan=second, because=SuggestionEnd.LEAD, by=None, now=NOW)
    assert list(Event.objects.filter(what="suggestions.stopped").values_list("detail__why", flat=True)) == [
        "changed",
        "lead",
    ]


# Assisted labels count nowhere


def list_headline(project: Project, plan: SuggestionPlan) -> dict[str, Any]:
    """Compute everything that only blind labels enter."""
    submitted_work.refresh_quality(now=LATER)
    manifest = manifests.freeze_manifest(
        project=project,
        filters=ManifestFilters(purposes=[AssignmentPurpose.WORK]),
        purpose="generation",
        now=LATER,
        by=None,
    )
    labels = labeled_traces.load_trace_labels(manifest)
    passport = passports.build_passport(plan.machine, epsilon=passports.DEFAULT_EPSILON)
    content = ProjectStats.objects.get(project=project).content
    return {
        "statistics": content,
        "tallies": list(AgreementTally.objects.order_by("pk").values()),
        "reports": list(FirstErrorReport.objects.order_by("assignment").values()),
        "consensus": list(
            consensus.current_revisions(project_id=project.pk)
            .order_by("trace")
            .values("trace", "first_error", "labels", "n_votes", "posterior")
        ),
        "settlements": list(Settlement.objects.order_by("trace").values("trace", "state", "reason", "n_votes")),
        "gold": list(GoldAnswer.objects.order_by("pk").values("assignment", "verdict")),
        "threshold": gold_monitor.measure_baseline_accuracy(project_id=project.pk),
        "training": (labels.traces, labels.first_errors.tolist()),
        "new_submissions": generations.count_new_submissions(project),
        "passport": passport,
    }


@pytest.mark.fault
@given(
    shown=st.lists(
        st.tuples(
            st.integers(0, 5),
            st.sampled_from(["suggest", "reveal"]),
            st.sampled_from([None, 0, 1, 2]),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(
    max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_headline_figures_are_unchanged_by_any_number_of_assisted_labels(
    shown: list[tuple[int, str, int | None, bool]], db: None
) -> None:
    project = submitted_work.project_with_two_submissions()
    plan = suggested_project.start(project, reveal=0.45, suggest=0.45)
    traces = list(Trace.objects.filter(project=project).order_by("pk"))
    machine_labels.label_by_machine(plan.machine, dict.fromkeys(traces, 1))
    golds = [factories.make_trace(project) for _ in range(6)]
    for gold in golds:
        machine_labels.make_hidden_gold(gold, None)
        submitted_work.submit_trace(factories.make_rater(project), gold, [1, 1, 1], purpose="gold")
    machine_labels.label_by_machine(plan.machine, dict.fromkeys(golds, 1))
    before = list_headline(project, plan)
    for place, arm, first_error, is_gold in shown:
        trace = (golds if is_gold else traces)[place]
        answer(plan, trace, arm, first_error, purpose="gold" if is_gold else "work")
    after = list_headline(project, plan)
    assert Exposure.objects.filter(plan=plan).count() == len(shown)
    for name, value in before.items():
        assert after[name] == value, name


def test_a_trace_with_an_assisted_label_still_gets_all_its_blind_labels() -> None:
    project = factories.make_project(overlap=2)
    plan = suggested_project.start(project, suggest=0.9)
    trace = factories.make_trace(project)
    machine_labels.label_by_machine(plan.machine, {trace: None})
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=2, now=NOW)
    exposed = suggested_project.find_rater(plan, trace, "suggest")
    claim = queue.claim_trace(rater_id=exposed.pk, now=NOW, opened=True)
    suggested_project.submit(Assignment.objects.get(pk=claim.assignment_id), [1, 1, 1])
    assert queues.is_balanced([trace.pk])
    for _ in range(2):
        claim = queue.claim_trace(
            rater_id=suggested_project.find_rater(plan, trace, "blind").pk, now=LATER, opened=True
        )
        suggested_project.submit(Assignment.objects.get(pk=claim.assignment_id), [1, 1, 1], now=LATER)
    resolve.resolve_due_traces(now=LATER)
    assert Settlement.objects.get(trace=trace).state == "settled"
    assert Consensus.objects.get(trace=trace).n_votes == 2
    with pytest.raises(queue.NothingLeft):
        queue.claim_trace(rater_id=factories.make_rater(project).pk, now=LATER)


# Effects


@pytest.mark.fault
def test_effects_compare_the_arms() -> None:
    project = factories.make_project()
    plan = suggested_project.start(project, reveal=0.3, suggest=0.3)
    golds = [factories.make_trace(project) for _ in range(4)]
    for gold in golds:
        machine_labels.make_hidden_gold(gold, None)
        answer(plan, gold, "blind", None, purpose="gold")
        answer(plan, gold, "suggest", 0, purpose="gold")
    answer(plan, factories.make_trace(project), "suggest", None, machine=None)
    effects = suggestion_effects.measure_effects(plan)
    suggest, reveal = effects.arms
    assert (effects.n_blind, effects.n_machine_gold, effects.n_machine_wrong) == (4, 4, 4)
    assert (suggest.arm, suggest.n, reveal.n) == ("suggest", 5, 0)
    assert (suggest.follow.exposed, suggest.follow.blind, suggest.follow.difference) == (1, 0, 1)
    assert (suggest.gold.exposed, suggest.gold.blind) == (0, 1)
    assert (suggest.errors.exposed, suggest.errors.blind) == (0.8, 0)
    assert reveal.follow.difference is None


def test_effects_read_the_answer_after_the_reveal() -> None:
    project = factories.make_project()
    plan = suggested_project.start(project, reveal=0.9)
    trace = factories.make_trace(project)
    machine_labels.make_hidden_gold(trace, None)
    assignment = suggested_project.assign(
        plan, suggested_project.find_rater(plan, trace, "reveal"), trace, 0, purpose="gold"
    )
    suggested_project.reveal_and_change(assignment, 0, 1, -1)
    (arm,) = suggestion_effects.measure_effects(plan).arms
    assert (arm.n_changed, arm.follow.exposed, arm.gold.exposed) == (1, 1, 0)


@pytest.mark.fault
def test_established_harm_turns_suggestions_off() -> None:
    project = factories.make_project()
    plan = suggested_project.start(project, suggest=0.5)
    golds = [factories.make_trace(project, ["One."]) for _ in range(46)]
    for gold in golds:
        machine_labels.make_hidden_gold(gold, None)
    machine_labels.label_by_machine(plan.machine, dict.fromkeys(golds, 0))
    raters = {arm: factories.make_rater(project) for arm in ("blind", "suggest")}
    shown = dict(Assignment.objects.filter(rater=plan.machine).values_list("trace", "pk"))
    for gold in golds[:-1]:
        for arm, rater in raters.items():
            made = factories.make_submitted(rater, gold, purpose="gold", is_assisted=arm != "blind")
            factories.make_judgment(made, rating=-1 if arm == "suggest" else 1)
            Exposure.objects.create(
                assignment=made,
                plan=plan,
                arm=arm,
                probability=0.5,
                shown_id=shown[gold.pk],
                shown_revision=1,
                drawn_at=NOW,
            )
    answer(plan, golds[-1], "blind", None, purpose="gold")
    plan.refresh_from_db()
    assert (plan.ended_because, plan.ended_at) == (SuggestionEnd.HARM, NOW)
    event = Event.objects.get(what="suggestions.stopped")
    assert (event.detail["arm"], event.detail["exposed"], event.detail["blind"], event.by) == ("suggest", 1, 0, None)
    trace = factories.make_trace(project)
    machine_labels.label_by_machine(plan.machine, {trace: None})
    queue.enqueue(project_id=project.pk, arm="uniform", trace_ids=[trace.pk], slots=1, now=NOW)
    assert queue.claim_trace(rater_id=factories.make_rater(project).pk, now=NOW, chance=0.5).suggestion_plan is None
    assert not suggestion_effects.stop_if_harmful(project_id=project.pk, now=NOW)
    assert exposures.choose_arm(plan, 0.99)[0] == "blind"
