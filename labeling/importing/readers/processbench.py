"""ProcessBench: traces whose first error experts have found. The label counts from 0; -1 means none."""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Struct, UnsetType

from labeling.importing.readers import labelled, strictjson
from labeling.importing.readers.labelled import Name
from labeling.importing.records import ProblemRecord, ProvenanceRecord, SubmissionRecord, TraceRecord

EXPERTS = "ProcessBench experts"


class Item(Struct, gc=False):
    problem: str
    steps: list[str]
    label: int
    id: Name = ""
    generator: Name = ""
    final_answer_correct: bool | UnsetType | None = UNSET


decoder = msgspec.json.Decoder(Item)


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and {"problem", "steps", "label"} <= record.keys()


def traces(item: Item) -> Iterator[TraceRecord]:
    if not -1 <= item.label < len(item.steps):
        reason = f"label is {item.label}, but the {len(item.steps)} steps count from 0 (-1: no error)"
        raise strictjson.Misfit(("label",), reason)
    index = None if item.label == -1 else item.label
    is_right = None if item.final_answer_correct is UNSET else item.final_answer_correct
    yield TraceRecord(
        problem=ProblemRecord(item.problem),
        steps=labelled.steps(item.steps),
        ref=item.id,
        is_right=is_right,
        outcome_by="" if is_right is None else "file",
        provenance=ProvenanceRecord(policy=item.generator),
        submissions=[
            SubmissionRecord(
                labelled.first_error(item.steps, index),
                labeler=EXPERTS,
                finish_reason=labelled.finish_reason(index),
            )
        ],
    )
