"""What the ratings of a file are is for whoever brings it in to say: those of the raters that the file names, those of
one rater known by a name, a machine's, known answers, or nothing. Pure.

Nothing is mixed silently. A file that says itself that a machine rated makes neither people's judgments nor gold.
"""

from typing import Literal

from formats.records import TraceRecord

LabelsKind = Literal["judgments", "gold", "human", "monte_carlo", "judge", "none"]
LABELS_KINDS: tuple[LabelsKind, ...] = ("judgments", "gold", "human", "monte_carlo", "judge", "none")
NAMED_KINDS: tuple[LabelsKind, ...] = ("human", "monte_carlo", "judge")  # they need the name of the one that rated
_MACHINE_NAMES: dict[str, str] = {"monte_carlo": "Monte Carlo: {}", "judge": "judge: {}"}


class LabelsContradictFile(Exception):
    """The file says otherwise than whoever brings it in."""


def attribute_labels(record: TraceRecord, *, labels: LabelsKind, labels_by: str) -> TraceRecord:
    """The record with its ratings given to whom they belong. Raises where the file itself says otherwise."""
    if labels == "judgments":
        return record
    if labels == "none":
        record.submissions = []
        return record
    if labels in ("gold", "human"):
        _refuse_machines(record, labels)
    if labels in NAMED_KINDS:
        for submission in record.submissions:
            submission.labeler = labels_by if labels == "human" else None
            submission.machine = _MACHINE_NAMES[labels].format(labels_by) if labels in _MACHINE_NAMES else ""
        record.residue = None  # the bytes of the file name somebody else
    return record


def _refuse_machines(record: TraceRecord, labels: LabelsKind) -> None:
    machine = next((submission.machine for submission in record.submissions if submission.machine), "")
    if machine:
        meant = "known answers" if labels == "gold" else "people's judgments"
        raise LabelsContradictFile(f"the file says that a machine rated this ({machine}): it cannot become {meant}")
