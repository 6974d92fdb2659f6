"""Write all bad lines of an import to a CSV file for download. The import report only has the first of them."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from formats.records import BadLine

HEADER = ("line", "column", "reason")


def path_for_job(job_id: int) -> Path:
    return Path(settings.DATA_DIR) / "imports" / f"bad-lines-{job_id}.csv"


@contextmanager
def open_writer(path: Path | None) -> Iterator[Callable[[BadLine], None]]:
    """Yield a function that writes a bad line. It does nothing without a path; a file without bad lines is removed."""
    if path is None:
        yield lambda line: None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    n_lines = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(HEADER)

        def write(line: BadLine) -> None:
            nonlocal n_lines
            table.writerow((line.line, line.column, line.reason))
            n_lines += 1

        try:
            yield write
        finally:
            if not n_lines:
                path.unlink()
