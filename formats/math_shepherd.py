"""Math-Shepherd: problem and steps in one text with a tag after each step, and the same text with + and - as the tags.

The ratings come from rollouts, so the rater is a machine. OpenRLHF's variant, a list `value` of signs or numbers in
place of the second text, is read as well.
"""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from formats import examples, records, strict_json
from formats.examples import Columns, LabeledPath, LabelRule, OutputRow, RowTally, TraceExample, UnwritableRow
from formats.record_reader import RecordReader
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
TAG_IN_TEXT = f'the tag "{TAG}" is in the text'
COLUMNS: Columns = {"input": "string", "label": "string", "task": "string", **examples.RATER_COLUMNS}
_OPENING = re.compile(r"\s*(?:Step \d+: ?)?")
_FIRST = re.compile(r"\s+(?=Step 1: )")
_ANSWER = re.compile(r"The answer is: (.*?)\s*$", re.S)
_RATINGS = {"+": 1, "-": -1}


class MathShepherdItem(Struct, gc=False):
    input: str
    label: str | UnsetType = UNSET
    value: list[float | Literal["+", "-"]] | UnsetType = UNSET
    task: str = ""


def looks_like(record: object) -> bool:
    return isinstance(record, dict) and TAG in str(record.get("input")) and bool({"label", "value"} & record.keys())


def parse_traces(item: MathShepherdItem) -> Iterator[TraceRecord]:
    problem, steps = _split_input(item.input)
    turns = _rate_by_values(item, steps) if item.label is UNSET else _rate_by_signs(item, item.label, steps)
    answer = _ANSWER.search(steps[-1].options[0].text)
    yield TraceRecord(
        problem=ProblemRecord(problem, domain=item.task[:100]),
        steps=steps,
        answer=answer and answer.group(1),
        submissions=[SubmissionRecord(turns, machine=ROLLOUTS)],
    )


def _split_input(text: str) -> tuple[str, list[StepRecord]]:
    """Split the input into problem and steps. Tags and the words "Step k: " become separators, so no text is lost."""
    first = _FIRST.search(text)
    if first is None or TAG not in text:
        raise strict_json.RecordMisfit(("input",), f'input has no "Step 1: " or no tag "{TAG}"')
    pieces = text[first.start() :].split(TAG)
    if pieces[-1].strip():
        raise strict_json.RecordMisfit(("input",), f'the last step does not end with the tag "{TAG}"')
    steps, between = [], ""
    for piece in pieces[:-1]:
        opening = _OPENING.match(piece)
        start = opening.end() if opening else 0
        body = piece[start:].rstrip()
        steps.append(StepRecord([OptionRecord(body)], separator=between + piece[:start]))
        between = piece[start + len(body) :] + TAG
    return text[: first.start()], steps


def _rate_by_signs(item: MathShepherdItem, label: str, steps: list[StepRecord]) -> list[TurnRecord]:
    """Read the signs from the label, which is the input with a sign in place of each tag."""
    at = 0
    signs: list[str] = []
    for piece in item.input.split(TAG)[:-1]:
        if not label.startswith(piece, at) or label[at + len(piece) : at + len(piece) + 1] not in _RATINGS:
            raise strict_json.RecordMisfit(
                ("label",), f"label is not the input with + or - for each tag, after step {len(signs)}"
            )
        at += len(piece) + 1
        signs.append(label[at - 1])
    return records.make_turns([step.options[0].text for step in steps], [_RATINGS[sign] for sign in signs])


def _rate_by_values(item: MathShepherdItem, steps: list[StepRecord]) -> list[TurnRecord]:
    values = item.value or []
    if len(values) != len(steps):
        raise strict_json.RecordMisfit(("value",), f"{len(values)} values for {len(steps)} steps")
    texts = [step.options[0].text for step in steps]
    return [
        records.make_turn(position, text, _RATINGS[value])
        if isinstance(value, str)
        else TurnRecord(position, shown=[JudgmentRecord(text, value=value)])
        for position, (text, value) in enumerate(zip(texts, values, strict=True))
    ]


read = RecordReader(MathShepherdItem, parse_traces, looks_like=looks_like)


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    return examples.write_paths(example, rule, tally, _make_row)


def _make_row(path: LabeledPath, domain: str) -> OutputRow:
    """Make a row. A tag inside a text would shift all labels behind it, so such a path cannot be written."""
    if any(TAG in text for text in (path.prompt, *path.steps)):
        raise UnwritableRow(TAG_IN_TEXT)
    signs = ["+" if label else "-" for label in path.labels]
    return {"input": _join_steps(path, [TAG] * len(signs)), "label": _join_steps(path, signs), "task": domain}


def _join_steps(path: LabeledPath, marks: list[str]) -> str:
    steps = zip(path.steps, marks, strict=True)
    lines = (f"Step {number}: {text} {mark}" for number, (text, mark) in enumerate(steps, start=1))
    return f"{path.prompt} " + "\n".join(lines)
