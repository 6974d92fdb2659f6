"""Score answers to gold traces, and pause a rater whose accuracy on hidden gold is too low.

Only this module writes gold answers. The unit is the trace: an answer is right if its first error is in the accepted
set. Only the first revision is scored, not later corrections. Raters never learn which trace was gold, except in
training.

Each answer to hidden gold runs Wald's sequential test (the first 60 answers), then a CUSUM, against the project's own
gold threshold: the 25th percentile of what its raters reach. A fixed threshold would pause almost everyone in a project
with hard traces. Without a threshold, no one is paused. A lead resumes a paused rater, and the test starts over.

Hidden gold is scored in the background, and a pause takes effect a random number of traces later (`labeling.raters`).
Otherwise the time of a response, or the moment of a pause, would reveal which trace was gold.
"""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from labeling import raters
from labeling.models import Assignment, Gold, GoldAnswer, Project, QueueEntry, ScreeningResult
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.models.queue import SamplingSource
from labeling.projects import lifecycle
from labeling.quality import submitted_reports
from stats import intervals, sequential_tests
from stats.estimates import Interval, Reason

GOLD_USE_OF_PURPOSE = {
    AssignmentPurpose.TRAINING: GoldUse.TRAINING,
    AssignmentPurpose.SCREENING: GoldUse.SCREENING,
    AssignmentPurpose.GOLD: GoldUse.HIDDEN,
}
TRUSTED_AFTER = dt.timedelta(days=14)  # then raters get less gold: `Project.proven_gold_share`
MAX_BASELINE_ANSWERS = 5000  # the search for five raters reads at most this many answers
_LOWEST, _HIGHEST = 0.2, 0.99


def judge_first_error(
    *, accepted: Sequence[int | None], first_error: int | None, is_censored: bool = False
) -> GoldVerdict:
    """Compare a first error with the accepted step positions; None in `accepted` means that "no error" is right too."""
    if is_censored:
        return GoldVerdict.GAVE_UP
    if first_error in accepted:
        return GoldVerdict.RIGHT
    if first_error is None:
        return GoldVerdict.MISSED
    passed_an_error = None not in accepted and any(error is not None and error < first_error for error in accepted)
    return GoldVerdict.MISSED if passed_an_error else GoldVerdict.BLAMED


def record_gold_answer(*, assignment_id: int, now: dt.datetime) -> GoldAnswer | None:
    """Score the first revision if the trace is gold for this purpose, and return the answer if it is new.

    An answer of a rater who saw a machine's labels is not scored: it would measure the machine as well.
    `suggestion_effects` compares such answers with blind ones."""
    assignment = Assignment.objects.get(pk=assignment_id)
    if assignment.is_assisted:
        return None
    use = GOLD_USE_OF_PURPOSE.get(AssignmentPurpose(assignment.purpose))
    # The newest gold, even if retired: an assignment that was open at that time is still scored.
    gold = Gold.objects.filter(trace_id=assignment.trace_id, use=use).order_by("-pk").first()
    if use is None or gold is None:
        return None
    report = submitted_reports.load_revision_reports([(assignment_id, 1)])[0]
    verdict = judge_first_error(
        accepted=gold.accepted_first_errors, first_error=report.position, is_censored=report.is_censored
    )
    answer, is_new = GoldAnswer.objects.get_or_create(
        assignment=assignment,
        defaults={
            "gold": gold,
            "project_id": assignment.project_id,
            "rater_id": assignment.rater_id,
            "use": use,
            "attempt": assignment.attempt,
            "first_error": report.position,
            "verdict": verdict,
            "answered_at": assignment.submitted_at or now,
        },
    )
    return answer if is_new else None


def rescore_gold_answers(*, gold: Gold, now: dt.datetime) -> int:
    """Score all answers again after the accepted set changed. Return how many verdicts changed."""
    changed = []
    for answer in gold.answers.exclude(verdict=GoldVerdict.GAVE_UP):
        verdict = judge_first_error(accepted=gold.accepted_first_errors, first_error=answer.first_error)
        if verdict != answer.verdict:
            answer.verdict = verdict
            changed.append(answer)
    GoldAnswer.objects.bulk_update(changed, ["verdict"], batch_size=200)
    return len(changed)


def pause_if_below_threshold(*, answer: GoldAnswer, now: dt.datetime) -> None:
    """Test a rater after one more answer to hidden gold. The pause follows some traces later."""
    threshold = answer.project.gold_bar
    if answer.use != GoldUse.HIDDEN or threshold is None or answer.rater.paused_at is not None:
        return
    right = _load_answers_since_resumed(answer)
    if sequential_tests.find_pause(right, sequential_tests.make_plan(p0=threshold)) is None:
        return
    evidence = {"right": sum(right), "gold": len(right), "threshold": threshold}
    note = _("%(right)d of %(n)d hidden gold traces were correct; at least %(bar)d%% is required.") % {
        "right": sum(right),
        "n": len(right),
        "bar": round(100 * threshold),
    }
    raters.schedule_pause(
        rater=answer.rater, reason=explain_pause(), note=note, now=now, evidence={"gold_threshold": evidence}
    )


def explain_pause() -> str:
    """Return what raters read when a check pauses them. They must not learn which traces are gold."""
    return _(
        "Some of your results differ from what an automatic check expects. Checks can be wrong, so a"
        " project lead has been asked to look at your work and can let you continue. All your work is saved,"
        " and you can write to the lead."
    )


def _load_answers_since_resumed(answer: GoldAnswer) -> list[bool]:
    rows = GoldAnswer.objects.counted().filter(rater=answer.rater_id, use=GoldUse.HIDDEN)
    if answer.rater.watched_since_at is not None:
        rows = rows.filter(answered_at__gt=answer.rater.watched_since_at)
    verdicts = rows.order_by("answered_at", "pk").values_list("verdict", flat=True)
    return [verdict == GoldVerdict.RIGHT for verdict in verdicts]


def mark_trusted_raters(*, project_id: int, now: dt.datetime) -> int:
    """Mark raters as trusted 14 days after they started or were resumed. Return how many."""
    return raters.mark_trusted(project_id=project_id, since=now - TRUSTED_AFTER, now=now)


def set_gold_threshold(*, project: Project, now: dt.datetime) -> float | None:
    """Set the gold threshold once there are enough gold answers of enough raters."""
    if project.gold_bar is not None:
        return None
    baseline = measure_baseline_accuracy(project_id=project.pk)
    if not isinstance(baseline, float):
        return None
    threshold = min(max(baseline, _LOWEST), _HIGHEST)
    lifecycle.set_gold_threshold(project=project, bar=threshold, by=None, now=now)
    return threshold


def measure_baseline_accuracy(*, project_id: int) -> float | Reason:
    """Return the accuracy that raters reach, counting only those who passed the screening if the project has one."""
    rows = GoldAnswer.objects.counted().filter(project=project_id, use=GoldUse.HIDDEN).order_by("answered_at", "pk")
    if uses_screening(project_id=project_id):
        passed = ScreeningResult.objects.filter(rater=OuterRef("rater"), has_passed=True)
        rows = rows.filter(Exists(passed))
    answers = list(rows.values_list("rater_id", "verdict")[:MAX_BASELINE_ANSWERS])
    return sequential_tests.baseline_accuracy(
        raters=[rater for rater, _verdict in answers],
        right=[verdict == GoldVerdict.RIGHT for _rater, verdict in answers],
    )


def uses_screening(*, project_id: int) -> bool:
    """Tell whether the project has a screening set in use, or any screening results."""
    served = QueueEntry.objects.open().filter(lane__project=project_id, lane__arm=SamplingSource.SCREENING)
    return served.exists() or ScreeningResult.objects.filter(rater__project=project_id).exists()


@dataclass(frozen=True)
class GoldAccuracy:
    """Verdict counts over `n` gold traces: `missed` are missed errors, `blamed` false alarms."""

    n: int
    right: int
    missed: int
    blamed: int
    gave_up: int

    @property
    def share(self) -> float | None:
        return self.right / self.n if self.n else None

    @property
    def interval(self) -> Interval:
        return intervals.wilson_interval(right=self.right, n=self.n)


def load_gold_accuracy(*, rater_id: int, use: GoldUse = GoldUse.HIDDEN, attempt: int | None = None) -> GoldAccuracy:
    """Return a rater's accuracy on gold of one use, or in one screening attempt."""
    answers = GoldAnswer.objects.counted().filter(rater_id=rater_id, use=use)
    answers = answers if attempt is None else answers.filter(attempt=attempt)
    return count_verdicts(Counter(answers.values_list("verdict", flat=True)))


def count_verdicts(counts: Counter[str]) -> GoldAccuracy:
    return GoldAccuracy(counts.total(), **{verdict.value: counts[verdict] for verdict in GoldVerdict})
