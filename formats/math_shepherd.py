"""Math-Shepherd: problem and steps in one text, a tag after each step, and the same text with + and - for the tags.

The ratings come from rollouts, not from people: they are a machine's. OpenRLHF's form, a list `value` of signs or of
numbers instead of the second text, is read as well.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from formats import labeled_steps, strict_json
from formats.records import (
    JudgmentRecord,
    OptionRecord,
    ProblemRecord,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
)

TAG = "ки"
ROLLOUTS = "Monte Carlo (Math-Shepherd)"
_OPENING = re.compile(r"\s*(?:Step \d+: ?)?")
_FIRST = re.compile(r"\s+(?=Step 1: )")
_ANSWER = re.compile(r"The answer is: (.*?)\s*$", re.S)
_RATINGS = {"+": 1, "-": -1}


class MathShepherdItem(Struct, gc=False):
    input: str
    label: str | UnsetType = UNSET
    value: list[float | Literal["+", "-"]] | UnsetType = UNSET
    task: str = ""


decoder = msgspec.json.Decoder(MathShepherdItem)


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and TAG in str(record.get("input")) and bool({"label", "value"} & record.keys())


def parse_traces(item: MathShepherdItem) -> Iterator[TraceRecord]:
    problem, steps = _cut(item.input)
    turns = _values(item, steps) if item.label is UNSET else _signs(item, item.label, steps)
    answer = _ANSWER.search(steps[-1].options[0].text)
    yield TraceRecord(
        problem=ProblemRecord(problem, domain=item.task[:100]),
        steps=steps,
        answer=answer and answer.group(1),
        submissions=[SubmissionRecord(turns, machine=ROLLOUTS)],
    )


def _cut(text: str) -> tuple[str, list[StepRecord]]:
    """The tags and the words "Step k: " are separators: with the steps between them they give the text back."""
    first = _FIRST.search(text)
    if first is None or TAG not in text:
        raise strict_json.RecordMisfit(("input",), f'no "Step 1: " or no tag "{TAG}" in input')
    pieces = text[first.start() :].split(TAG)
    if pieces[-1].strip():
        raise strict_json.RecordMisfit(("input",), f'the last step has no tag "{TAG}"')
    steps, between = [], ""
    for piece in pieces[:-1]:
        opening = _OPENING.match(piece)
        start = opening.end() if opening else 0
        body = piece[start:].rstrip()
        steps.append(StepRecord([OptionRecord(body)], separator=between + piece[:start]))
        between = piece[start + len(body) :] + TAG
    return text[: first.start()], steps


def _signs(item: MathShepherdItem, label: str, steps: list[StepRecord]) -> list[TurnRecord]:
    """The label is the input with a sign for each tag, so the signs stand where walking along the input ends up."""
    at = 0
    signs: list[str] = []
    for piece in item.input.split(TAG)[:-1]:
        if not label.startswith(piece, at) or label[at + len(piece) : at + len(piece) + 1] not in _RATINGS:
            raise strict_json.RecordMisfit(
                ("label",), f"label is not the input with + or - for each tag, after step {len(signs)}"
            )
        at += len(piece) + 1
        signs.append(label[at - 1])
    return labeled_steps.make_turns([step.options[0].text for step in steps], [_RATINGS[sign] for sign in signs])


def _values(item: MathShepherdItem, steps: list[StepRecord]) -> list[TurnRecord]:
    values = item.value or []
    if len(values) != len(steps):
        raise strict_json.RecordMisfit(("value",), f"{len(values)} values for {len(steps)} steps")
    return [
        _turn(position, step.options[0].text, value)
        for position, (step, value) in enumerate(zip(steps, values, strict=True))
    ]


def _turn(position: int, text: str, value: float | str) -> TurnRecord:
    if isinstance(value, str):
        return labeled_steps.make_turn(position, text, _RATINGS[value])
    return TurnRecord(position, shown=[JudgmentRecord(text, value=value)])
