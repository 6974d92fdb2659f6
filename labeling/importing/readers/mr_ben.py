"""MR-Ben: solutions of several models with the first wrong step, a string that counts from 1; "N/A" means none.

The file is one object that groups the solutions by question; a single solution a line is read as well.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from labeling.importing.readers import labelled, strictjson
from labeling.importing.records import ProblemRecord, ProvenanceRecord, SubmissionRecord, TraceRecord

ANNOTATORS = "MR-Ben annotators"
_NONE = {"n/a", ""}


class Item(Struct, gc=False):
    Question: str
    Model_Solution_Steps: list[str]
    Model_Solution_First_Error_Step: str | int
    Question_UUID: str = ""
    Subject: str = ""
    Options: str | None = ""
    Ground_Truth_Answer: str | None = None
    Ground_Truth_Analysis: str | None = None
    Sampled_Model: str = ""
    Model_Solution_Correctness: str = ""
    Model_Solution_Error_Reason: str | list[str] | None = ""


decoder = msgspec.json.Decoder(object)


def looks_like(record: object) -> bool:
    if isinstance(record, dict) and "Model_Solution_Steps" not in record:
        record = next(iter(record.values()), None)
        record = record[0] if isinstance(record, list) and record else None
    return isinstance(record, dict) and "Model_Solution_First_Error_Step" in record


def traces(value: object) -> Iterator[TraceRecord]:
    try:
        if isinstance(value, dict) and "Question" not in value:
            items = [item for group in msgspec.convert(value, dict[str, list[Item]]).values() for item in group]
        else:
            items = [msgspec.convert(value, Item)]
    except msgspec.ValidationError as error:
        raise strictjson.misfit(error) from error
    for item in items:
        yield _trace(item)


def _trace(item: Item) -> TraceRecord:
    index = _index(item)
    is_right = {"correct": True, "incorrect": False}.get(item.Model_Solution_Correctness.lower())
    reasons = item.Model_Solution_Error_Reason or ""
    return TraceRecord(
        problem=ProblemRecord(
            "\n".join(filter(None, [item.Question, item.Options])),
            answer=item.Ground_Truth_Answer,
            solution=item.Ground_Truth_Analysis,
            domain=item.Subject[:100],
        ),
        steps=labelled.steps(item.Model_Solution_Steps),
        ref=f"{item.Question_UUID} {item.Sampled_Model}".strip(),
        is_right=is_right,
        outcome_by="" if is_right is None else "file",
        provenance=ProvenanceRecord(policy=item.Sampled_Model),
        submissions=[
            SubmissionRecord(
                labelled.first_error(item.Model_Solution_Steps, index),
                labeler=ANNOTATORS,
                finish_reason=labelled.finish_reason(index),
                finish_note=reasons if isinstance(reasons, str) else "\n\n".join(reasons),
            )
        ],
    )


def _index(item: Item) -> int | None:
    """The file counts from 1, and as text."""
    given = str(item.Model_Solution_First_Error_Step).strip()
    if given.lower() in _NONE:
        return None
    n_steps = len(item.Model_Solution_Steps)
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= n_steps:
        raise strictjson.Misfit((), f'first error step "{given}" is none of the {n_steps} steps, which count from 1')
    return int(given) - 1
