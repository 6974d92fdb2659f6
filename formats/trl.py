"""TRL's stepwise supervision: a prompt, completions, and a boolean for each; and who rated, in columns of our own."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from formats import examples, records, strict_json
from formats.examples import Columns, LabeledPath, LabelRule, OutputRow, RowTally, TraceExample
from formats.record_reader import RecordReader
from formats.records import ProblemRecord, SubmissionRecord, TraceRecord

COLUMNS: Columns = {"prompt": "string", "completions": ["string"], "labels": ["bool"], **examples.RATER_COLUMNS}


class TrlItem(Struct, gc=False):
    prompt: str
    completions: list[str]
    labels: list[bool | Literal[0, 1]]


def parse_traces(item: TrlItem) -> Iterator[TraceRecord]:
    if len(item.labels) > len(item.completions):
        raise strict_json.RecordMisfit(
            ("labels",), f"{len(item.labels)} labels for {len(item.completions)} completions"
        )
    ratings = [1 if label else -1 for label in item.labels]
    yield TraceRecord(
        problem=ProblemRecord(item.prompt),
        steps=records.make_steps(item.completions),
        submissions=[SubmissionRecord(records.make_turns(item.completions, ratings))],
    )


read = RecordReader(TrlItem, parse_traces)


def write(example: TraceExample, rule: LabelRule, tally: RowTally) -> Iterator[OutputRow]:
    return examples.write_paths(example, rule, tally, _make_row)


def _make_row(path: LabeledPath, domain: str) -> OutputRow:
    """Make a row. Labels are booleans: the trainer converts them to integers and fails on anything else."""
    return {"prompt": path.prompt, "completions": path.steps, "labels": path.labels}
