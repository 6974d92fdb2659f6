"""Agreement on how raters explain errors: on the kind and the severity of steps that several of them rate negative."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.db.models import F

from labeling.models import Assignment, Judgment
from labeling.models.assignment import Severity
from labeling.quality import tallies
from labeling.quality.consensus import NEGATIVE
from stats import agreement, rating_patterns
from stats.rating_patterns import RatingPatterns

MAX_SUBMISSIONS = 2000  # the latest ones
_Answer = tuple[int, int, str | int]  # problem, step, and what one rater answered


def compute_explanation_agreement(project_id: int) -> dict[str, Any]:
    """Return Krippendorff's alpha of kinds (as sets, with the MASI distance) and of severities (ordinal).

    It covers traces with enough labels to be settled, of these the steps that at least two raters rated negative, and
    of these the answers that were given. So it says how well raters agree on what is wrong, given that something is. A
    rater's latest revision counts unless it is set aside.
    """
    newest = Assignment.objects.filter(project=project_id, report__isnull=False, set_aside=None)
    ids = list(newest.order_by("-submitted_at", "-pk").values_list("pk", flat=True)[:MAX_SUBMISSIONS])
    rows = Judgment.objects.filter(
        turn__assignment__in=ids,
        turn__revision=F("turn__assignment__submitted_revision"),
        option__position=0,
        rating=NEGATIVE,
    )
    values = list(rows.values_list("turn__assignment__trace__problem_id", "turn__step_id", "category", "severity"))
    kinds = [(problem, step, kind) for problem, step, kind, _ in values if kind]
    severities = [(problem, step, severity) for problem, step, _, severity in values if severity]
    return {
        "kind": _estimate_kinds(kinds),
        "severity": _estimate_severity(severities),
    }


def _estimate_kinds(answers: Sequence[_Answer]) -> dict[str, Any]:
    scale = sorted({str(answer) for _, _, answer in answers}) or [""]
    sets = [frozenset(answer.split()) for answer in scale]
    return tallies.estimate_row(agreement.estimate_set_alpha(_count_patterns(answers, scale), sets))


def _estimate_severity(answers: Sequence[_Answer]) -> dict[str, Any]:
    patterns, names = _count_patterns(answers, Severity.values), ("alpha_ordinal",)
    estimates = agreement.estimate_step_statistics(patterns, names=names, with_bootstrap=False)
    return tallies.estimate_row(estimates["alpha_ordinal"])


def _count_patterns(answers: Sequence[_Answer], scale: Sequence[str | int]) -> RatingPatterns:
    places = {answer: place for place, answer in enumerate(scale)}
    steps, units = np.unique(np.array([step for _, step, _ in answers], dtype=np.int64), return_inverse=True)
    problem_of_step = {step: problem for problem, step, _ in answers}
    problems = np.array([problem_of_step[step] for step in steps.tolist()], dtype=np.int64)
    return rating_patterns.count_patterns(
        units=units.astype(np.int64),
        labels=np.array([places[answer] for _, _, answer in answers], dtype=np.int64),
        problem_of_unit=np.unique(problems, return_inverse=True)[1].astype(np.int64),
        values=[float(place) for place in range(len(places))],
    )
