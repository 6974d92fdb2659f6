"""Reads a file as it will be brought in, and writes nothing: tells its format, shows its first records, counts it."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol

from msgspec import Struct

from formats import catalog, input_files, privacy, table_reader
from formats.privacy import PrivacyMode
from formats.records import BadLine, TraceRecord
from labeling.traces import identity
from labeling.traces.import_report import ImportReport
from labeling.traces.labelers import LabelsContradictFile, LabelsKind, attribute_labels

PREVIEW_RECORDS = 5  # records of a preview
PREVIEW_SCAN_LIMIT = 500  # records that a preview reads at most


class ReadChoices(Protocol):
    """How a file is to be read."""

    @property
    def format(self) -> str: ...
    @property
    def segmenter(self) -> str: ...
    @property
    def labels(self) -> LabelsKind: ...
    @property
    def labels_by(self) -> str: ...
    @property
    def private(self) -> PrivacyMode: ...


class ImportScan:
    """What is counted while a file is looked through: the report, and how many problems there are."""

    def __init__(self) -> None:
        self._report = ImportReport()
        self._problems: set[int] = set()
        self._stream: BinaryIO | None = None

    def begin(self, stream: BinaryIO) -> None:
        self._stream = stream

    def bytes_read(self) -> int:
        """Bytes of the file: how many records there are is known at its end alone."""
        return 0 if self._stream is None else input_files.read_position(self._stream)

    def see(self, record: TraceRecord) -> None:
        self._report.see(record)
        self._problems.add(int(identity.digest_problem(record.problem)[:16], 16))

    def see_ratings(self, record: TraceRecord) -> None:
        self._report.see_ratings(record)

    def see_private(self, record: TraceRecord) -> bool:
        return self._report.see_private(privacy.record_texts(record))

    def refuse(self, line: BadLine) -> None:
        self._report.refuse(line)

    def see_masked(self) -> None:
        self._report.masked += 1

    def told(self) -> ImportReport:
        self._report.problems = len(self._problems)
        return self._report


class ImportPreview(Struct):
    """The beginning of a file, as it would come in."""

    format: str
    counts_from: int | None
    first: list[TraceRecord]
    report: ImportReport
    is_whole: bool  # the whole file was read


def resolve_format(path: Path, *, named: str = "auto") -> str:
    """The format that the file is said to have, or looks like. Raises where there is none such."""
    if named != "auto":
        return catalog.get_input_format(named).name
    with input_files.open_file(path) as stream:
        return catalog.detect_format(stream, table=table_reader.detect_table_kind(input_files.unpacked_name(path))).name


def read_records(path: Path, asked: ReadChoices, *, look: ImportScan | None = None) -> Iterator[TraceRecord | BadLine]:
    """Every record as it is to come in: private texts masked, ratings given to whom they belong."""
    with input_files.open_file(path) as stream:
        if look is not None:
            look.begin(stream)
        table = table_reader.detect_table_kind(input_files.unpacked_name(path))
        for record in catalog.read_traces(stream, format=asked.format, table=table, segmenter=asked.segmenter):
            if look is not None and asked.labels == "none" and isinstance(record, TraceRecord):
                look.see_ratings(record)  # what the file holds, though none of it comes in
            made = record if isinstance(record, BadLine) else _prepare_record(record, asked, look)
            if look is not None:
                look.refuse(made) if isinstance(made, BadLine) else look.see(made)
            yield made


def preview_file(path: Path, asked: ReadChoices, *, is_cut: bool = False) -> ImportPreview:
    """The first records, and what is wrong in the first few hundred. Of a file of which only the beginning is here, the
    end is no fault."""
    look = ImportScan()
    first: list[TraceRecord] = []
    read = read_records(path, asked, look=look)
    n_read = 0
    try:
        for record in islice(read, PREVIEW_SCAN_LIMIT):
            n_read += 1
            if isinstance(record, TraceRecord) and len(first) < PREVIEW_RECORDS:
                first.append(record)
    except input_files.UnreadableFile:
        if not is_cut or not first:
            raise
    is_whole = not is_cut and n_read < PREVIEW_SCAN_LIMIT
    return ImportPreview(asked.format, catalog.get_input_format(asked.format).counts_from, first, look.told(), is_whole)


def _prepare_record(record: TraceRecord, asked: ReadChoices, look: ImportScan | None) -> TraceRecord | BadLine:
    line = record.line or 1
    has_private = look.see_private(record) if look is not None else asked.private != "count"
    if has_private and asked.private == "refuse" and (reason := privacy.describe_private(record)):
        return BadLine(line, 1, f"this record seems to hold {reason}")
    if has_private and asked.private == "mask":
        record = privacy.mask_record(record)
        if look is not None:
            look.see_masked()
    try:
        return attribute_labels(record, labels=asked.labels, labels_by=asked.labels_by)
    except LabelsContradictFile as error:
        return BadLine(line, 1, str(error))
