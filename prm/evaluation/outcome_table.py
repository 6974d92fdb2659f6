"""The answer beside the way to it: how often a right answer was come by wrongly, and the other way round.

C. Zheng et al. (2024), "ProcessBench", arXiv:2412.06559, section 3; J. Uesato et al. (2022), "Solving math word
problems with process- and outcome-based feedback", arXiv:2211.14275 (trace error).
"""

from dataclasses import dataclass

from stats import intervals
from stats.arrays import Bools
from stats.estimates import Interval


@dataclass(frozen=True)
class OutcomeTable:
    """Traces by answer and process; `trace_error` is the share of erroneous traces among right answers."""

    right_and_sound: int
    right_but_erroneous: int
    wrong_but_sound: int
    wrong_and_erroneous: int
    trace_error: float | None
    interval: Interval | None


def build_outcome_table(*, is_answer_right: Bools, has_error: Bools) -> OutcomeTable:
    """Traces with an unknown outcome are left out by the caller. One trace per problem is assumed by the interval."""
    erroneous, sound = int((is_answer_right & has_error).sum()), int((is_answer_right & ~has_error).sum())
    right = erroneous + sound
    return OutcomeTable(
        right_and_sound=sound,
        right_but_erroneous=erroneous,
        wrong_but_sound=int((~is_answer_right & ~has_error).sum()),
        wrong_and_erroneous=int((~is_answer_right & has_error).sum()),
        trace_error=erroneous / right if right else None,
        interval=intervals.wilson_interval(right=erroneous, n=right) if right else None,
    )
