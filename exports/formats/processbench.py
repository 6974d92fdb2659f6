"""ProcessBench: all steps of a trace, and the first wrong one, counted from 0; -1 where every step was found right."""

import json
from collections.abc import Iterable, Iterator

from exports.formats import path
from exports.formats.booleans import Tally
from labeling.importing.records import LIVE, TraceRecord

UNDECIDED = "not rated up to an error or the end"


def write(records: Iterable[TraceRecord], *, tally: Tally | None = None) -> Iterator[bytes]:
    tally = Tally() if tally is None else tally
    for record in records:
        label = _label(record)
        if label is None:
            tally.leave_out(UNDECIDED)
            continue
        tally.rows += 1
        yield _line(record, label)


def _line(record: TraceRecord, label: int) -> bytes:
    row = {
        "id": record.ref,
        "generator": record.provenance.policy if record.provenance else "",
        "problem": record.problem.text,
        "steps": [step.options[0].text for step in record.steps],
        "final_answer_correct": record.is_right,
        "label": label,
    }
    return json.dumps(row).encode("ascii") + b"\n"


def _label(record: TraceRecord) -> int | None:
    """The first error, or -1; None where the rater stopped before either, as one does who gives up."""
    if record.kind == LIVE or not record.submissions:
        return None
    rated = 0
    for turn in record.submissions[0].turns:
        judgment = path.own(turn)
        if judgment is None or judgment.rating is None:
            return None
        if judgment.rating == -1:
            return turn.position
        rated += 1
    return -1 if rated == sum(step.is_rateable for step in record.steps) else None
