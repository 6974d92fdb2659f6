"""Monitor raters on hidden gold, and pause a rater whose accuracy is too low.

Each answer to hidden gold runs Wald's sequential test (the first 60 answers), then a CUSUM, against the project's own
gold threshold: the 25th percentile of what its raters reach. A fixed threshold would pause almost everyone in a project
with hard traces. Without a threshold nobody is paused. A lead resumes a paused rater, and the test starts over.
"""

import datetime as dt

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from labeling import raters
from labeling.models import GoldAnswer, Project, QueueEntry, ScreeningResult
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.models.queue import SamplingSource
from labeling.projects import lifecycle
from labeling.quality import gold_scoring
from stats import sequential_tests
from stats.estimates import Reason

TRUSTED_AFTER = dt.timedelta(days=14)  # then raters get less gold: `Project.proven_gold_share`
MAX_BASELINE_ANSWERS = 5000  # searched for answers of five raters
_LOWEST, _HIGHEST = 0.2, 0.99


def record_gold_answer(*, assignment_id: int, now: dt.datetime) -> GoldAnswer | None:
    """Score a submitted gold trace, and pause the rater if needed. Runs in the transaction of the submit.

    Return None if the trace is not gold (anymore).
    """
    answer = gold_scoring.score_gold_answer(assignment_id=assignment_id, now=now)
    if answer is not None:
        pause_if_below_threshold(answer=answer, now=now)
    return answer


def pause_if_below_threshold(*, answer: GoldAnswer, now: dt.datetime) -> bool:
    """Test a rater after one more answer to hidden gold. Return whether this paused them."""
    threshold = answer.project.gold_bar
    if answer.use != GoldUse.HIDDEN or threshold is None or answer.rater.paused_at is not None:
        return False
    right = _load_answers_since_resumed(answer)
    if sequential_tests.find_pause(right, sequential_tests.make_plan(p0=threshold)) is None:
        return False
    note = _("%(right)d of %(n)d hidden gold traces right; %(bar)d %% expected.") % {
        "right": sum(right),
        "n": len(right),
        "bar": round(100 * threshold),
    }
    return raters.pause_rater(rater=answer.rater, reason=_pause_reason(), note=note, by=None, now=now)


def _pause_reason() -> str:
    # Raters must not learn which traces are gold.
    return _(
        "some of your recent ratings differ from the guideline, and a lead would like to review them with you first."
        " All your work is saved and counts."
    )


def _load_answers_since_resumed(answer: GoldAnswer) -> list[bool]:
    rows = GoldAnswer.objects.filter(rater=answer.rater_id, use=GoldUse.HIDDEN)
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
    rows = GoldAnswer.objects.filter(project=project_id, use=GoldUse.HIDDEN).order_by("answered_at", "pk")
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
