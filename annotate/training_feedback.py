"""Compare a submitted trace with its gold, step by step. Read-only.

Only for training, and for hidden gold that was retired, if the project allows it: other gold must not be shown to
annotators."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from django.db.models import Prefetch
from django.utils.translation import gettext as _

from labeling import assignments
from labeling.models import Assignment, Gold, GoldAnswer, GoldRating, Judgment, Option, OptionPart
from labeling.models.assignment import AssignmentPurpose
from labeling.models.gold import GoldVerdict
from labeling.models.project import Protocol

NEGATIVE = -1


class TrainingOutcome(StrEnum):
    GAVE_UP = "gave_up"
    FOUND = "found"  # the first error
    NO_ERROR = "no_error"  # correctly reported that there is none
    FALSE_ALARM = "false_alarm"  # reported an error at a correct step
    MISSED = "missed"


@dataclass(frozen=True)
class ComparedOption:
    """An option with the annotator's rating and the gold rating.

    `known` is None if gold only implies that the step has no error."""

    option: Option
    rating: int | None
    known: int | None
    explanation: str
    is_sound: bool  # known to have no error
    is_off: bool  # differs from gold

    @property
    def letter(self) -> str:
        """Return the letter of an alternative, as on the work page."""
        return chr(ord("A") + self.option.position - 1)

    @property
    def is_compared(self) -> bool:
        return self.rating is not None and (self.known is not None or self.is_sound or self.is_off)


@dataclass(frozen=True)
class ComparedStep:
    number: int | None  # as on the work page; None for context
    own: ComparedOption
    alternatives: list[ComparedOption]
    is_past: bool


@dataclass(frozen=True)
class TrainingComparison:
    lines: list[ComparedStep]
    outcome: TrainingOutcome
    explanation: str  # for the trace as a whole
    n_same: int
    n_compared: int
    error: int | None  # number of the step with the first error
    reported: int | None  # number of the step that the annotator rated negative first

    @property
    def summary(self) -> str:
        match self.outcome:
            case TrainingOutcome.GAVE_UP:
                return _("You gave up on this trace.")
            case TrainingOutcome.FOUND:
                return _("You found the first error.")
            case TrainingOutcome.NO_ERROR:
                return _("Correct: there is no error.")
            case TrainingOutcome.FALSE_ALARM:
                return _("Step %(step)d has no error.") % {"step": self.reported}
            case TrainingOutcome.MISSED:
                return _("You missed the error in step %(step)d.") % {"step": self.error or 0}


class _GoldTruth(NamedTuple):
    accepted: list[int | None]  # positions of first errors; None: no error
    error: int | None
    known: Mapping[int, GoldRating]  # by option
    explanation: str


def page_with_answer(assignment: Assignment, now: dt.datetime) -> str | None:
    """Return the name of the page with the known answer to a submitted trace, or None if the annotator must not see
    it. The assignment comes with its project and rater."""
    if assignment.purpose == AssignmentPurpose.TRAINING:
        return "annotate:lesson" if hasattr(assignment, "lesson") else None
    return "annotate:retired_answer" if _is_retired_answer_visible(assignment, now) else None


def _is_retired_answer_visible(assignment: Assignment, now: dt.datetime) -> bool:
    """Whether the project explains retired gold, the trace is gold no longer, and the annotator can no longer
    change the submission."""
    if assignment.purpose != AssignmentPurpose.GOLD or not assignment.project.shows_retired_gold:
        return False
    is_asked = bool(assignments.find_open_requests(assignments=[assignment]))
    may_edit = not assignments.reopen_refusal_reason(assignment=assignment, now=now, is_asked=is_asked)
    if may_edit or assignment.reopened_at is not None:
        return False
    is_retired = GoldAnswer.objects.filter(assignment=assignment, gold__retired_at__isnull=False).exists()
    return is_retired and not Gold.objects.active().filter(trace=assignment.trace_id).exists()


def compare_with_gold(assignment: Assignment) -> TrainingComparison:
    """Compare the first submission, which is the one that is scored, with gold, in five queries."""
    answer = GoldAnswer.objects.select_related("gold").get(assignment=assignment)
    gold, reported = answer.gold, answer.first_error
    error = _find_error_position(gold.accepted_first_errors, reported)
    known = {row.option_id: row for row in GoldRating.objects.filter(gold=gold)}
    submitted = Judgment.objects.filter(turn__assignment=assignment, turn__revision=1)
    lines = _compare_steps(
        assignment,
        _GoldTruth(gold.accepted_first_errors, error, known, gold.explanation),
        dict(submitted.values_list("option_id", "rating")),
    )
    numbers = {line.own.option.step.position: line.number for line in lines}
    compared = [each for line in lines for each in (line.own, *line.alternatives) if each.is_compared]
    return TrainingComparison(
        lines=lines,
        outcome=_outcome(GoldVerdict(answer.verdict), error, reported),
        explanation="" if error is not None else gold.explanation,
        n_same=sum(not each.is_off for each in compared),
        n_compared=len(compared),
        error=None if error is None else numbers.get(error),
        reported=None if reported is None else numbers.get(reported),
    )


def _find_error_position(accepted: list[int | None], reported: int | None) -> int | None:
    """Return the position of the first error. If gold accepts several, prefer the annotator's, else the first."""
    positions = [position for position in accepted if position is not None]
    if reported in positions:
        return reported
    return min(positions) if positions and None not in accepted else None


def _compare_steps(assignment: Assignment, truth: _GoldTruth, ratings: Mapping[int, int | None]) -> list[ComparedStep]:
    rows = (
        Option.objects.filter(step__trace=assignment.trace_id)
        .select_related("step")
        .prefetch_related(Prefetch("parts", OptionPart.objects.with_images()))
    )
    lines, number, stops = [], 0, assignment.project.protocol == Protocol.FIRST_ERROR
    for position, (own, *others) in groupby(
        rows.order_by("step__position", "position"), key=lambda option: option.step.position
    ):
        number += own.step.is_rateable
        lines.append(
            ComparedStep(
                number=number if own.step.is_rateable else None,
                own=_compare_option(own, truth, ratings.get(own.pk)),
                alternatives=[
                    _compare_option(option, truth, ratings.get(option.pk))
                    for option in others
                    if option.pk in ratings or position == truth.error
                ],
                is_past=stops and truth.error is not None and position > truth.error,
            )
        )
    return lines


def _compare_option(option: Option, truth: _GoldTruth, rating: int | None) -> ComparedOption:
    gold, position, error = truth.known.get(option.pk), option.step.position, truth.error
    is_own = option.position == 0
    is_error = is_own and position == error
    known = NEGATIVE if is_error else gold.rating if gold else None
    is_sound = (
        is_own and option.step.is_rateable and position not in truth.accepted and (error is None or position < error)
    )
    if rating is None:
        is_off = False
    elif is_own and position in truth.accepted:
        is_off = is_error and rating != NEGATIVE
    else:
        is_off = rating != known if known is not None else is_sound and rating == NEGATIVE
    explanation = (gold and gold.explanation) or (truth.explanation if is_error else "")
    return ComparedOption(option, rating, known, explanation, is_sound=is_sound, is_off=is_off)


def _outcome(verdict: GoldVerdict, error: int | None, reported: int | None) -> TrainingOutcome:
    if verdict == GoldVerdict.GAVE_UP:
        return TrainingOutcome.GAVE_UP
    if verdict == GoldVerdict.RIGHT:
        return TrainingOutcome.NO_ERROR if reported is None else TrainingOutcome.FOUND
    if reported is not None and (error is None or reported < error):
        return TrainingOutcome.FALSE_ALARM
    return TrainingOutcome.MISSED
