"""Compare a submitted training trace with its gold, step by step. Read-only.

Only for training: gold of other traces must not be shown to annotators."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from django.utils.translation import gettext as _

from labeling.models import Assignment, GoldAnswer, GoldRating, Judgment, Option
from labeling.models.gold import GoldVerdict
from labeling.models.project import Protocol

NEGATIVE = -1


class KnownRating(NamedTuple):
    """The gold rating of an option."""

    rating: int | None
    explanation: str


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
    def parts(self) -> list[object]:
        return list(self.option.parts.all())


@dataclass(frozen=True)
class ComparedStep:
    number: int | None  # as on the work page; None for context
    kind: str
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


def compare_with_gold(assignment: Assignment) -> TrainingComparison:
    """Compare the first submission with gold, in five queries."""
    answer = GoldAnswer.objects.select_related("gold").get(assignment=assignment)
    accepted: list[int | None] = answer.gold.accepted_first_errors
    known = {
        row.option_id: KnownRating(row.rating, row.explanation) for row in GoldRating.objects.filter(gold=answer.gold)
    }
    ratings = _submitted_ratings(assignment)
    numbers = _step_numbers(assignment)
    error = _find_error_position(accepted, answer.first_error)
    lines = _compare_steps(assignment, numbers, _GoldTruth(accepted, error, known, answer.gold.explanation), ratings)
    compared = [each for line in lines for each in (line.own, *line.alternatives) if _is_compared(each)]
    return TrainingComparison(
        lines=lines,
        outcome=_outcome(GoldVerdict(answer.verdict), error, answer.first_error),
        explanation="" if error is not None else answer.gold.explanation,
        n_same=sum(not each.is_off for each in compared),
        n_compared=len(compared),
        error=numbers.get(error),
        reported=numbers.get(answer.first_error),
    )


class _GoldTruth(NamedTuple):
    accepted: list[int | None]
    error: int | None
    known: Mapping[int, KnownRating]
    explanation: str


def _find_error_position(accepted: list[int | None], reported: int | None) -> int | None:
    """Return the position of the first error. If gold accepts several, prefer the annotator's, else the first."""
    positions = [position for position in accepted if position is not None]
    if reported in positions:
        return reported
    return min(positions) if positions and None not in accepted else None


def _is_compared(each: ComparedOption) -> bool:
    return each.rating is not None and (each.known is not None or each.is_sound or each.is_off)


def _submitted_ratings(assignment: Assignment) -> dict[int, int | None]:
    """Return the ratings of the first submission, which is the one that is scored."""
    rows = Judgment.objects.filter(turn__assignment=assignment, turn__revision=1)
    return dict(rows.values_list("option_id", "rating"))


def _step_numbers(assignment: Assignment) -> dict[int | None, int]:
    """Map positions to the step numbers that annotators see."""
    positions = assignment.trace.steps.filter(is_rateable=True).order_by("position").values_list("position", flat=True)
    return {position: number for number, position in enumerate(positions, start=1)}


def _compare_steps(
    assignment: Assignment, numbers: Mapping[int | None, int], truth: _GoldTruth, ratings: Mapping[int, int | None]
) -> list[ComparedStep]:
    options = Option.objects.filter(step__trace=assignment.trace_id).select_related("step").prefetch_related("parts")
    by_step: dict[int, list[Option]] = {}
    for option in options.order_by("step__position", "position"):
        by_step.setdefault(option.step.position, []).append(option)
    error = truth.error
    stops = assignment.project.protocol == Protocol.FIRST_ERROR
    return [
        ComparedStep(
            number=numbers.get(position),
            kind=step_options[0].step.kind,
            own=_compare_option(step_options[0], truth, ratings),
            alternatives=[
                _compare_option(option, truth, ratings)
                for option in step_options[1:]
                if option.pk in ratings or position == error
            ],
            is_past=stops and error is not None and position > error,
        )
        for position, step_options in by_step.items()
    ]


def _compare_option(option: Option, truth: _GoldTruth, ratings: Mapping[int, int | None]) -> ComparedOption:
    gold = truth.known.get(option.pk, KnownRating(None, ""))
    rating, position, error = ratings.get(option.pk), option.step.position, truth.error
    is_own = option.position == 0
    is_error = is_own and position == error
    known = NEGATIVE if is_error else gold.rating
    is_sound = (
        is_own and option.step.is_rateable and position not in truth.accepted and (error is None or position < error)
    )
    if rating is None:
        is_off = False
    elif is_own and position in truth.accepted:
        is_off = is_error and rating != NEGATIVE
    else:
        is_off = rating != known if known is not None else is_sound and rating == NEGATIVE
    explanation = gold.explanation or (truth.explanation if is_error else "")
    return ComparedOption(option, rating, known, explanation, is_sound=is_sound, is_off=is_off)


def _outcome(verdict: GoldVerdict, error: int | None, reported: int | None) -> TrainingOutcome:
    if verdict == GoldVerdict.GAVE_UP:
        return TrainingOutcome.GAVE_UP
    if verdict == GoldVerdict.RIGHT:
        return TrainingOutcome.NO_ERROR if reported is None else TrainingOutcome.FOUND
    if reported is not None and (error is None or reported < error):
        return TrainingOutcome.FALSE_ALARM
    return TrainingOutcome.MISSED
