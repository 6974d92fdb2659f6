"""The effects of suggestions: what seeing a machine's labels does to raters, from arms that were drawn at random.

All effects of a plan compare an exposed arm with the blind one: accuracy on hidden gold, how often raters give the
machine's answer where it is wrong, how often they name an error, and the time per trace. Exposed labels count nowhere
else. The plan ends by itself when the second effect is established as harm.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Count, Q, QuerySet

from labeling.models import Exposure, Gold, Submission, SuggestionPlan
from labeling.models.assignment import AssignmentPurpose, AssignmentState
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.models.suggestion import ExposureArm, SuggestionEnd
from labeling.projects import suggestions
from labeling.quality import gold_monitor, submitted_reports
from labeling.quality.submitted_reports import RevisionReport
from stats import exposure_effects
from stats.exposure_effects import HarmTest, ShareEffect, TimeEffect

EXPOSED_ARMS = (ExposureArm.SUGGEST, ExposureArm.REVEAL)
MAX_SUBMISSIONS = 10_000  # the latest ones of a plan


class ExposedAnswer(NamedTuple):
    """A submission of a drawn arm, beside the labels of the machine."""

    arm: str
    report: RevisionReport
    machine: RevisionReport
    accepted: list[int | None] | None  # of hidden gold; None for work
    ms: int | None

    @property
    def is_machine_wrong(self) -> bool:
        return self.accepted is not None and self.machine.position not in self.accepted

    @property
    def follows(self) -> bool:
        return self.report.position == self.machine.position

    @property
    def is_right(self) -> bool:
        verdict = gold_monitor.judge_first_error(accepted=self.accepted or [], first_error=self.report.position)
        return verdict == GoldVerdict.RIGHT


@dataclass(frozen=True)
class ArmEffects:
    """One exposed arm against the blind one."""

    arm: ExposureArm
    n: int
    gold: ShareEffect
    follow: ShareEffect
    errors: ShareEffect
    time: TimeEffect | None
    harm: HarmTest
    n_changed: int  # submissions whose rater changed an answer after its label was shown


@dataclass(frozen=True)
class PlanEffects:
    n_blind: int
    n_machine_gold: int  # hidden gold that the machine has labeled
    n_machine_wrong: int  # of it, where the machine is wrong
    arms: list[ArmEffects]


@dataclass(frozen=True)
class PlanSummary:
    """A plan with its submissions by arm. Plans are never pooled: each has its own machine, shares and draws."""

    plan: SuggestionPlan
    counts: dict[str, int]


def list_plans(project_id: int) -> list[PlanSummary]:
    """Return all plans of a project, newest first."""
    plans = SuggestionPlan.objects.filter(project=project_id).select_related("machine").order_by("-pk")
    rows = _select_submitted().filter(plan__project=project_id).order_by("plan", "arm")
    counts: dict[int, dict[str, int]] = {}
    for plan, arm, n in rows.values_list("plan", "arm").annotate(n=Count("pk")):
        counts.setdefault(plan, {})[arm] = n
    return [PlanSummary(plan, dict.fromkeys(ExposureArm.values, 0) | counts.get(plan.pk, {})) for plan in plans]


def list_exposed_arms(plan: SuggestionPlan) -> list[ExposureArm]:
    return [arm for arm in EXPOSED_ARMS if plan.shares[arm] > 0]


def measure_effects(plan: SuggestionPlan) -> PlanEffects:
    """Measure all effects of a plan."""
    answers = _load_answers(_select_exposures(plan))
    blind = _of(answers, ExposureArm.BLIND)
    gold = {each.report.trace_id: each.is_machine_wrong for each in answers if each.accepted is not None}
    arms = []
    for arm in list_exposed_arms(plan):
        exposed = _of(answers, arm)
        arms.append(
            ArmEffects(
                arm=arm,
                n=len(exposed),
                gold=_compare(_on_gold(exposed), _on_gold(blind), "is_right"),
                follow=_compare(_on_wrong(exposed), _on_wrong(blind), "follows"),
                errors=_compare_errors(exposed, blind),
                time=exposure_effects.compare_times(_list_seconds(exposed), _list_seconds(blind)),
                harm=_test_harm(plan, arm, answers),
                n_changed=Exposure.objects.filter(plan=plan, arm=arm, n_changed__gt=0).count(),
            )
        )
    return PlanEffects(len(blind), len(gold), sum(gold.values()), arms)


def describe_effects(plan: SuggestionPlan) -> dict[str, Any]:
    """Return the plan and its effects as JSON values, with the ids of all plans of the project."""
    effects = measure_effects(plan)
    return {
        "id": plan.pk,
        "machine": plan.machine.machine,
        "reveal_share": plan.reveal_share,
        "suggest_share": plan.suggest_share,
        "seed": plan.seed,
        "began_at": plan.began_at.isoformat(),
        "ended_at": plan.ended_at and plan.ended_at.isoformat(),
        "ended_because": plan.ended_because,
        "n_blind": effects.n_blind,
        "n_machine_gold": effects.n_machine_gold,
        "n_machine_wrong": effects.n_machine_wrong,
        "arms": [_describe_arm(arm) for arm in effects.arms],
        "plans": [row.plan.pk for row in list_plans(plan.project_id)],
    }


def _describe_arm(arm: ArmEffects) -> dict[str, Any]:
    time, harm = arm.time, arm.harm
    return {
        "arm": arm.arm.value,
        "n": arm.n,
        "n_changed": arm.n_changed,
        **{name: _describe_share(getattr(arm, name)) for name in ("follow", "gold", "errors")},
        "time": time
        and {
            "ratio": time.ratio,
            "low": time.interval.low,
            "high": time.interval.high,
            "n": time.n,
            "n_blind": time.blind_n,
            "power": time.power,
        },
        "harm": {"is_harmful": harm.is_harmful, "decisions": harm.n_now, "z": harm.z, "boundary": harm.boundary},
    }


def _describe_share(effect: ShareEffect) -> dict[str, Any]:
    interval = effect.interval
    return {
        "exposed": effect.exposed,
        "n": effect.n,
        "blind": effect.blind,
        "n_blind": effect.blind_n,
        "difference": effect.difference,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "power": effect.power,
        "n_needed": effect.n_needed,
    }


def stop_if_harmful(*, project_id: int, now: dt.datetime) -> bool:
    """End the project's plan if its harm is established by the answers to hidden gold. Return whether it ended."""
    plan = SuggestionPlan.objects.active().filter(project=project_id).select_related("machine").first()
    if plan is None:
        return False
    answers = _load_answers(_select_exposures(plan).filter(assignment__purpose=AssignmentPurpose.GOLD))
    for arm in list_exposed_arms(plan):
        harm = _test_harm(plan, arm, answers)
        if harm.is_harmful:
            effect = _compare(_on_wrong(_of(answers, arm)), _on_wrong(_of(answers, ExposureArm.BLIND)), "follows")
            return suggestions.stop_suggestions(
                plan=plan,
                because=SuggestionEnd.HARM,
                by=None,
                now=now,
                arm=arm.value,
                decisions=round(harm.n_now),
                exposed=None if effect.exposed is None else round(effect.exposed, 3),
                blind=None if effect.blind is None else round(effect.blind, 3),
            )
    return False


def _of(answers: Sequence[ExposedAnswer], arm: ExposureArm) -> list[ExposedAnswer]:
    return [each for each in answers if each.arm == arm]


def _on_gold(answers: Sequence[ExposedAnswer]) -> list[ExposedAnswer]:
    return [each for each in answers if each.accepted is not None]


def _on_wrong(answers: Sequence[ExposedAnswer]) -> list[ExposedAnswer]:
    return [each for each in answers if each.is_machine_wrong]


def _compare(exposed: Sequence[ExposedAnswer], blind: Sequence[ExposedAnswer], name: str) -> ShareEffect:
    hits, blind_hits = (sum(getattr(each, name) for each in answers) for answers in (exposed, blind))
    return ShareEffect(hits, len(exposed), blind_hits, len(blind))


def _compare_errors(exposed: Sequence[ExposedAnswer], blind: Sequence[ExposedAnswer]) -> ShareEffect:
    counts = [sum(each.report.position is not None for each in answers) for answers in (exposed, blind)]
    return ShareEffect(counts[0], len(exposed), counts[1], len(blind))


def _list_seconds(answers: Sequence[ExposedAnswer]) -> list[float]:
    return [each.ms / 1000 for each in answers if each.ms]


def _test_harm(plan: SuggestionPlan, arm: ExposureArm, answers: Sequence[ExposedAnswer]) -> HarmTest:
    """Test one arm. The error rate is shared by the arms in use."""
    decisions = [each for each in _on_wrong(answers) if each.arm in (arm, ExposureArm.BLIND)]
    return exposure_effects.find_harm(
        [each.arm == arm for each in decisions],
        [each.follows for each in decisions],
        alpha=exposure_effects.ALPHA / len(list_exposed_arms(plan)),
        horizon=exposure_effects.plan_horizon(plan.shares[arm], plan.shares[ExposureArm.BLIND]),
    )


def _select_exposures(plan: SuggestionPlan) -> QuerySet[Exposure]:
    """Return the exposures of submissions that count, in the order of submission."""
    return _select_submitted().filter(plan=plan).order_by("assignment__submitted_at", "pk")


def _select_submitted() -> QuerySet[Exposure]:
    # Otherwise the plan ended before the trace was opened.
    was_shown = Q(arm=ExposureArm.BLIND) | Q(assignment__is_assisted=True)
    return Exposure.objects.filter(
        was_shown,
        assignment__state=AssignmentState.SUBMITTED,
        assignment__set_aside=None,
        assignment__purpose__in=(AssignmentPurpose.WORK, AssignmentPurpose.GOLD),
    )


def _load_answers(exposures: QuerySet[Exposure]) -> list[ExposedAnswer]:
    """Return what was submitted first; after a reveal, with the changes that it caused. Answers without a result are
    left out, and so are corrections."""
    rows = list(exposures.reverse().select_related("assignment")[:MAX_SUBMISSIONS])[::-1]
    own = {row.pk: (row.pk, 2 if row.n_changed else 1) for row in rows}
    shown = {row.shown_id: (row.shown_id, row.shown_revision) for row in rows}
    reports = {
        report.assignment_id: report
        for report in submitted_reports.load_revision_reports([*own.values(), *shown.values()])
    }
    golds = Gold.objects.filter(use=GoldUse.HIDDEN, trace__in={row.assignment.trace_id for row in rows})
    accepted = dict(golds.order_by("pk").values_list("trace", "accepted_first_errors"))
    first = Submission.objects.filter(assignment__in=own, revision=1)
    times = dict(first.values_list("assignment", "total_ms"))
    return [
        ExposedAnswer(
            arm=row.arm,
            report=reports[row.pk],
            machine=reports[row.shown_id],
            accepted=(
                accepted.get(row.assignment.trace_id) if row.assignment.purpose == AssignmentPurpose.GOLD else None
            ),
            ms=times.get(row.pk),
        )
        for row in rows
        if row.pk in reports and row.shown_id in reports and not reports[row.pk].is_censored
    ]
