"""The explained answer to a training trace: what its rater said of each step beside what the guideline says. Reads,
and of training alone: what is known of any other trace is nobody's to see here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from django.utils.translation import gettext as _

from labeling.models import Assignment, GoldAnswer, GoldRating, Judgment, Option
from labeling.models.gold import GoldVerdict
from labeling.models.project import Protocol

NEGATIVE = -1


class KnownRating(NamedTuple):
    """What gold says of one option."""

    rating: int | None
    explanation: str


@dataclass(frozen=True)
class ComparedOption:
    """One option beside what is known of it. `known` is None where gold says no more than "no error here"."""

    option: Option
    said: int | None
    known: int | None
    explanation: str
    is_sound: bool  # known to hold no error
    is_off: bool

    @property
    def parts(self) -> list[object]:
        return list(self.option.parts.all())


@dataclass(frozen=True)
class ComparedStep:
    """One step of the trace."""

    number: int | None  # as the work page counts: context has none
    kind: str
    own: ComparedOption
    alternatives: list[ComparedOption]
    is_past: bool


@dataclass(frozen=True)
class TrainingComparison:
    lines: list[ComparedStep]
    sentence: str  # what became of the trace as a whole
    explanation: str  # of the trace as a whole
    n_same: int
    n_compared: int
    error: int | None  # number of the step with the first error


def compare_with_gold(assignment: Assignment) -> TrainingComparison:
    """Five queries, whatever the length of the trace."""
    answer = GoldAnswer.objects.select_related("gold").get(assignment=assignment)
    accepted: list[int | None] = answer.gold.accepted_first_errors
    known = {
        row.option_id: KnownRating(row.rating, row.explanation) for row in GoldRating.objects.filter(gold=answer.gold)
    }
    said = _submitted_ratings(assignment)
    numbers = _step_numbers(assignment)
    error = _find_error_position(accepted, answer.first_error)
    lines = _compare_steps(assignment, numbers, _GoldTruth(accepted, error, known, answer.gold.explanation), said)
    compared = [each for line in lines for each in (line.own, *line.alternatives) if _is_compared(each)]
    return TrainingComparison(
        lines=lines,
        sentence=_summary_sentence(GoldVerdict(answer.verdict), numbers.get(error), numbers.get(answer.first_error)),
        explanation="" if error is not None else answer.gold.explanation,
        n_same=sum(not each.is_off for each in compared),
        n_compared=len(compared),
        error=numbers.get(error),
    )


class _GoldTruth(NamedTuple):
    accepted: list[int | None]
    error: int | None
    known: Mapping[int, KnownRating]
    explanation: str


def _find_error_position(accepted: list[int | None], said: int | None) -> int | None:
    """Where the first error is told to be. Where several places are right, the rater's own is, and else the first."""
    places = [place for place in accepted if place is not None]
    if said in places:
        return said
    return min(places) if places and None not in accepted else None


def _is_compared(each: ComparedOption) -> bool:
    return each.said is not None and (each.known is not None or each.is_sound or each.is_off)


def _submitted_ratings(assignment: Assignment) -> dict[int, int | None]:
    """The first submission: what was scored."""
    rows = Judgment.objects.filter(turn__assignment=assignment, turn__revision=1)
    return dict(rows.values_list("option_id", "rating"))


def _step_numbers(assignment: Assignment) -> dict[int | None, int]:
    """From position to the number that people see."""
    places = assignment.trace.steps.filter(is_rateable=True).order_by("position").values_list("position", flat=True)
    return {place: number for number, place in enumerate(places, start=1)}


def _compare_steps(
    assignment: Assignment, numbers: Mapping[int | None, int], truth: _GoldTruth, said: Mapping[int, int | None]
) -> list[ComparedStep]:
    options = Option.objects.filter(step__trace=assignment.trace_id).select_related("step").prefetch_related("parts")
    by_step: dict[int, list[Option]] = {}
    for option in options.order_by("step__position", "position"):
        by_step.setdefault(option.step.position, []).append(option)
    error = truth.error
    stops = assignment.project.protocol == Protocol.FIRST_ERROR
    return [
        ComparedStep(
            number=numbers.get(place),
            kind=of_step[0].step.kind,
            own=_compare_option(of_step[0], truth, said),
            alternatives=[
                _compare_option(option, truth, said) for option in of_step[1:] if option.pk in said or place == error
            ],
            is_past=stops and error is not None and place > error,
        )
        for place, of_step in by_step.items()
    ]


def _compare_option(option: Option, truth: _GoldTruth, said: Mapping[int, int | None]) -> ComparedOption:
    known = truth.known.get(option.pk, KnownRating(None, ""))
    mine, place, error = said.get(option.pk), option.step.position, truth.error
    is_own = option.position == 0
    is_error = is_own and place == error
    rating = NEGATIVE if is_error else known.rating
    is_sound = is_own and option.step.is_rateable and place not in truth.accepted and (error is None or place < error)
    if mine is None:
        is_off = False
    elif is_own and place in truth.accepted:
        is_off = is_error and mine != NEGATIVE
    else:
        is_off = mine != rating if rating is not None else is_sound and mine == NEGATIVE
    explanation = known.explanation or (truth.explanation if is_error else "")
    return ComparedOption(option, mine, rating, explanation, is_sound=is_sound, is_off=is_off)


def _summary_sentence(verdict: GoldVerdict, error: int | None, called: int | None) -> str:
    """By the numbers that people see: of the step with the error, and of the one that was called it."""
    if verdict == GoldVerdict.GAVE_UP:
        return _("You gave this trace up.")
    if verdict == GoldVerdict.RIGHT:
        return _("You found the first error.") if called is not None else _("There is no error, as you said.")
    if called is not None and (error is None or called < error):
        return _("Step %(step)d holds no error.") % {"step": called}
    return _("You passed over the error in step %(step)d.") % {"step": error or 0}
