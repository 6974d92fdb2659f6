"""Ratings of anybody's crowd from a CSV file: columns task, worker, label, perhaps more. Bad lines are told by number.

Nothing is guessed and nothing is dropped: a file with one bad line is refused with all its bad lines (the first twenty
in words), because a statistic over "most of the file" is a number about something else.
"""

import csv
import functools
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from labeling.agreement.arrays import Ints

LONGEST_CELL = 131_072
MOST_NUMBERS = 100_000_000  # kept of a file at once; some forty bytes each while they are computed with
NEEDED = ("task", "worker", "label")
_TOLD = 20


class BadFile(ValueError):
    """The file cannot be read as ratings; each entry of `complaints` names its line."""

    def __init__(self, complaints: Sequence[str]) -> None:
        self.complaints = list(complaints)
        more = len(self.complaints) - _TOLD
        told = self.complaints[:_TOLD] + ([f"and {more} more lines"] if more > 0 else [])
        super().__init__("\n".join(told))


@dataclass(frozen=True)
class Ratings:
    """One row per rating, in the order of the file; `tasks` and `workers` are places in their names."""

    task_names: list[str]
    worker_names: list[str]
    tasks: Ints
    workers: Ints
    labels: list[str]
    lines: list[int]
    extra: dict[str, list[str]]


def read(file: BinaryIO, *, optional: Sequence[str] = (), may_be_blank: Sequence[str] = ()) -> Ratings:
    """Read and check a whole file; raises BadFile."""
    complaints: list[str] = []
    rows = _rows(_text(file))
    places, n_columns = _header(rows, optional)
    kept = list(_cells(_of_width(rows, n_columns, complaints), places, may_be_blank, complaints))
    if not kept and not complaints:
        raise BadFile(["line 2: no ratings: the file ends after its header"])
    names = list(places)
    columns = {name: [cells[n] for _, cells in kept] for n, name in enumerate(names)}
    lines = [line for line, _ in kept]
    task_names, tasks = _numbered(columns["task"])
    worker_names, workers = _numbered(columns["worker"])
    complaints += _rated_twice(columns["task"], columns["worker"], tasks, workers, lines)
    if complaints:
        raise BadFile(sorted(complaints, key=_line_of))
    extra = {name: columns[name] for name in names if name not in NEEDED}
    return Ratings(task_names, worker_names, tasks, workers, columns["label"], lines, extra)


def check_size(*, labels: int, others: int, called: str, a_piece: int) -> None:
    """Refuse what would take the machine's memory: `a_piece` numbers for each of the others, clusters or workers."""
    most = MOST_NUMBERS // a_piece
    if others > most:
        told = f"{labels} different labels and {others:,} {called}: at most {most:,} {called} with so many labels"
        raise BadFile([told])


def one_per_task(ratings: Ratings, column: str) -> list[str]:
    """The value of a column that says something about the task, which all rows of a task must say alike."""
    found: list[str | None] = [None] * len(ratings.task_names)
    complaints = []
    for task, value, line in zip(ratings.tasks.tolist(), ratings.extra[column], ratings.lines, strict=True):
        if found[task] not in (None, value):
            name = ratings.task_names[task]
            complaints.append(f"line {line}: task {name!r} has {column} {value!r}, before it was {found[task]!r}")
        found[task] = value
    if complaints:
        raise BadFile(complaints)
    return [value or "" for value in found]


def _text(file: BinaryIO) -> str:
    data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile([f"line {line}: not UTF-8 (byte 0x{data[error.start]:02x}): save the file as UTF-8"]) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadFile([f"line {line}: a NUL character: this is no text file, or it is damaged"])
    return text


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    while True:
        try:
            row = next(reader)
            _check_cells(row)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadFile([f"line {line}: not CSV ({error}): is a quotation mark left open?"]) from None
        if any(cell.strip() for cell in row):
            yield line, row
        line = reader.line_num + 1


def _check_cells(row: Sequence[str]) -> None:
    """The csv module has such a limit too, but one for the whole process, which other readers raise."""
    if any(len(cell) > LONGEST_CELL for cell in row):
        raise csv.Error(f"a cell is longer than {LONGEST_CELL:,} characters")


def _header(rows: Iterator[tuple[int, list[str]]], optional: Sequence[str]) -> tuple[dict[str, int], int]:
    """Where the known columns are, and how many there are; unknown ones are let be."""
    line, row = next(rows, (1, []))
    names = [cell.strip().lower() for cell in row]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        found = ", ".join(names)[:200] or "nothing"
        raise BadFile(
            [f"line {line}: no column {', '.join(missing)}: the header needs task,worker,label; found {found}"]
        )
    known = [*NEEDED, *(name for name in optional if name in names)]
    double = [name for name in known if names.count(name) > 1]
    if double:
        raise BadFile([f"line {line}: the column {double[0]} is there twice"])
    return {name: names.index(name) for name in known}, len(names)


def _of_width(
    rows: Iterator[tuple[int, list[str]]], n_columns: int, complaints: list[str]
) -> Iterator[tuple[int, list[str]]]:
    """A cell behind the last column is half of another: of 0,5 the label would be 0. Empty ones say nothing."""
    for line, row in rows:
        if any(cell.strip() for cell in row[n_columns:]):
            told = f"{len(row)} cells where the header has {n_columns}: quote a cell that holds a comma"
            complaints.append(f"line {line}: {told}")
        else:
            yield line, row


def _cells(
    rows: Iterator[tuple[int, list[str]]], places: dict[str, int], may_be_blank: Sequence[str], complaints: list[str]
) -> Iterator[tuple[int, list[str]]]:
    width = max(places.values()) + 1
    for line, row in rows:
        if len(row) < width:
            complaints.append(f"line {line}: {len(row)} cells where the header has at least {width}")
            continue
        cells = [row[place].strip() for place in places.values()]
        wrong = [complaint for name, cell in zip(places, cells, strict=True) for complaint in _fault(name, cell)]
        blank = [name for name, cell in zip(places, cells, strict=True) if not cell and name not in may_be_blank]
        if blank or wrong:
            complaints.append(f"line {line}: {'; '.join([f'no {name}' for name in blank] + wrong)}")
            continue
        yield line, cells


def _fault(name: str, cell: str) -> list[str]:
    if name == "label" and _is_nothing(cell):
        return [f"{cell!r} is no label: leave the row out where nobody rated"]
    return []


@functools.lru_cache(maxsize=1024)
def _is_nothing(label: str) -> bool:
    """What programs write where there is no number, however they write it."""
    try:
        return not math.isfinite(float(label))
    except ValueError:
        return label.lower() == "null"


def _numbered(names: list[str]) -> tuple[list[str], Ints]:
    """The different names in order of appearance, and each row's place among them."""
    places: dict[str, int] = {}
    numbers = np.array([places.setdefault(name, len(places)) for name in names], dtype=np.int64)
    return list(places), numbers


def _rated_twice(task: list[str], worker: list[str], tasks: Ints, workers: Ints, lines: list[int]) -> list[str]:
    """A worker who rates a task twice would agree with themselves."""
    keys = tasks * (int(workers.max(initial=0)) + 1) + workers
    order = np.argsort(keys, kind="stable")
    again = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    return [
        f"line {lines[order[n + 1]]}: worker {worker[order[n]]!r} has rated task {task[order[n]]!r} on line "
        f"{lines[order[n]]} already"
        for n in again
    ]


def _line_of(complaint: str) -> int:
    return int(complaint.removeprefix("line ").split(":", 1)[0])
