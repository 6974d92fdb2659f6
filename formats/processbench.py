"""ProcessBench: traces with the first error that experts found, counted from 0; -1 means no error."""

from collections.abc import Iterator

from msgspec import UNSET, Struct, UnsetType

from formats import labeled_steps, strict_json
from formats.columns import Columns, OutputRow
from formats.examples import RowTally, TraceExample, get_taken_rating
from formats.labeled_paths import LabelRule
from formats.labeled_steps import RecordName
from formats.record_reader import RecordReader
from formats.records import LIVE, ProblemRecord, ProvenanceRecord, TraceRecord

EXPERTS = "ProcessBench experts"
UNDECIDED = "not rated up to an error or the end"
COLUMNS: Columns = {
    "id": "string",
    "generator": "string",
    "problem": "string",
    "steps": ["string"],
    "final_answer_correct": "bool",
    "label": "int64",
}


class ProcessbenchItem(Struct, gc=False):
    problem: str
    steps: list[str]
    label: int
    id: RecordName = ""
    generator: RecordName = ""
    final_answer_correct: bool | UnsetType | None = UNSET


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and {"problem", "steps", "label"} <= record.keys()


def parse_traces(item: ProcessbenchItem) -> Iterator[TraceRecord]:
    if not -1 <= item.label < len(item.steps):
        reason = f"label {item.label} is not a step: the {len(item.steps)} steps count from 0, and -1 means no error"
        raise strict_json.RecordMisfit(("label",), reason)
    index = None if item.label == -1 else item.label
    is_right = None if item.final_answer_correct is UNSET else item.final_answer_correct
    yield TraceRecord(
        problem=ProblemRecord(item.problem),
        steps=labeled_steps.make_steps(item.steps),
        ref=item.id,
        is_right=is_right,
        outcome_by="" if is_right is None else "file",
        provenance=ProvenanceRecord(policy=item.generator),
        submissions=[labeled_steps.make_submission_to_first_error(item.steps, index, labeler=EXPERTS)],
    )


read = RecordReader(ProcessbenchItem, parse_traces)


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    for _, record in example.labeled_records(rule, tally):
        label = _agreed_label(example) if example.is_consensus else _rater_label(record)
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


def _agreed_label(example: TraceExample) -> int | None:
    if example.agreed is None:
        return None
    return -1 if example.agreed.first_error is None else example.agreed.first_error


def _rater_label(record: TraceRecord) -> int | None:
    """Return the first error, -1 for none, or None if the rater stopped before that was clear."""
    n_rated = 0
    for turn in record.submissions[0].turns:
        rating = get_taken_rating(turn)
        if rating is None:
            return None
        if rating == -1:
            return turn.position
        n_rated += 1
    return -1 if n_rated == sum(step.is_rateable for step in record.steps) else None
