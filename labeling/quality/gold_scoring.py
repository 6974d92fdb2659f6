"""Score answers to gold traces. The only module that writes gold answers.

The unit is the trace: an answer is right if its first error is in the accepted set. Only the first revision is scored,
not later corrections. Raters never learn which trace was gold, except in training.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from labeling.models import Assignment, Gold, GoldAnswer
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.quality import submitted_readings
from labeling.quality.submitted_readings import RevisionReport
from stats import intervals
from stats.estimates import Interval

GOLD_USE_OF_PURPOSE = {
    AssignmentPurpose.TRAINING: GoldUse.TRAINING,
    AssignmentPurpose.SCREENING: GoldUse.SCREENING,
    AssignmentPurpose.GOLD: GoldUse.HIDDEN,
}


def judge_first_error(*, accepted: Sequence[int | None], report: RevisionReport) -> GoldVerdict:
    """Compare a report with the accepted step positions; None in `accepted` means that "no error" is right too."""
    if report.is_censored:
        return GoldVerdict.GAVE_UP
    if report.position in accepted:
        return GoldVerdict.RIGHT
    if report.position is None:
        return GoldVerdict.MISSED
    passed_an_error = None not in accepted and any(error is not None and error < report.position for error in accepted)
    return GoldVerdict.MISSED if passed_an_error else GoldVerdict.BLAMED


def score_gold_answer(*, assignment_id: int, now: dt.datetime) -> GoldAnswer | None:
    """Store the verdict on the first revision of a submitted assignment, in the transaction of its submit.

    Return None if the trace is not gold for this purpose (anymore).
    """
    assignment = Assignment.objects.get(pk=assignment_id)
    use = GOLD_USE_OF_PURPOSE.get(AssignmentPurpose(assignment.purpose))
    # The newest gold, even if retired: an assignment that was open at that time is still scored.
    gold = Gold.objects.filter(trace_id=assignment.trace_id, use=use).order_by("-pk").first()
    if use is None or gold is None:
        return None
    report = submitted_readings.load_revision_reports([(assignment_id, 1)])[0]
    answer, _ = GoldAnswer.objects.get_or_create(
        assignment=assignment,
        defaults={
            "gold": gold,
            "project_id": assignment.project_id,
            "rater_id": assignment.rater_id,
            "use": use,
            "attempt": assignment.attempt,
            "first_error": report.position,
            "verdict": judge_first_error(accepted=gold.accepted_first_errors, report=report),
            "answered_at": now,
        },
    )
    return answer


def rescore_gold_answers(*, gold: Gold, now: dt.datetime) -> int:
    """Score all answers again after the accepted set changed. Return how many verdicts changed."""
    changed = []
    for answer in gold.answers.exclude(verdict=GoldVerdict.GAVE_UP):
        report = RevisionReport(answer.assignment_id, 1, answer.first_error, 0, None)
        verdict = judge_first_error(accepted=gold.accepted_first_errors, report=report)
        if verdict != answer.verdict:
            answer.verdict = verdict
            changed.append(answer)
    GoldAnswer.objects.bulk_update(changed, ["verdict"], batch_size=200)
    return len(changed)


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
    answers = GoldAnswer.objects.filter(rater_id=rater_id, use=use)
    answers = answers if attempt is None else answers.filter(attempt=attempt)
    verdicts = list(answers.values_list("verdict", flat=True))
    return GoldAccuracy(
        n=len(verdicts),
        right=verdicts.count(GoldVerdict.RIGHT),
        missed=verdicts.count(GoldVerdict.MISSED),
        blamed=verdicts.count(GoldVerdict.BLAMED),
        gave_up=verdicts.count(GoldVerdict.GAVE_UP),
    )
