"""The formats that know right and wrong alone: TRL's stepwise supervision, Math-Shepherd, RLHFlow."""

import json
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from exports.formats import path
from exports.formats.path import Row, Rule
from labeling.importing.records import TraceRecord

TAG = "ки"


class Unwritable(Exception):
    """A row that the format cannot hold."""


class Tally(Struct):
    """What came of the records: rows, and how many were left out for which reason."""

    rows: int = 0
    left_out: dict[str, int] = {}

    def leave_out(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


def write_trl(
    records: Iterable[TraceRecord], *, rule: Rule = path.AS_USUAL, tally: Tally | None = None
) -> Iterator[bytes]:
    """Truth values and nothing else: a trainer makes integers of them and dies of any other."""
    return _write(
        records, rule, tally, lambda row: {"prompt": row.prompt, "completions": row.steps, "labels": row.labels}
    )


def write_math_shepherd(
    records: Iterable[TraceRecord], *, rule: Rule = path.AS_USUAL, tally: Tally | None = None
) -> Iterator[bytes]:
    return _write(records, rule, tally, _tagged)


def write_rlhflow(
    records: Iterable[TraceRecord], *, rule: Rule = path.AS_USUAL, tally: Tally | None = None
) -> Iterator[bytes]:
    return _write(records, rule, tally, _conversation)


def _write(
    records: Iterable[TraceRecord], rule: Rule, tally: Tally | None, shape: Callable[[Row], dict[str, object]]
) -> Iterator[bytes]:
    tally = Tally() if tally is None else tally
    for record in records:
        row = None
        for row in path.rows(record, rule):
            try:
                yield json.dumps(shape(row)).encode("ascii") + b"\n"
                tally.rows += 1
            except Unwritable as error:
                tally.leave_out(str(error))
        if row is None:
            tally.leave_out("no rated step")


def _tagged(row: Row) -> dict[str, object]:
    """The same text twice, with a tag and with a sign after each step. A tag inside a step would shift all labels."""
    if any(TAG in text for text in (row.prompt, *row.steps)):
        raise Unwritable(f'the tag "{TAG}" is in the text')
    signs = ["+" if label else "-" for label in row.labels]
    return {"input": _joined(row, [TAG] * len(signs)), "label": _joined(row, signs), "task": ""}


def _joined(row: Row, marks: list[str]) -> str:
    steps = zip(row.steps, marks, strict=True)
    lines = (f"Step {number}: {text} {mark}" for number, (text, mark) in enumerate(steps, start=1))
    return f"{row.prompt} " + "\n".join(lines)


def _conversation(row: Row) -> dict[str, object]:
    said: list[dict[str, str]] = []
    for number, (text, label) in enumerate(zip(row.steps, row.labels, strict=True)):
        content = text if number else f"{row.prompt} {text}"
        said += [{"role": "user", "content": content}, {"role": "assistant", "content": "+" if label else "-"}]
    return {"conversations": said}
