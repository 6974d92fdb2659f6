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

from formats import records, strict_json
from formats.raw_values import RawValue
from formats.record_reader import RecordReader
from formats.records import BadLine, ProblemRecord, ProvenanceRecord, ShortRecordName, TraceRecord

ANNOTATORS = "MR-Ben annotators"
SEGMENTER = "lines 2"
_UNPLACED = -1  # there is an error, but its line cannot be found


class MrBenItem(Struct, gc=False):
    Question: str
    Model_Solution_Steps: list[str] | str
    Model_Solution_First_Error_Step: str | int
    Question_UUID: ShortRecordName = ""
    Subject: str = ""
    Options: str | None = ""
    Ground_Truth_Answer: str | None = None
    Ground_Truth_Answer_Modified: str | None = None
    Ground_Truth_Analysis: str | None = None
    Sampled_Model: ShortRecordName = ""
    Model_Solution_Correctness: str = ""
    Model_Solution_Error_Reason: str | list[str] | None = ""


_anything = msgspec.json.Decoder(object)
_json = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*+[,:]?[ \t\r\n]*+")
# "Choice_B", "choice (B)", "Solution: B"; neither "not Choice_B" nor a list: "Choice A, B, or D", "None of Choice_A/B".
_CHOICE = re.compile(
    r"(?:(?<!not )\b[Cc]hoice(?:\\?_| )|^(?:Solution|(?:Final )?[Aa]nswer): )\(?([A-Z])\b(?!,? ?(?:/|or|,) ?[A-Z]\b)",
    re.M,
)


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
    steps = records.cut_steps(given, segmenter=SEGMENTER) if isinstance(given, str) else records.make_steps(given)
    texts = [step.options[0].text for step in steps]
    index, submissions = _find_error(item, texts), []
    if index != _UNPLACED:
        reasons = item.Model_Solution_Error_Reason or ""
        note = reasons if isinstance(reasons, str) else "\n\n".join(reasons)
        submissions = [records.make_submission_to_first_error(texts, index, labeler=ANNOTATORS, finish_note=note)]
    yield TraceRecord(
        problem=ProblemRecord(
            "\n".join(filter(None, [item.Question, item.Options])),
            answer=item.Ground_Truth_Answer_Modified or item.Ground_Truth_Answer,
            solution=item.Ground_Truth_Analysis,
            domain=item.Subject[:100],
        ),
        steps=steps,
        ref=f"{item.Question_UUID} {item.Sampled_Model}".strip(),
        is_right=_compare_choices(item, texts[-1] if texts else ""),
        provenance=ProvenanceRecord(policy=item.Sampled_Model, segmenter=SEGMENTER if isinstance(given, str) else ""),
        submissions=submissions,
    )


def _compare_choices(item: MrBenItem, last: str) -> bool | None:
    """Tell whether the choice that the last step names is the right one, None unless it names exactly one.

    `Model_Solution_Correctness` does not say: it is about all steps, and a solution with an error can end right.
    """
    truth = (item.Ground_Truth_Answer_Modified or item.Ground_Truth_Answer or "").strip()
    chosen = set(_CHOICE.findall(last))
    if len(truth) != 1 or len(chosen) != 1:
        return None
    return chosen == {truth}


def _find_error(item: MrBenItem, texts: list[str]) -> int | None:
    """Return the index of the first error, which a file gives as a number or, for a text, as the line itself. It is
    _UNPLACED unless exactly one line matches."""
    given = str(item.Model_Solution_First_Error_Step).strip()
    if given.lower() == "n/a":
        return None
    if isinstance(item.Model_Solution_Steps, str):
        matches = [position for position, text in enumerate(texts) if text.strip() == given]
        return matches[0] if len(matches) == 1 else _UNPLACED
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= len(texts):
        reason = (
            f'first error step "{given}" is not a step: the {len(texts)} steps count from 1, and N/A means no error'
        )
        raise strict_json.RecordMisfit(("Model_Solution_First_Error_Step",), reason)
    return int(given) - 1


read = RecordReader(MrBenItem, parse_traces, looks_like=looks_like, regroup=regroup_values)
