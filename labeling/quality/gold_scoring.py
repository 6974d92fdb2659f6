"""Holds what a rater said of a gold trace against what is accepted. Alone writes gold answers.

The unit is the trace: right means that the first error lies in the accepted set. The first revision is scored; what is
corrected later is not. Raters are never told which trace was gold, unless it was training.
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
    """Pure. Positions of steps; None among the accepted says that "there is no error" is right too."""
    if report.is_censored:
        return GoldVerdict.GAVE_UP
    if report.position in accepted:
        return GoldVerdict.RIGHT
    if report.position is None:
        return GoldVerdict.MISSED
    went_past_one = None not in accepted and any(error is not None and error < report.position for error in accepted)
    return GoldVerdict.MISSED if went_past_one else GoldVerdict.BLAMED


def score_gold_answer(*, assignment_id: int, now: dt.datetime) -> GoldAnswer | None:
    """Keep how the first revision of a submitted assignment stands to its gold, once; inside the transaction of its
    submit. None where the trace is not gold for that purpose (any more)."""
    assignment = Assignment.objects.get(pk=assignment_id)
    use = GOLD_USE_OF_PURPOSE.get(AssignmentPurpose(assignment.purpose))
    gold = _find_gold(assignment.trace_id, use)
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
    """The accepted set is another: hold every answer against it once more. Says how many verdicts changed."""
    changed = []
    for answer in gold.answers.exclude(verdict=GoldVerdict.GAVE_UP):
        report = RevisionReport(answer.assignment_id, 1, answer.first_error, 0, None)
        found = judge_first_error(accepted=gold.accepted_first_errors, report=report)
        if found != answer.verdict:
            answer.verdict = found
            changed.append(answer)
    GoldAnswer.objects.bulk_update(changed, ["verdict"], batch_size=200)
    return len(changed)


def _find_gold(trace_id: int, use: GoldUse | None) -> Gold | None:
    """The newest: gold that was retired while somebody had it in hand still knows the answer."""
    return Gold.objects.filter(trace_id=trace_id, use=use).order_by("-pk").first()


@dataclass(frozen=True)
class GoldAccuracy:
    """Of so many gold traces, with the 95 % interval by Wilson. `missed` is over-credit, `blamed` over-blame."""

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
    """How a rater has met gold of one use; of a screening, in one attempt. One query."""
    answers = GoldAnswer.objects.filter(rater_id=rater_id, use=use)
    answers = answers if attempt is None else answers.filter(attempt=attempt)
    return summarize_verdicts([GoldVerdict(each) for each in answers.values_list("verdict", flat=True)])


def summarize_verdicts(verdicts: Sequence[GoldVerdict]) -> GoldAccuracy:
    return GoldAccuracy(
        n=len(verdicts),
        right=verdicts.count(GoldVerdict.RIGHT),
        missed=verdicts.count(GoldVerdict.MISSED),
        blamed=verdicts.count(GoldVerdict.BLAMED),
        gave_up=verdicts.count(GoldVerdict.GAVE_UP),
    )
