"""Every format that can be read, by name, and how one is told from its first record."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import msgspec

from formats import (
    bigbench_mistake,
    binary_labels,
    chat,
    first_errors,
    gsm8k,
    json_values,
    math_shepherd,
    mr_ben,
    native,
    outcomes,
    pairs,
    prm800k,
    prmbench,
    processbench,
    steps,
    strict_json,
    swe_agent,
    table_reader,
    trl,
)
from formats.columns import Columns, OutputRow
from formats.examples import RowTally, TraceExample
from formats.labeled_paths import LabelRule
from formats.records import BadLine, TraceRecord

DETECTION_RECORDS = 20  # records of which detection takes the first that can be read

TraceReader = Callable[[BinaryIO], Iterator[TraceRecord | BadLine]]


class InputFormat(NamedTuple):
    name: str
    read: TraceReader
    looks_like: Callable[[object], bool]
    read_table: Callable[[BinaryIO, str], Iterator[TraceRecord | BadLine]] | None = None
    counts_from: int | None = None  # where it names a step by a number: that of the first step
    read_cut: Callable[[BinaryIO, str | None, str], Iterator[TraceRecord | BadLine]] | None = None


class UnknownFormat(Exception):
    """The file is none of the formats, or the name is none of theirs."""


def _make_input_format(name: str, module: Any, counts_from: int | None = None) -> InputFormat:
    joined = getattr(module, "regroup_values", iter)
    # Cells of a table are text: a number or a truth value is made of it where the format has one.
    texts = table_reader.find_text_keys(module.decoder.type)
    lax = msgspec.json.Decoder(module.decoder.type, strict=False)

    def read(stream: BinaryIO) -> Iterator[TraceRecord | BadLine]:
        return json_values.parse_values(joined(json_values.split_values(stream)), module.decoder, module.parse_traces)

    def read_table(stream: BinaryIO, kind: str, traces: Any = module.parse_traces) -> Iterator[TraceRecord | BadLine]:
        decoder = lax if kind == table_reader.CSV else module.decoder
        return json_values.parse_values(table_reader.read_rows(stream, kind, texts=texts), decoder, traces)

    def read_cut(stream: BinaryIO, kind: str | None, segmenter: str) -> Iterator[TraceRecord | BadLine]:
        traces = partial(module.parse_traces, segmenter=segmenter)
        return (
            read_table(stream, kind, traces)
            if kind
            else json_values.parse_values(joined(json_values.split_values(stream)), module.decoder, traces)
        )

    cuts = read_cut if "segmenter" in inspect.signature(module.parse_traces).parameters else None
    return InputFormat(name, read, module.looks_like, read_table, counts_from, cuts)


# In the order in which they are tried: the native form asks for least and comes last.
INPUT_FORMATS = {
    format.name: format
    for format in (
        InputFormat("prm800k", prm800k.read, prm800k.looks_like, counts_from=0),
        _make_input_format("processbench", processbench, counts_from=0),
        _make_input_format("prmbench", prmbench, counts_from=1),
        _make_input_format("bigbench_mistake", bigbench_mistake, counts_from=0),
        _make_input_format("mr_ben", mr_ben, counts_from=1),
        _make_input_format("math_shepherd", math_shepherd),
        _make_input_format("trl", trl),
        _make_input_format("chat", chat, counts_from=0),
        _make_input_format("swe_agent", swe_agent),
        _make_input_format("gsm8k", gsm8k),
        _make_input_format("native", native),
    )
}


def get_input_format(name: str) -> InputFormat:
    try:
        return INPUT_FORMATS[name]
    except KeyError:
        raise UnknownFormat(f"no format is called {name}: there are {', '.join(INPUT_FORMATS)}") from None


def read_traces(
    stream: BinaryIO, *, format: str, table: str | None, segmenter: str = ""
) -> Iterator[TraceRecord | BadLine]:
    """Every record of a file, which is a table or not; texts that are not in steps yet are cut by the segmenter."""
    found = get_input_format(format)
    if segmenter and found.read_cut is not None:
        return found.read_cut(stream, table, segmenter)
    if table is None:
        return found.read(stream)
    if found.read_table is None:
        raise UnknownFormat(f"{format} does not come in tables: its files are JSON Lines")
    return found.read_table(stream, table)


def detect_format(stream: BinaryIO, *, table: str | None = None) -> InputFormat:
    """The format whose records look like the first one of the file that can be read at all."""
    refused: BadLine | None = None
    for found in islice(
        table_reader.read_rows(stream, table) if table else json_values.split_values(stream), DETECTION_RECORDS
    ):
        if isinstance(found, BadLine):
            refused = refused or found
            continue
        try:
            return _match_format(strict_json.decode(found.raw, _anything))
        except strict_json.JsonRefused as error:
            refused = refused or found.bad(error)
    if refused is None:
        raise UnknownFormat("the file holds no record: name the format it would be in")
    raise UnknownFormat(f"no record can be read: {refused}")


_anything = msgspec.json.Decoder(object)


def _match_format(first: object) -> InputFormat:
    for format in INPUT_FORMATS.values():
        if format.looks_like(first):
            return format
    raise UnknownFormat(
        "this looks like none of the formats that can be read (" + ", ".join(INPUT_FORMATS) + "): name the one it is in"
    )


# Writers: examples in, rows out. Pure: no Django, no models, no clock.


RowWriter = Callable[[TraceExample, LabelRule, RowTally], Iterator[OutputRow]]


class OutputFormat(NamedTuple):
    """A shape of rows. PRM800K has none: its lines are bytes that must come back as they were."""

    label: str
    module: str
    columns: Columns
    rows: RowWriter | None
    has_weights: bool = False  # a file with the weight of each row stands beside it
    wants_raters: bool = True  # otherwise a row is of the trace, whoever rated it
    has_step_scores: bool = False  # what a PRM says of each step

    @property
    def is_table(self) -> bool:
        return self.rows is not None


OUTPUT_FORMATS: dict[str, OutputFormat] = {
    "prm800k": OutputFormat("PRM800K", prm800k.__name__, prm800k.COLUMNS, None),
    "trl": OutputFormat(
        "TRL stepwise supervision",
        binary_labels.__name__,
        binary_labels.TRL_COLUMNS,
        binary_labels.write_trl_rows,
        True,
    ),
    "math_shepherd": OutputFormat(
        "Math-Shepherd",
        binary_labels.__name__,
        binary_labels.MATH_SHEPHERD_COLUMNS,
        binary_labels.write_math_shepherd_rows,
        True,
    ),
    "rlhflow": OutputFormat(
        "RLHFlow", binary_labels.__name__, binary_labels.RLHFLOW_COLUMNS, binary_labels.write_rlhflow_rows, True
    ),
    "processbench": OutputFormat("ProcessBench", processbench.__name__, processbench.COLUMNS, processbench.write_rows),
    "steps": OutputFormat("long table of steps", steps.__name__, steps.COLUMNS, steps.write_rows, has_step_scores=True),
    "pairs": OutputFormat("preference pairs", pairs.__name__, pairs.COLUMNS, pairs.write_rows),
    "first_errors": OutputFormat("first errors", first_errors.__name__, first_errors.COLUMNS, first_errors.write_rows),
    "outcomes": OutputFormat("outcomes", outcomes.__name__, outcomes.COLUMNS, outcomes.write_rows, wants_raters=False),
}
