"""Preview the first records of a file as an import would read them, with a report of what it contains."""

from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from formats import catalog, input_files
from formats.records import TraceRecord
from labeling.traces.scan import ImportOptions, ImportReport, ImportScan, read_records

PREVIEW_RECORDS = 5
PREVIEW_SCAN_LIMIT = 500  # records that a preview reads at most
PREVIEW_IMAGES = 20  # that a preview decodes; of the others it checks the size


class ImportPreview(Struct):
    """The beginning of a file, as an import would read it."""

    format: str
    counts_from: int | None
    first: list[TraceRecord]  # without changes of steps
    numbers: list[int]  # of these records in the file, from 0
    report: ImportReport
    is_whole: bool  # the report covers the whole file


def preview_file(path: Path, choices: ImportOptions, *, is_cut: bool = False) -> ImportPreview:
    """Read the first records without their changes of steps, and check the first few hundred.

    `is_cut` says that the path has only the beginning of the file, so that a truncated end is not an error.
    """
    scan = ImportScan()
    first: list[TraceRecord] = []
    numbers: list[int] = []
    n_read = 0
    choices = msgspec.structs.replace(choices, step_changes=[])
    try:
        records = read_records(path, choices, scan=scan, n_decoded=PREVIEW_IMAGES)
        for record in islice(records, PREVIEW_SCAN_LIMIT):
            if isinstance(record, TraceRecord) and len(first) < PREVIEW_RECORDS:
                record.images = []  # a preview names images and does not show them
                first.append(record)
                numbers.append(n_read)
            n_read += 1
    except input_files.UnreadableFile:
        if not is_cut or not first:
            raise
    counts_from = catalog.get_input_format(choices.format).counts_from
    is_whole = not is_cut and n_read < PREVIEW_SCAN_LIMIT
    return ImportPreview(choices.format, counts_from, first, numbers, scan.report, is_whole)
