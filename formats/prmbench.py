"""PRMBench: solutions with inserted errors. `error_steps` count from 1; every other step is right."""

from collections.abc import Iterator

from msgspec import Struct

from formats import records, strict_json
from formats.record_reader import RecordReader
from formats.records import ProblemRecord, ProvenanceRecord, ShortRecordName, SubmissionRecord, TraceRecord

AUTHORS = "PRMBench authors"


class PrmbenchItem(Struct, gc=False):
    modified_question: str
    modified_process: list[str]
    error_steps: list[int]
    idx: ShortRecordName = ""
    classification: ShortRecordName = ""
    reason: str | None = ""


def parse_traces(item: PrmbenchItem) -> Iterator[TraceRecord]:
    n_steps = len(item.modified_process)
    outside = [number for number in item.error_steps if not 1 <= number <= n_steps]
    if outside:
        raise strict_json.RecordMisfit(
            ("error_steps",), f"error step {outside[0]} is not a step: the {n_steps} steps count from 1"
        )
    ratings = [-1 if number in item.error_steps else 1 for number in range(1, n_steps + 1)]
    turns = records.make_turns(item.modified_process, ratings)
    yield TraceRecord(
        problem=ProblemRecord(item.modified_question),
        steps=records.make_steps(item.modified_process),
        ref=f"{item.idx} {item.classification}".strip(),
        provenance=ProvenanceRecord(policy=f"errors written in: {item.classification}" if item.classification else ""),
        submissions=[SubmissionRecord(turns, labeler=AUTHORS, finish_reason="solution", finish_note=item.reason or "")],
    )


read = RecordReader(PrmbenchItem, parse_traces)
