"""Attribute the ratings of a file to a labeler, as the user of the import states.

They belong to the raters that the file names, to one named rater, or to a machine; they are gold, or are ignored. Human
and machine ratings are never mixed: a file that names a machine as the rater cannot be imported as human work or gold.
"""

from typing import Literal

from formats.records import TraceRecord

LabelsKind = Literal["judgments", "gold", "human", "monte_carlo", "judge", "none"]
LABELS_KINDS: tuple[LabelsKind, ...] = ("judgments", "gold", "human", "monte_carlo", "judge", "none")
NAMED_KINDS: tuple[LabelsKind, ...] = ("human", "monte_carlo", "judge")  # these require a name
_MACHINE_NAMES: dict[str, str] = {"monte_carlo": "Monte Carlo: {}", "judge": "judge: {}"}


class LabelsContradictFile(Exception):
    """The file names another kind of rater than the user."""


def attribute_labels(record: TraceRecord, *, labels: LabelsKind, labels_by: str) -> TraceRecord:
    """Attribute the ratings of a record. Raises `LabelsContradictFile` if the file contradicts."""
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
        record.residue = None  # the original bytes name another labeler
    return record


def _refuse_machines(record: TraceRecord, labels: LabelsKind) -> None:
    machine = next((submission.machine for submission in record.submissions if submission.machine), "")
    if machine:
        target = "gold" if labels == "gold" else "human ratings"
        raise LabelsContradictFile(f"the file names a machine as the rater ({machine}): its ratings cannot be {target}")
