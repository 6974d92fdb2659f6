"""Reads a file as it will be brought in, and writes nothing: tells its format, shows its first records, counts it."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol

from msgspec import Struct

from labeling.importing import files, identity, privacy
from labeling.importing.attributing import Contradiction, Labels, attribute
from labeling.importing.privacy import Private
from labeling.importing.readers import formats, tables
from labeling.importing.records import BadLine, TraceRecord
from labeling.importing.report import Report

SHOWN = 5  # records of a preview
LOOKED_AT = 500  # records that a preview reads at most


class Asked(Protocol):
    """How a file is to be read."""

    @property
    def format(self) -> str: ...
    @property
    def segmenter(self) -> str: ...
    @property
    def labels(self) -> Labels: ...
    @property
    def labels_by(self) -> str: ...
    @property
    def private(self) -> Private: ...


class Look:
    """What is counted while a file is looked through: the report, and how many problems there are."""

    def __init__(self) -> None:
        self._report = Report()
        self._problems: set[int] = set()
        self._stream: BinaryIO | None = None

    def begin(self, stream: BinaryIO) -> None:
        self._stream = stream

    def how_far(self) -> int:
        """Bytes of the file: how many records there are is known at its end alone."""
        return 0 if self._stream is None else files.position(self._stream)

    def see(self, record: TraceRecord) -> None:
        self._report.see(record)
        self._problems.add(int(identity.of_problem(record.problem)[:16], 16))

    def see_ratings(self, record: TraceRecord) -> None:
        self._report.see_ratings(record)

    def see_private(self, record: TraceRecord) -> bool:
        return self._report.see_private(privacy.texts(record))

    def refuse(self, line: BadLine) -> None:
        self._report.refuse(line)

    def see_masked(self) -> None:
        self._report.masked += 1

    def told(self) -> Report:
        self._report.problems = len(self._problems)
        return self._report


class Preview(Struct):
    """The beginning of a file, as it would come in."""

    format: str
    counts_from: int | None
    first: list[TraceRecord]
    report: Report
    is_whole: bool  # the whole file was read


def format_of(path: Path, *, named: str = "auto") -> str:
    """The format that the file is said to have, or looks like. Raises where there is none such."""
    if named != "auto":
        return formats.named(named).name
    with files.open_file(path) as stream:
        return formats.detect(stream, table=tables.kind_of(files.inner_name(path))).name


def records(path: Path, asked: Asked, *, look: Look | None = None) -> Iterator[TraceRecord | BadLine]:
    """Every record as it is to come in: private texts masked, ratings given to whom they belong."""
    with files.open_file(path) as stream:
        if look is not None:
            look.begin(stream)
        table = tables.kind_of(files.inner_name(path))
        for record in formats.read(stream, format=asked.format, table=table, segmenter=asked.segmenter):
            if look is not None and asked.labels == "none" and isinstance(record, TraceRecord):
                look.see_ratings(record)  # what the file holds, though none of it comes in
            made = record if isinstance(record, BadLine) else _made(record, asked, look)
            if look is not None:
                look.refuse(made) if isinstance(made, BadLine) else look.see(made)
            yield made


def preview(path: Path, asked: Asked, *, is_cut: bool = False) -> Preview:
    """The first records, and what is wrong in the first few hundred. Of a file of which only the beginning is here, the
    end is no fault."""
    look = Look()
    first: list[TraceRecord] = []
    read = records(path, asked, look=look)
    n_read = 0
    try:
        for record in islice(read, LOOKED_AT):
            n_read += 1
            if isinstance(record, TraceRecord) and len(first) < SHOWN:
                first.append(record)
    except files.Unreadable:
        if not is_cut or not first:
            raise
    is_whole = not is_cut and n_read < LOOKED_AT
    return Preview(asked.format, formats.named(asked.format).counts_from, first, look.told(), is_whole)


def _made(record: TraceRecord, asked: Asked, look: Look | None) -> TraceRecord | BadLine:
    line = record.line or 1
    has_private = look.see_private(record) if look is not None else asked.private != "count"
    if has_private and asked.private == "refuse" and (reason := privacy.reason(record)):
        return BadLine(line, 1, f"this record seems to hold {reason}")
    if has_private and asked.private == "mask":
        record = privacy.masked(record)
        if look is not None:
            look.see_masked()
    try:
        return attribute(record, labels=asked.labels, labels_by=asked.labels_by)
    except Contradiction as error:
        return BadLine(line, 1, str(error))
