"""Agreement on what raters say besides ratings: kind and severity of steps that several of them rate negative, and
answers to questions on the whole trace."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from django.db.models import F

from labeling.models import Assignment, Judgment, Project, TraceAnswer
from labeling.models.assignment import Severity
from labeling.projects import trace_questions
from labeling.projects.trace_questions import QuestionKind, TraceQuestion
from labeling.quality import tallies
from labeling.quality.consensus import NEGATIVE
from stats import agreement, rating_patterns
from stats.rating_patterns import RatingPatterns

MAX_SUBMISSIONS = 2000  # the latest ones
_Answer = tuple[int, int, str | int]  # problem, step or trace, and what one rater answered


def compute_explanation_agreement(project_id: int) -> dict[str, Any]:
    """Return Krippendorff's alpha of kinds (as sets, with the MASI distance) and of severities (ordinal).

    It covers traces with enough labels to be settled, of these the steps that at least two raters rated negative, and
    of these the answers that were given. So it says how well raters agree on what is wrong, given that something is. A
    rater's latest revision counts unless it is set aside.
    """
    rows = Judgment.objects.filter(
        turn__assignment__in=list_newest_submissions(project_id),
        turn__revision=F("turn__assignment__submitted_revision"),
        option__position=0,
        rating=NEGATIVE,
    )
    values = list(rows.values_list("turn__assignment__trace__problem_id", "turn__step_id", "category", "severity"))
    kinds = [(problem, step, kind) for problem, step, kind, _ in values if kind]
    severities = [(problem, step, severity) for problem, step, _, severity in values if severity]
    return {
        "kind": estimate_set_agreement(kinds),
        "severity": _estimate_severity(severities),
    }


def list_newest_submissions(project_id: int) -> list[int]:
    """Return the assignments of the latest submissions that count and whose traces have enough labels."""
    newest = Assignment.objects.filter(project=project_id, report__isnull=False, set_aside=None)
    return list(newest.order_by("-submitted_at", "-pk").values_list("pk", flat=True)[:MAX_SUBMISSIONS])


def compute_answer_agreement(project: Project) -> dict[str, dict[str, Any]]:
    """Return Krippendorff's alpha for each question on the whole trace: ordinal for a scale, nominal for a choice.

    It covers the same submissions as the agreement on errors. Answers that the question no longer offers are left out,
    and so are questions that are answered with a text.
    """
    asked = {question.code: question for question in trace_questions.load_trace_questions(project) if question.choices}
    if not asked:
        return {}
    rows = TraceAnswer.objects.filter(
        assignment__in=list_newest_submissions(project.pk),
        revision=F("assignment__submitted_revision"),
        question__in=asked,
    )
    values = list(rows.values_list("question", "assignment__trace__problem_id", "assignment__trace_id", "value"))
    return {
        code: _estimate_answers(question, [answer for asked_code, *answer in values if asked_code == code])
        for code, question in asked.items()
    }


def _estimate_answers(question: TraceQuestion, answers: Sequence[Sequence[Any]]) -> dict[str, Any]:
    scale = [choice.code for choice in question.choices]
    patterns = _count_patterns([(*place, value) for *place, value in answers if value in scale], scale)
    name = "alpha_ordinal" if question.kind == QuestionKind.SCALE else "alpha_nominal"
    return tallies.estimate_row(agreement.estimate_step_statistics(patterns, names=(name,), with_bootstrap=False)[name])


def estimate_set_agreement(answers: Sequence[_Answer]) -> dict[str, Any]:
    """Return Krippendorff's alpha of sets, given as codes separated by spaces, with the MASI distance."""
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
