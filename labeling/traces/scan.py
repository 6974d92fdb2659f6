"""Read a file as an import would, without writing: detect its format, preview its first records, count its content."""

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

PREVIEW_RECORDS = 5
PREVIEW_SCAN_LIMIT = 500  # records that a preview reads at most


class ReadChoices(Protocol):
    """How to read a file."""

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
    """The report of a file while it is read."""

    def __init__(self) -> None:
        self.report = ImportReport()
        self._problems: set[int] = set()
        self._stream: BinaryIO | None = None

    def begin(self, stream: BinaryIO) -> None:
        self._stream = stream

    def bytes_read(self) -> int:
        """Return the progress in bytes, because the number of records is unknown before the end."""
        return 0 if self._stream is None else input_files.read_position(self._stream)

    def count(self, record: TraceRecord | BadLine) -> None:
        if isinstance(record, BadLine):
            self.report.count_bad_line(record)
            return
        self.report.count_record(record)
        self._problems.add(int(identity.digest_problem(record.problem)[:16], 16))
        self.report.problems = len(self._problems)


class ImportPreview(Struct):
    """The beginning of a file, as an import would read it."""

    format: str
    counts_from: int | None
    first: list[TraceRecord]
    report: ImportReport
    is_whole: bool  # the report covers the whole file


def resolve_format(path: Path, *, named: str = "auto") -> str:
    """Return the named format, or detect it. Raises `UnknownFormat` if no format matches."""
    if named != "auto":
        return catalog.get_input_format(named).name
    with input_files.open_file(path) as stream:
        return catalog.detect_format(stream, table=table_reader.detect_table_kind(input_files.unpacked_name(path))).name


def read_records(
    path: Path, choices: ReadChoices, *, scan: ImportScan | None = None
) -> Iterator[TraceRecord | BadLine]:
    """Yield every record as it is imported: private data masked, ratings attributed to their labeler."""
    with input_files.open_file(path) as stream:
        if scan is not None:
            scan.begin(stream)
        table = table_reader.detect_table_kind(input_files.unpacked_name(path))
        for record in catalog.read_traces(stream, format=choices.format, table=table, segmenter=choices.segmenter):
            if scan is not None and choices.labels == "none" and isinstance(record, TraceRecord):
                scan.report.count_ratings(record)  # the ratings are in the file, although they are not imported
            prepared = record if isinstance(record, BadLine) else _prepare_record(record, choices, scan)
            if scan is not None:
                scan.count(prepared)
            yield prepared


def preview_file(path: Path, choices: ReadChoices, *, is_cut: bool = False) -> ImportPreview:
    """Read the first records, and check the first few hundred.

    `is_cut` says that the path has only the beginning of the file, so that a truncated end is not an error.
    """
    scan = ImportScan()
    first: list[TraceRecord] = []
    n_read = 0
    try:
        for record in islice(read_records(path, choices, scan=scan), PREVIEW_SCAN_LIMIT):
            n_read += 1
            if isinstance(record, TraceRecord) and len(first) < PREVIEW_RECORDS:
                first.append(record)
    except input_files.UnreadableFile:
        if not is_cut or not first:
            raise
    counts_from = catalog.get_input_format(choices.format).counts_from
    is_whole = not is_cut and n_read < PREVIEW_SCAN_LIMIT
    return ImportPreview(choices.format, counts_from, first, scan.report, is_whole)


def _prepare_record(record: TraceRecord, choices: ReadChoices, scan: ImportScan | None) -> TraceRecord | BadLine:
    line = record.line or 1
    if scan is not None:
        has_private = scan.report.count_private(privacy.record_texts(record))
    else:
        has_private = choices.private != "count"
    if has_private and choices.private == "refuse" and (kinds := privacy.describe_private(record)):
        return BadLine(line, 1, f"this record seems to contain {kinds}")
    if has_private and choices.private == "mask":
        record = privacy.mask_record(record)
        if scan is not None:
            scan.report.masked += 1
    try:
        return attribute_labels(record, labels=choices.labels, labels_by=choices.labels_by)
    except LabelsContradictFile as error:
        return BadLine(line, 1, str(error))
