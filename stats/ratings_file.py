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

from stats.arrays import Ints

MAX_CELL_LENGTH = 131_072
MAX_NUMBERS = 100_000_000  # kept of a file at once; some forty bytes each while they are computed with
REQUIRED_COLUMNS = ("task", "worker", "label")
_MAX_LISTED = 20


class InvalidRatingsFile(ValueError):
    """The file cannot be read as ratings; each entry of `complaints` names its line."""

    def __init__(self, complaints: Sequence[str]) -> None:
        self.complaints = list(complaints)
        more = len(self.complaints) - _MAX_LISTED
        told = self.complaints[:_MAX_LISTED] + ([f"and {more} more lines"] if more > 0 else [])
        super().__init__("\n".join(told))


@dataclass(frozen=True)
class CrowdRatings:
    """One row per rating, in the order of the file; `tasks` and `workers` are places in their names."""

    task_names: list[str]
    worker_names: list[str]
    tasks: Ints
    workers: Ints
    labels: list[str]
    lines: list[int]
    extra: dict[str, list[str]]


def read_ratings(file: BinaryIO, *, optional: Sequence[str] = (), may_be_blank: Sequence[str] = ()) -> CrowdRatings:
    """Read and check a whole file; raises BadFile."""
    complaints: list[str] = []
    rows = _rows(_text(file))
    places, n_columns = _header(rows, optional)
    kept = list(_cells(_rows_of_width(rows, n_columns, complaints), places, may_be_blank, complaints))
    if not kept and not complaints:
        raise InvalidRatingsFile(["line 2: no ratings: the file ends after its header"])
    names = list(places)
    columns = {name: [cells[n] for _, cells in kept] for n, name in enumerate(names)}
    lines = [line for line, _ in kept]
    task_names, tasks = _numbered(columns["task"])
    worker_names, workers = _numbered(columns["worker"])
    complaints += _find_duplicates(columns["task"], columns["worker"], tasks, workers, lines)
    if complaints:
        raise InvalidRatingsFile(sorted(complaints, key=_line_of))
    extra = {name: columns[name] for name in names if name not in REQUIRED_COLUMNS}
    return CrowdRatings(task_names, worker_names, tasks, workers, columns["label"], lines, extra)


def check_table_size(*, labels: int, others: int, called: str, numbers_per_item: int) -> None:
    """Refuse what would take the machine's memory: `a_piece` numbers for each of the others, clusters or workers."""
    most = MAX_NUMBERS // numbers_per_item
    if others > most:
        told = f"{labels} different labels and {others:,} {called}: at most {most:,} {called} with so many labels"
        raise InvalidRatingsFile([told])


def read_task_values(ratings: CrowdRatings, column: str) -> list[str]:
    """The value of a column that says something about the task, which all rows of a task must say alike."""
    found: list[str | None] = [None] * len(ratings.task_names)
    complaints = []
    for task, value, line in zip(ratings.tasks.tolist(), ratings.extra[column], ratings.lines, strict=True):
        if found[task] not in (None, value):
            name = ratings.task_names[task]
            complaints.append(f"line {line}: task {name!r} has {column} {value!r}, before it was {found[task]!r}")
        found[task] = value
    if complaints:
        raise InvalidRatingsFile(complaints)
    return [value or "" for value in found]


def _text(file: BinaryIO) -> str:
    data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidRatingsFile(
            [f"line {line}: not UTF-8 (byte 0x{data[error.start]:02x}): save the file as UTF-8"]
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidRatingsFile([f"line {line}: a NUL character: this is no text file, or it is damaged"])
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
            raise InvalidRatingsFile([f"line {line}: not CSV ({error}): is a quotation mark left open?"]) from None
        if any(cell.strip() for cell in row):
            yield line, row
        line = reader.line_num + 1


def _check_cells(row: Sequence[str]) -> None:
    """The csv module has such a limit too, but one for the whole process, which other readers raise."""
    if any(len(cell) > MAX_CELL_LENGTH for cell in row):
        raise csv.Error(f"a cell is longer than {MAX_CELL_LENGTH:,} characters")


def _header(rows: Iterator[tuple[int, list[str]]], optional: Sequence[str]) -> tuple[dict[str, int], int]:
    """Where the known columns are, and how many there are; unknown ones are let be."""
    line, row = next(rows, (1, []))
    names = [cell.strip().lower() for cell in row]
    missing = [name for name in REQUIRED_COLUMNS if name not in names]
    if missing:
        found = ", ".join(names)[:200] or "nothing"
        raise InvalidRatingsFile(
            [f"line {line}: no column {', '.join(missing)}: the header needs task,worker,label; found {found}"]
        )
    known = [*REQUIRED_COLUMNS, *(name for name in optional if name in names)]
    double = [name for name in known if names.count(name) > 1]
    if double:
        raise InvalidRatingsFile([f"line {line}: the column {double[0]} is there twice"])
    return {name: names.index(name) for name in known}, len(names)


def _rows_of_width(
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
        wrong = [complaint for name, cell in zip(places, cells, strict=True) for complaint in _find_faults(name, cell)]
        blank = [name for name, cell in zip(places, cells, strict=True) if not cell and name not in may_be_blank]
        if blank or wrong:
            complaints.append(f"line {line}: {'; '.join([f'no {name}' for name in blank] + wrong)}")
            continue
        yield line, cells


def _find_faults(name: str, cell: str) -> list[str]:
    if name == "label" and _is_missing_value(cell):
        return [f"{cell!r} is no label: leave the row out where nobody rated"]
    return []


@functools.lru_cache(maxsize=1024)
def _is_missing_value(label: str) -> bool:
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


def _find_duplicates(task: list[str], worker: list[str], tasks: Ints, workers: Ints, lines: list[int]) -> list[str]:
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


# From labels as they are written to places on a scale: whether they are numbers, and in which order they stand.


MAX_SCALE_VALUES = 50  # the sums of a problem grow with the square of the number of values


class InvalidScale(ValueError):
    """A scale that was told and cannot be one."""


class InvalidLabel(ValueError):
    """A label that the scale does not have; `row` is its place among the labels."""

    def __init__(self, message: str, row: int) -> None:
        self.row = row
        super().__init__(message)


@dataclass(frozen=True)
class RatingScale:
    """`names` in order; `values` are the numbers they are, or their ranks where they are no numbers."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    is_numeric: bool
    is_ordered: bool


def read_scale(labels: Sequence[str], *, told: Sequence[str] | None = None) -> tuple[RatingScale, Ints]:
    """The scale of these labels, and each one's place on it. A told scale may hold values that nobody used."""
    scale = _scale_from_labels(labels) if told is None else _scale_from_names(list(told))
    place = {name: n for n, name in enumerate(scale.names)}
    if scale.is_numeric:
        number = {value: n for n, value in enumerate(scale.values)}
        place |= {label: number[n] for label in set(labels) if (n := _parse_number(label)) in number}
    try:
        return scale, np.array([place[label] for label in labels], dtype=np.int64)
    except KeyError as error:
        raise InvalidLabel(f"the scale has no {error.args[0]!r}", labels.index(error.args[0])) from None


def _scale_from_labels(labels: Sequence[str]) -> RatingScale:
    found = _build_scale(sorted(set(labels)), is_ordered=False)
    if len(found.names) > MAX_SCALE_VALUES:
        raise InvalidLabel(
            f"{len(found.names)} different labels, at most {MAX_SCALE_VALUES}: is label the right column?", 0
        )
    return found


def _scale_from_names(names: list[str]) -> RatingScale:
    if not all(names):
        raise InvalidScale("a value is blank: is there a comma too many?")
    if len(set(names)) < len(names):
        raise InvalidScale("a value is there twice")
    if len(names) > MAX_SCALE_VALUES:
        raise InvalidScale(f"{len(names)} values, at most {MAX_SCALE_VALUES}")
    return _build_scale(names, is_ordered=True)


def _build_scale(names: list[str], *, is_ordered: bool) -> RatingScale:
    numbers = [_parse_number(name) for name in names]
    known = [number for number in numbers if number is not None]
    is_numeric = len(known) == len(names)
    if is_numeric:
        by_value = dict(zip(reversed(known), reversed(names), strict=True))  # 1, 1.0 and +1 are one value
        names, known = [by_value[value] for value in sorted(by_value)], sorted(by_value)
    values = known if is_numeric else [float(n) for n in range(len(names))]
    return RatingScale(tuple(names), tuple(values), is_numeric, is_ordered or is_numeric)


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
