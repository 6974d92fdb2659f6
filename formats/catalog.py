"""All formats by name: which can be read, which can be written, and how a file's format is detected.

The name of a format is also the name of its module and of its page in docs/formats.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from formats import (
    agent_reward_bench,
    agent_reward_traces,
    bigbench_mistake,
    chat,
    first_errors,
    gsm8k,
    image_loader,
    input_files,
    math_shepherd,
    mini_swe_agent,
    mr_ben,
    native,
    outcomes,
    pairs,
    prm800k,
    prmbench,
    processbench,
    raw_values,
    record_reader,
    rlhflow,
    segmenters,
    steps,
    strict_json,
    swe_agent,
    trail,
    trl,
    visual_process_bench,
    zip_archives,
)
from formats.examples import Columns, LabelRule, OutputRow, RowTally, TraceExample
from formats.image_loader import ImageLoader, ImageRefused
from formats.record_reader import RecordReader
from formats.records import BadLine, TraceRecord

DETECTION_RECORDS = 20  # detection looks for a readable record among this many


class InputFormat(NamedTuple):
    """A format that can be read."""

    name: str
    read: Callable[[BinaryIO], Iterator[TraceRecord | BadLine]]
    looks_like: Callable[[object], bool]
    counts_from: int | None = None  # the number of the first step, if the format refers to steps by number
    has_images: bool = False  # records name images


class OutputFormat(NamedTuple):
    """A format that can be written. Tables have a `write` that makes rows; PRM800K writes lines of bytes instead."""

    name: str
    label: str
    columns: Columns
    write: Callable[[TraceExample, LabelRule, RowTally], Iterator[OutputRow]] | None
    has_weights: bool = False  # a second file holds the weight of each row
    wants_raters: bool = True  # False: a row describes the trace, whether or not anyone rated it
    has_step_scores: bool = False  # rows contain the scores of a PRM
    has_parts: bool = False  # rows contain the parts of steps, such as tool calls
    has_images: bool = False  # rows name files of images
    only_json_lines: bool = False  # no table can hold the rows

    @property
    def is_table(self) -> bool:
        return self.write is not None


# In the order of detection. The native format requires the fewest keys and comes last.
INPUT_FORMATS = {
    format.name: format
    for format in (
        InputFormat("prm800k", prm800k.read, prm800k.looks_like, counts_from=0),
        InputFormat("processbench", processbench.read, processbench.read.looks_like, counts_from=0),
        InputFormat("prmbench", prmbench.read, prmbench.read.looks_like, counts_from=1),
        InputFormat("bigbench_mistake", bigbench_mistake.read, bigbench_mistake.read.looks_like, counts_from=0),
        InputFormat("mr_ben", mr_ben.read, mr_ben.read.looks_like, counts_from=1),
        InputFormat(
            "visual_process_bench", visual_process_bench.read, visual_process_bench.read.looks_like, has_images=True
        ),
        InputFormat("math_shepherd", math_shepherd.read, math_shepherd.read.looks_like),
        InputFormat("trl", trl.read, trl.read.looks_like),
        InputFormat("trail", trail.read, trail.read.looks_like),
        InputFormat("agent_reward_bench", agent_reward_bench.read, agent_reward_bench.read.looks_like),
        InputFormat("mini_swe_agent", mini_swe_agent.read, mini_swe_agent.read.looks_like, counts_from=0),
        InputFormat("chat", chat.read, chat.read.looks_like, counts_from=0, has_images=True),
        InputFormat("swe_agent", swe_agent.read, swe_agent.read.looks_like),
        InputFormat("gsm8k", gsm8k.read, gsm8k.read.looks_like),
        InputFormat("native", native.read, native.read.looks_like, has_images=True),
    )
}
OUTPUT_FORMATS = {
    format.name: format
    for format in (
        OutputFormat("prm800k", "PRM800K", prm800k.COLUMNS, None, only_json_lines=True),
        OutputFormat("trl", "TRL stepwise supervision", trl.COLUMNS, trl.write, has_weights=True),
        OutputFormat("math_shepherd", "Math-Shepherd", math_shepherd.COLUMNS, math_shepherd.write, has_weights=True),
        OutputFormat("rlhflow", "RLHFlow", rlhflow.COLUMNS, rlhflow.write, has_weights=True),
        OutputFormat("native", "native, with metadata", native.COLUMNS, native.write, has_images=True),
        OutputFormat("processbench", "ProcessBench", processbench.COLUMNS, processbench.write),
        # The keys of its labels differ from row to row, so it has no columns.
        OutputFormat(
            *("chat", "chat with step labels", {}, chat.write), has_parts=True, has_images=True, only_json_lines=True
        ),
        OutputFormat(
            "visual_process_bench",
            "VisualProcessBench",
            visual_process_bench.COLUMNS,
            visual_process_bench.write,
            has_images=True,
        ),
        # The keys of its scores differ from row to row.
        OutputFormat("trail", "TRAIL traces and labels", {}, trail.write, has_parts=True, only_json_lines=True),
        OutputFormat(
            "agent_reward_bench", "AgentRewardBench verdicts", agent_reward_bench.COLUMNS, agent_reward_bench.write
        ),
        OutputFormat(
            "agent_reward_traces",
            "AgentRewardBench trajectories",
            {},
            agent_reward_traces.write,
            has_parts=True,
            only_json_lines=True,
        ),
        OutputFormat("steps", "long table of steps", steps.COLUMNS, steps.write, has_step_scores=True),
        OutputFormat("pairs", "preference pairs", pairs.COLUMNS, pairs.write),
        OutputFormat("first_errors", "first errors", first_errors.COLUMNS, first_errors.write),
        OutputFormat("outcomes", "outcomes", outcomes.COLUMNS, outcomes.write, wants_raters=False),
    )
}

_anything = msgspec.json.Decoder(object)


class UnknownFormat(Exception):
    """The format cannot be detected, has an unknown name, or cannot be stored in this kind of file."""


def get_input_format(name: str) -> InputFormat:
    try:
        return INPUT_FORMATS[name]
    except KeyError:
        raise UnknownFormat(f"unknown format {name}: choose one of {', '.join(INPUT_FORMATS)}") from None


def read_traces(
    stream: BinaryIO,
    *,
    format: str,
    table: str | None = None,
    segmenter: str = "",
    columns: Mapping[str, str] | None = None,
) -> Iterator[TraceRecord | BadLine]:
    """Read every record of a file. `segmenter` divides texts into steps where the format has whole texts. `columns`
    maps columns of a table, or keys of JSON records, to keys of the format."""
    read = get_input_format(format).read
    if segmenter:
        try:
            segmenters.check_segmenter(segmenter)
        except segmenters.UnknownSegmenter as error:
            raise UnknownFormat(str(error)) from None
    if isinstance(read, RecordReader):
        return read(stream, table=table, segmenter=segmenter, columns=columns)
    if columns:
        raise UnknownFormat(f"the keys of {format} files cannot be renamed")
    if table is not None:
        raise UnknownFormat(f"{format} files are JSON Lines: this format cannot be read from a {table} file")
    return read(stream)


def load_images(
    records: Iterator[TraceRecord | BadLine], path: Path, *, place: Path | None, n_decoded: int | None
) -> Iterator[TraceRecord | BadLine]:
    """Yield the records with their images. A record with an image that cannot be stored becomes a bad line. Raises
    UnreadableFile if the archive is damaged."""
    loader: ImageLoader | None = None
    for record in records:
        if isinstance(record, BadLine) or not _has_images(record):
            yield record
            continue
        try:
            loader = loader or ImageLoader(image_loader.open_image_files(path, place), n_decoded=n_decoded)
            yield loader.load_images(record)
        except zip_archives.UnusableArchive as error:
            raise input_files.UnreadableFile(str(error)) from error
        except ImageRefused as error:
            yield BadLine(record.line or 1, 1, str(error))


def _has_images(record: TraceRecord) -> bool:
    if record.problem.images:
        return True
    options = [option for step in record.steps for option in step.options if option.parts]
    return any(part.kind == "image" for option in options for part in option.parts)


def detect_format(
    stream: BinaryIO, *, table: str | None = None, columns: Mapping[str, str] | None = None
) -> InputFormat:
    """Detect the format of a file from its first readable record."""
    bad_line: BadLine | None = None
    if table:
        values = record_reader.read_rows(stream, table, columns=columns)
    else:
        values = raw_values.split_values(stream)
        values = raw_values.rename_keys(values, columns) if columns else values
    for value in islice(values, DETECTION_RECORDS):
        if isinstance(value, BadLine):
            bad_line = bad_line or value
            continue
        try:
            record = strict_json.decode(value.raw, _anything)
        except strict_json.JsonRefused as error:
            bad_line = bad_line or value.to_bad_line(error)
            continue
        if found := next((format for format in INPUT_FORMATS.values() if format.looks_like(record)), None):
            return found
        raise UnknownFormat(f"the first record matches no known format. {_describe_keys(record)}")
    if bad_line is None:
        raise UnknownFormat("the file has no record, so its format cannot be detected: choose a format")
    raise UnknownFormat(f"no record can be read: {bad_line}")


def _describe_keys(record: object) -> str:
    if not isinstance(record, dict):
        return "It is not an object with keys."
    keys = ", ".join(map(str, record))
    return (
        f"Its keys: {keys[:500] or 'none'}. Choose the format if it is one of {', '.join(INPUT_FORMATS)}; otherwise"
        " rename its keys to those of the native format: problem, and steps or text."
    )
