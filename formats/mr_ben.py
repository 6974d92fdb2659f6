"""MR-Ben: solutions of several models with the first wrong step, a string that counts from 1; "N/A" means no error.

A file is one object that groups the solutions by question, or JSON Lines with one solution each. In the coding part a
solution is one text, and its first wrong step is given as the text of a line.
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
from formats.record_reader import RecordReader
from formats.records import BadLine, ProblemRecord, ProvenanceRecord, StepRecord, SubmissionRecord, TraceRecord

ANNOTATORS = "MR-Ben annotators"
SEGMENTER = "lines 2"
_NONE = "n/a"
_UNPLACED = -1  # there is an error, but its line cannot be found


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


_anything = msgspec.json.Decoder(object)
_json = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*+[,:]?[ \t\r\n]*+")


def looks_like(record: object) -> bool:
    if isinstance(record, dict) and "Model_Solution_Steps" not in record:
        record = next(iter(record.values()), None)
        record = record[0] if isinstance(record, list) and record else None
    return isinstance(record, dict) and "Model_Solution_First_Error_Step" in record


def regroup_values(values: Iterable[RawValue | BadLine]) -> Iterator[RawValue | BadLine]:
    """Yield each solution as a value of its own, so that a bad one does not affect the others."""
    for value in values:
        if isinstance(value, BadLine):
            yield value
            continue
        try:
            groups = strict_json.decode(value.raw, _anything)
            strict_json.check_strictness(value.raw)
        except strict_json.JsonRefused as refused:
            yield value.to_bad_line(refused)
            continue
        is_grouped = isinstance(groups, dict) and "Question" not in groups
        if is_grouped and all(isinstance(group, list) for group in cast(dict[str, object], groups).values()):
            yield from _split_solutions(value)
        else:
            yield value


def _split_solutions(value: RawValue) -> Iterator[RawValue]:
    """Yield the items of all lists in an object that contains only lists."""
    text = value.raw.decode()
    at, line, begun = 1, value.line, -value.column + 1
    while text[(at := _skip_space(text, at)) : at + 1] != "}":
        at = _skip_space(text, _json.raw_decode(text, at)[1]) + 1  # past the name, and into the list
        while text[(at := _skip_space(text, at)) : at + 1] != "]":
            end = _json.raw_decode(text, at)[1]
            line, begun = line + text.count("\n", max(begun, 0), at), max(text.rfind("\n", 0, at) + 1, begun)
            yield RawValue(text[at:end].encode(), line, at - begun + 1)
            at = end
        at += 1


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def parse_traces(item: MrBenItem) -> Iterator[TraceRecord]:
    given = item.Model_Solution_Steps
    steps = _split_lines(given) if isinstance(given, str) else labeled_steps.make_steps(given)
    texts = [step.options[0].text for step in steps]
    index = _find_error_line(item, texts) if isinstance(given, str) else _parse_error_step(item, len(steps))
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
        submissions=[] if index == _UNPLACED else [_make_submission(item, texts, index)],
    )


def _make_submission(item: MrBenItem, texts: list[str], index: int | None) -> SubmissionRecord:
    reasons = item.Model_Solution_Error_Reason or ""
    note = reasons if isinstance(reasons, str) else "\n\n".join(reasons)
    return labeled_steps.make_submission_to_first_error(texts, index, labeler=ANNOTATORS, finish_note=note)


def _split_lines(text: str) -> list[StepRecord]:
    return labeled_steps.make_cut_steps(segmenters.cut_text(text, segmenter=SEGMENTER))


def _find_error_line(item: MrBenItem, texts: list[str]) -> int | None:
    """Return the index of the line that the file quotes, or _UNPLACED unless exactly one line matches."""
    given = str(item.Model_Solution_First_Error_Step).strip()
    if given.lower() == _NONE:
        return None
    matches = [position for position, text in enumerate(texts) if text.strip() == given]
    return matches[0] if len(matches) == 1 else _UNPLACED


def _parse_error_step(item: MrBenItem, n_steps: int) -> int | None:
    given = str(item.Model_Solution_First_Error_Step).strip()
    if given.lower() == _NONE:
        return None
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= n_steps:
        reason = f'first error step "{given}" is not a step: the {n_steps} steps count from 1, and N/A means no error'
        raise strict_json.RecordMisfit(("Model_Solution_First_Error_Step",), reason)
    return int(given) - 1


read = RecordReader(MrBenItem, parse_traces, regroup=regroup_values)
