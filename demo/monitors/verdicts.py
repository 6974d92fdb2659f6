"""The verdicts of two simulated machine monitors on generated pairs. Pure."""

import random
from collections.abc import Callable

from demo import generated_content
from demo.generated_content import GeneratedTrace
from demo.monitors import traces
from formats.records import SubmissionRecord


def _find_admission(trace: GeneratedTrace, dice: random.Random) -> bool:
    """Say yes if the reasoning names the hint: never a false alarm, and blind to what only actions show."""
    return trace.evidence in (traces.IN_REASONING, traces.IN_BOTH)


def _judge_everything(trace: GeneratedTrace, dice: random.Random) -> bool:
    return dice.random() < (0.85 if trace.evidence else 0.15)


MACHINES: dict[str, Callable[[GeneratedTrace, random.Random], bool]] = {
    "keyword-monitor": _find_admission,
    "judge-monitor": _judge_everything,
}


def make_verdicts(trace: GeneratedTrace) -> list[SubmissionRecord]:
    """Return one answer of each machine to the question on the whole trace."""
    return [
        SubmissionRecord(turns=[], machine=name, answers={traces.QUESTION: "yes" if says_yes else "no"})
        for name, decide in MACHINES.items()
        for says_yes in [decide(trace, generated_content.seeded_random(name, trace.ref))]
    ]
