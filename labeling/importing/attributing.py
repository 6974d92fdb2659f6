"""What the ratings of a file are is for whoever brings it in to say: those of the raters that the file names, those of
one rater known by a name, a machine's, known answers, or nothing. Pure.

Nothing is mixed silently. A file that says itself that a machine rated makes neither people's judgments nor gold.
"""

from typing import Literal

from labeling.importing.records import TraceRecord

Labels = Literal["judgments", "gold", "human", "monte_carlo", "judge", "none"]
LABELS: tuple[Labels, ...] = ("judgments", "gold", "human", "monte_carlo", "judge", "none")
NAMED: tuple[Labels, ...] = ("human", "monte_carlo", "judge")  # they need the name of the one that rated
_MACHINES: dict[str, str] = {"monte_carlo": "Monte Carlo: {}", "judge": "judge: {}"}


class Contradiction(Exception):
    """The file says otherwise than whoever brings it in."""


def attribute(record: TraceRecord, *, labels: Labels, labels_by: str) -> TraceRecord:
    """The record with its ratings given to whom they belong. Raises where the file itself says otherwise."""
    if labels == "judgments":
        return record
    if labels == "none":
        record.submissions = []
        return record
    if labels in ("gold", "human"):
        _refuse_machines(record, labels)
    if labels in NAMED:
        for submission in record.submissions:
            submission.labeler = labels_by if labels == "human" else None
            submission.machine = _MACHINES[labels].format(labels_by) if labels in _MACHINES else ""
        record.residue = None  # the bytes of the file name somebody else
    return record


def _refuse_machines(record: TraceRecord, labels: Labels) -> None:
    machine = next((submission.machine for submission in record.submissions if submission.machine), "")
    if machine:
        meant = "known answers" if labels == "gold" else "people's judgments"
        raise Contradiction(f"the file says that a machine rated this ({machine}): it cannot become {meant}")
