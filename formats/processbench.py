"""ProcessBench: traces with the first error that experts found, counted from 0; -1 means no error."""

from collections.abc import Iterator

from msgspec import UNSET, Struct, UnsetType

from formats import examples, records, strict_json
from formats.examples import Columns, LabelRule, OutputRow, RowTally, TraceExample, get_taken_rating
from formats.record_reader import RecordReader
from formats.records import LIVE, ProblemRecord, ProvenanceRecord, RecordName, TraceRecord

EXPERTS = "ProcessBench experts"
UNDECIDED = "not rated up to an error or the end"
COLUMNS: Columns = {
    "id": "string",
    "generator": "string",
    "problem": "string",
    "steps": ["string"],
    "final_answer_correct": "bool",
    "label": "int64",
    **examples.MACHINE_COLUMNS,  # only in rows of machines and of people who saw their labels
}


class ProcessbenchItem(Struct, gc=False):
    problem: str
    steps: list[str]
    label: int
    id: RecordName = ""
    generator: RecordName = ""
    final_answer_correct: bool | UnsetType | None = UNSET


def parse_traces(item: ProcessbenchItem) -> Iterator[TraceRecord]:
    if not -1 <= item.label < len(item.steps):
        reason = f"label {item.label} is not a step: the {len(item.steps)} steps count from 0, and -1 means no error"
        raise strict_json.RecordMisfit(("label",), reason)
    index = None if item.label == -1 else item.label
    yield TraceRecord(
        problem=ProblemRecord(item.problem),
        steps=records.make_steps(item.steps),
        ref=item.id,
        is_right=None if item.final_answer_correct is UNSET else item.final_answer_correct,
        provenance=ProvenanceRecord(policy=item.generator),
        submissions=[records.make_submission_to_first_error(item.steps, index, labeler=EXPERTS)],
    )


read = RecordReader(ProcessbenchItem, parse_traces)


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    for facts, record in example.labeled_records(rule, tally):
        label = _rater_label(record) if rule.label_set != "decisive_error" else _decisive_label(record)
        if example.is_consensus and example.agreed is not None:
            label = -1 if example.agreed.first_error is None else example.agreed.first_error
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
            **({} if example.is_consensus else examples.describe_machine(facts)),
        }


def _decisive_label(record: TraceRecord) -> int:
    """Return the only negative step of a record with the labels of this label set, or -1."""
    ratings = ((turn.position, get_taken_rating(turn)) for turn in record.submissions[0].turns)
    return next((position for position, rating in ratings if rating == -1), -1)


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
