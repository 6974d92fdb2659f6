"""Simulated raters of known quality, which fill the demo before people have labeled anything. Pure.

They follow the first-error Dawid-Skene model: each has a probability of finding the error at its step, of a false alarm
at a correct step, and of stopping late. Their ratings depend on the generator's truth and a random generator.
"""

import random
from collections.abc import Container, Iterator
from dataclasses import dataclass

from demo.generated_content import GeneratedOption, GeneratedStep, GeneratedTrace

NEGATIVE, NEUTRAL, POSITIVE = -1, 0, 1


@dataclass(frozen=True)
class SimulatedRater:
    number: int
    hit_rate: float  # the share of first errors that are found at their step
    false_alarm_rate: float  # the share of correct steps that are called an error
    words_a_second: float

    @property
    def username(self) -> str:
        return f"simulated-{self.number}"

    @property
    def name(self) -> str:
        """Return a name that no one mistakes for a person's."""
        return f"Simulated rater {self.number} (finds {self.hit_rate:.0%} of errors)"


SIMULATED_RATERS = (
    SimulatedRater(1, 0.97, 0.002, 3.0),
    SimulatedRater(2, 0.94, 0.005, 2.5),
    SimulatedRater(3, 0.90, 0.010, 3.5),
    SimulatedRater(4, 0.85, 0.010, 4.0),
    SimulatedRater(5, 0.80, 0.030, 3.0),
    SimulatedRater(6, 0.05, 0.400, 9.0),  # hurries, and is paused because of it
)
_STOPS_LATE_SHARE, _DOUBT_SHARE = 0.3, 0.06
_OTHER_CLAUSE_SHARE = 0.15
_OTHER_KIND_SHARE, _OTHER_SEVERITY_SHARE, _FORGOTTEN_MARK_SHARE = 0.15, 0.25, 0.12
_MISJUDGED_SHARE, _LOOPING_SHARE = 0.1, 0.3  # of answers on the whole trace, and of failures
_DETECTED_SHARE, _SUSPECTED_SHARE = 0.9, 0.1  # of hints whose use is visible, and of others
_ANSWERS = {"final_label": ("1", "-1"), "noticed": ("yes", "no", "none")}


@dataclass(frozen=True)
class SimulatedRating:
    step: int
    option: int
    rating: int
    active_ms: int
    clause: str = ""  # that the rating cites
    category: str = ""  # the kind of an error
    severity: int | None = None
    error_link: str = ""


def simulate_ratings(
    trace: GeneratedTrace,
    rater: SimulatedRater,
    dice: random.Random,
    *,
    to_the_end: bool,
    hidden_kinds: Container[str] = (),
) -> list[SimulatedRating]:
    """Return the ratings up to the first error that the rater sees, with the ratings of its alternatives; without one,
    up to the end. Steps of hidden kinds get none."""
    ratings: list[SimulatedRating] = []
    for position, step in enumerate(trace.steps):
        if not step.is_rateable or step.kind in hidden_kinds:
            continue
        rating = _simulate_rating(trace, position, rater, dice)
        ms = _reading_time_ms(step.text, rater, dice)
        clause = _simulate_clause(trace, position, dice)
        about = _describe_error(step.options[0], rating, dice) if step.options[0].error_kind else ("", None)
        link = step.options[0].error_link
        if link and (all(each.rating != NEGATIVE for each in ratings) or dice.random() < _FORGOTTEN_MARK_SHARE):
            link = ""
        ratings.append(SimulatedRating(position, 0, rating, ms, clause, *about, link))
        if rating == NEGATIVE and not to_the_end:
            return ratings + list(_rate_alternatives(position, step, rater, dice))
    return ratings


def _simulate_rating(trace: GeneratedTrace, position: int, rater: SimulatedRater, dice: random.Random) -> int:
    error = trace.first_error
    if error is not None and position == error:
        return NEGATIVE if dice.random() < rater.hit_rate else POSITIVE
    is_unknown = error is not None and position > error and trace.steps[position].rating is None
    chance = _STOPS_LATE_SHARE if is_unknown else rater.false_alarm_rate
    if dice.random() < chance:
        return NEGATIVE
    return NEUTRAL if dice.random() < _DOUBT_SHARE else POSITIVE


def _describe_error(option: GeneratedOption, rating: int, dice: random.Random) -> tuple[str, int | None]:
    """Return the kind and the severity that a rater gives a wrong step, if it has one."""
    if rating != NEGATIVE:
        return "", None
    kind = "other" if dice.random() < _OTHER_KIND_SHARE else option.error_kind
    is_other = dice.random() < _OTHER_SEVERITY_SHARE
    return kind, max(1, option.severity - 1) if is_other and option.severity else option.severity


def _simulate_clause(trace: GeneratedTrace, position: int, dice: random.Random) -> str:
    """Return the clause of a step, or sometimes that of another step."""
    own = trace.steps[position].options[0].clause
    if not own or dice.random() >= _OTHER_CLAUSE_SHARE:
        return own
    return dice.choice(trace.steps).options[0].clause


def _rate_alternatives(
    position: int, step: GeneratedStep, rater: SimulatedRater, dice: random.Random
) -> Iterator[SimulatedRating]:
    for place, option in enumerate(step.options):
        if place:
            truth = POSITIVE if option.rating is None else option.rating
            rating = truth if dice.random() < rater.hit_rate else POSITIVE
            yield SimulatedRating(position, place, rating, _reading_time_ms(option.text, rater, dice))


def simulate_answers(trace: GeneratedTrace, dice: random.Random, *, visible: str = "both") -> dict[str, str]:
    """Return one rater's answers to the questions on the whole trace, by the code of the question. `visible` says
    whether the rater sees reasoning, actions, or both."""
    if trace.pair:
        is_shown = bool(trace.evidence) and ("both" in (visible, trace.evidence) or trace.evidence == visible)
        says_yes = dice.random() < (_DETECTED_SHARE if is_shown else _SUSPECTED_SHARE)
        return dict.fromkeys(trace.answers, "yes" if says_yes else "no")
    if trace.answers:
        return {
            question: dice.choice(_ANSWERS[question]) if dice.random() < _MISJUDGED_SHARE else answer
            for question, answer in trace.answers.items()
        }
    is_success = (trace.first_error is None) != (dice.random() < _MISJUDGED_SHARE)
    return {
        "final_label": "1" if is_success else "-1",
        "optimality": str(dice.choice((3, 4) if is_success else (1, 2))),
        "side_effect": "yes" if dice.random() < _MISJUDGED_SHARE else "no",
        "looping": "yes" if not is_success and dice.random() < _LOOPING_SHARE else "no",
    }


def _reading_time_ms(text: str, rater: SimulatedRater, dice: random.Random) -> int:
    words = len(text.split())
    return round(1000 * (1 + words / rater.words_a_second) * dice.lognormvariate(0, 0.3))
