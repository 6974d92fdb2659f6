"""Export rows and examples without a database."""

from typing import Any

from formats import rows
from formats.catalog import OUTPUT_FORMATS
from formats.examples import AgreedLabels, LabelRule, OutputRow, RowTally, TraceExample
from formats.records import OptionRecord, ProblemRecord, StepRecord, SubmissionRecord, TraceRecord

EXPORT_FACTS = rows.make_export_row(
    TraceRecord(
        ProblemRecord("What?", answer=None),
        [StepRecord([OptionRecord(text)]) for text in "abc"],
        submissions=[SubmissionRecord([])],
    ),
    revision=1,
).facts


def make_example(
    *records: TraceRecord, agreed: AgreedLabels | None = None, is_consensus: bool = False, **facts: Any
) -> TraceExample:
    export_rows = [rows.make_export_row(record, **{"revision": 1, **facts}) for record in records]
    return TraceExample(export_rows, agreed=agreed, is_consensus=is_consensus)


def write_rows(
    name: str, example: TraceExample, rule: LabelRule | None = None, tally: RowTally | None = None
) -> list[OutputRow]:
    """Write the example in a table format."""
    write = OUTPUT_FORMATS[name].write
    assert write is not None
    return list(write(example, rule or LabelRule(), tally or RowTally()))
