"""ProcessBench: all steps of a trace, and the first wrong one, counted from 0; -1 where every step was found right."""

from collections.abc import Iterator

from exports.formats.columns import Columns, Row
from exports.formats.examples import Example, own_rating
from exports.formats.path import Rule
from exports.formats.tally import Tally
from labeling.importing.records import LIVE, TraceRecord

UNDECIDED = "not rated up to an error or the end"
COLUMNS: Columns = {
    "id": "string",
    "generator": "string",
    "problem": "string",
    "steps": ["string"],
    "final_answer_correct": "bool",
    "label": "int64",
}


def rows(example: Example, rule: Rule, tally: Tally) -> Iterator[Row]:
    for _, record in example.labelled(rule, tally):
        label = _agreed(example) if example.is_consensus else _label(record)
        if label is None or record.kind == LIVE:
            tally.leave_out(UNDECIDED)
            continue
        yield {
            "id": record.ref,
            "generator": record.provenance.policy if record.provenance else "",
            "problem": record.problem.text,
            "steps": [step.options[0].text for step in record.steps],
            "final_answer_correct": record.is_right,
            "label": label,
        }


def _agreed(example: Example) -> int | None:
    if example.agreed is None:
        return None
    return -1 if example.agreed.first_error is None else example.agreed.first_error


def _label(record: TraceRecord) -> int | None:
    """The first error, or -1; None where the rater stopped before either, as one does who gives up."""
    rated = 0
    for turn in record.submissions[0].turns:
        rating = own_rating(turn)
        if rating is None:
            return None
        if rating == -1:
            return turn.position
        rated += 1
    return -1 if rated == sum(step.is_rateable for step in record.steps) else None
