"""Raters that a program plays, of known quality, so that there is something true to see before anybody has rated. Pure.

They work as first-error Dawid–Skene thinks: so often does one of them find the error at its step, so often take a sound
step for one, so often stop late. What they say follows from the generator's own truth and from dice.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from demo.generated_content import GeneratedStep, GeneratedTrace

NEGATIVE, NEUTRAL, POSITIVE = -1, 0, 1


@dataclass(frozen=True)
class SimulatedRater:
    number: int
    finds: float  # the share of first errors that are seen at their step
    blames: float  # the share of sound steps that are taken for one
    words_a_second: float

    @property
    def username(self) -> str:
        return f"simulated-{self.number}"

    @property
    def name(self) -> str:
        """Says what it is, so that nobody takes it for a person."""
        return f"Simulated rater {self.number} (finds {self.finds:.0%} of errors)"


SIMULATED_RATERS = (
    SimulatedRater(1, 0.97, 0.002, 3.0),
    SimulatedRater(2, 0.94, 0.005, 2.5),
    SimulatedRater(3, 0.90, 0.010, 3.5),
    SimulatedRater(4, 0.85, 0.010, 4.0),
    SimulatedRater(5, 0.80, 0.030, 3.0),
    SimulatedRater(6, 0.05, 0.400, 9.0),  # hurries, and is paused for it
)
_STOPS_LATE_SHARE, _DOUBT_SHARE = 0.3, 0.06


@dataclass(frozen=True)
class SimulatedRating:
    step: int
    option: int
    rating: int
    active_ms: int


def simulate_ratings(
    trace: GeneratedTrace, rater: SimulatedRater, dice: random.Random, *, to_the_end: bool
) -> list[SimulatedRating]:
    """All that the rater says of a trace: up to the first error that they see, with its alternatives, or to the end."""
    told: list[SimulatedRating] = []
    for position, step in enumerate(trace.steps):
        if not step.is_rateable:
            continue
        said = _simulate_rating(position, trace.first_error, rater, dice)
        told.append(SimulatedRating(position, 0, said, _reading_time_ms(step.text, rater, dice)))
        if said == NEGATIVE and not to_the_end:
            return told + list(_rate_alternatives(position, step, rater, dice))
    return told


def _simulate_rating(position: int, error: int | None, rater: SimulatedRater, dice: random.Random) -> int:
    if error is not None and position == error:
        return NEGATIVE if dice.random() < rater.finds else POSITIVE
    chance = _STOPS_LATE_SHARE if error is not None and position > error else rater.blames
    if dice.random() < chance:
        return NEGATIVE
    return NEUTRAL if dice.random() < _DOUBT_SHARE else POSITIVE


def _rate_alternatives(
    position: int, step: GeneratedStep, rater: SimulatedRater, dice: random.Random
) -> Iterator[SimulatedRating]:
    for place, option in enumerate(step.options):
        if place:
            truth = POSITIVE if option.rating is None else option.rating
            said = truth if dice.random() < rater.finds else POSITIVE
            yield SimulatedRating(position, place, said, _reading_time_ms(option.text, rater, dice))


def _reading_time_ms(text: str, rater: SimulatedRater, dice: random.Random) -> int:
    words = len(text.split())
    return round(1000 * (1 + words / rater.words_a_second) * dice.lognormvariate(0, 0.3))
