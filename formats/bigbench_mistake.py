"""BIG-Bench-Mistake: chains of thought with the first mistake, counted from 0; null means no mistake."""

from collections.abc import Iterator

from msgspec import Struct

from formats import records, strict_json
from formats.record_reader import RecordReader
from formats.records import ProblemRecord, TraceRecord

ANNOTATORS = "BIG-Bench-Mistake annotators"


class BigbenchMistakeItem(Struct, gc=False):
    input: str
    steps: list[str]
    mistake_index: int | None
    target: str | None = None
    answer: str | None = None


def parse_traces(item: BigbenchMistakeItem) -> Iterator[TraceRecord]:
    index = item.mistake_index
    if index is not None and not 0 <= index < len(item.steps):
        reason = f"mistake {index} is not a step: the {len(item.steps)} steps count from 0, and null means no mistake"
        raise strict_json.RecordMisfit(("mistake_index",), reason)
    is_known = item.target is not None and item.answer is not None
    yield TraceRecord(
        problem=ProblemRecord(item.input, answer=item.target),
        steps=records.make_steps(item.steps),
        answer=item.answer,
        is_right=item.answer == item.target if is_known else None,
        outcome_by="grader" if is_known else "",
        outcome_grader="answer equals target" if is_known else "",
        submissions=[records.make_submission_to_first_error(item.steps, index, labeler=ANNOTATORS)],
    )


read = RecordReader(BigbenchMistakeItem, parse_traces)
