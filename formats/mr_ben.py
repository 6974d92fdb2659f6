"""MR-Ben: solutions of several models with the first wrong step, a string that counts from 1; "N/A" means none.

The file is one object that groups the solutions by question; a single solution a line is read as well. In the part on
coding a solution is one text, and its first wrong step is a line of it, word for word.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import cast

import msgspec
from msgspec import Struct

from formats import labeled_steps, segmenters, strict_json
from formats.json_values import RawValue
from formats.labeled_steps import ShortRecordName
from formats.records import BadLine, ProblemRecord, ProvenanceRecord, StepRecord, SubmissionRecord, TraceRecord

ANNOTATORS = "MR-Ben annotators"
SEGMENTER = "lines 2"
_NONE = "n/a"
_UNPLACED = -1  # there is an error, and the file does not say where


class MrBenItem(Struct, gc=False):
    Question: str
    Model_Solution_Steps: list[str] | str
    Model_Solution_First_Error_Step: str | int
    Question_UUID: ShortRecordName = ""
    Subject: str = ""
    Options: str | None = ""
    Ground_Truth_Answer: str | None = None
    Ground_Truth_Analysis: str | None = None
    Sampled_Model: ShortRecordName = ""
    Model_Solution_Correctness: str = ""
    Model_Solution_Error_Reason: str | list[str] | None = ""


decoder = msgspec.json.Decoder(MrBenItem)
_anything = msgspec.json.Decoder(object)
_json = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*+[,:]?[ \t\r\n]*+")


def looks_like(record: object) -> bool:
    if isinstance(record, dict) and "Model_Solution_Steps" not in record:
        record = next(iter(record.values()), None)
        record = record[0] if isinstance(record, list) and record else None
    return isinstance(record, dict) and "Model_Solution_First_Error_Step" in record


def regroup_values(given: Iterable[RawValue | BadLine]) -> Iterator[RawValue | BadLine]:
    """Each solution as a value by itself, so that a bad one is refused alone."""
    for found in given:
        if isinstance(found, BadLine):
            yield found
            continue
        try:
            value = strict_json.decode(found.raw, _anything)
            strict_json.check_strictness(found.raw)
        except strict_json.JsonRefused as refused:
            yield found.bad(refused)
            continue
        is_grouped = isinstance(value, dict) and "Question" not in value
        if is_grouped and all(isinstance(group, list) for group in cast(dict[str, object], value).values()):
            yield from _solutions(found)
        else:
            yield found


def _solutions(found: RawValue) -> Iterator[RawValue]:
    """What stands in the lists of an object, which is known to hold nothing but lists."""
    text = found.raw.decode()
    at, line, begun = 1, found.line, -found.column + 1
    while text[(at := _after_space(text, at)) : at + 1] != "}":
        at = _after_space(text, _json.raw_decode(text, at)[1]) + 1  # past the name, and into the list
        while text[(at := _after_space(text, at)) : at + 1] != "]":
            end = _json.raw_decode(text, at)[1]
            line, begun = line + text.count("\n", max(begun, 0), at), max(text.rfind("\n", 0, at) + 1, begun)
            yield RawValue(text[at:end].encode(), line, at - begun + 1)
            at = end
        at += 1


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def parse_traces(item: MrBenItem) -> Iterator[TraceRecord]:
    given = item.Model_Solution_Steps
    steps = _lines(given) if isinstance(given, str) else labeled_steps.make_steps(given)
    texts = [step.options[0].text for step in steps]
    index = _line_of(item, texts) if isinstance(given, str) else _index(item, len(steps))
    is_right = {"correct": True, "incorrect": False}.get(item.Model_Solution_Correctness.lower())
    yield TraceRecord(
        problem=ProblemRecord(
            "\n".join(filter(None, [item.Question, item.Options])),
            answer=item.Ground_Truth_Answer,
            solution=item.Ground_Truth_Analysis,
            domain=item.Subject[:100],
        ),
        steps=steps,
        ref=f"{item.Question_UUID} {item.Sampled_Model}".strip(),
        is_right=is_right,
        outcome_by="" if is_right is None else "file",
        provenance=ProvenanceRecord(policy=item.Sampled_Model, segmenter=SEGMENTER if isinstance(given, str) else ""),
        submissions=[] if index == _UNPLACED else [_submission(item, texts, index)],
    )


def _lines(text: str) -> list[StepRecord]:
    return labeled_steps.make_cut_steps(segmenters.cut_text(text, segmenter=SEGMENTER))


def _submission(item: MrBenItem, texts: list[str], index: int | None) -> SubmissionRecord:
    reasons = item.Model_Solution_Error_Reason or ""
    return SubmissionRecord(
        labeled_steps.make_turns_to_first_error(texts, index),
        labeler=ANNOTATORS,
        finish_reason=labeled_steps.choose_finish_reason(index),
        finish_note=reasons if isinstance(reasons, str) else "\n\n".join(reasons),
    )


def _line_of(item: MrBenItem, texts: list[str]) -> int | None:
    """The line that the file names word for word; of one that stands there twice, or not at all, nobody knows."""
    given = str(item.Model_Solution_First_Error_Step).strip()
    if given.lower() == _NONE:
        return None
    found = [position for position, text in enumerate(texts) if text.strip() == given]
    return found[0] if len(found) == 1 else _UNPLACED


def _index(item: MrBenItem, n_steps: int) -> int | None:
    """The file counts from 1, and as text."""
    given = str(item.Model_Solution_First_Error_Step).strip()
    if given.lower() == _NONE:
        return None
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= n_steps:
        reason = f'first error step "{given}" is none of the {n_steps} steps, which count from 1 (N/A: no error)'
        raise strict_json.RecordMisfit(("Model_Solution_First_Error_Step",), reason)
    return int(given) - 1
