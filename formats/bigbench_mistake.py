"""BIG-Bench-Mistake: chains of thought with the place of the first mistake, counted from 0; null means none."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from formats import labeled_steps, strict_json
from formats.records import ProblemRecord, SubmissionRecord, TraceRecord

ANNOTATORS = "BIG-Bench-Mistake annotators"


class BigbenchMistakeItem(Struct, gc=False):
    input: str
    steps: list[str]
    mistake_index: int | None
    target: str | None = None
    answer: str | None = None


decoder = msgspec.json.Decoder(BigbenchMistakeItem)


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and {"input", "steps", "mistake_index"} <= record.keys()


def parse_traces(item: BigbenchMistakeItem) -> Iterator[TraceRecord]:
    index = item.mistake_index
    if index is not None and not 0 <= index < len(item.steps):
        reason = f"mistake_index is {index}, but the {len(item.steps)} steps count from 0 (null: no mistake)"
        raise strict_json.RecordMisfit(("mistake_index",), reason)
    is_known = item.target is not None and item.answer is not None
    yield TraceRecord(
        problem=ProblemRecord(item.input, answer=item.target),
        steps=labeled_steps.make_steps(item.steps),
        answer=item.answer,
        is_right=item.answer == item.target if is_known else None,
        outcome_by="grader" if is_known else "",
        outcome_grader="answer equals target" if is_known else "",
        submissions=[
            SubmissionRecord(
                labeled_steps.make_turns_to_first_error(item.steps, index),
                labeler=ANNOTATORS,
                finish_reason=labeled_steps.choose_finish_reason(index),
            )
        ],
    )
