"""Read ratings from a CSV file with the columns task, worker, label and optional ones.

Nothing is guessed and nothing is dropped: a file with one bad line is rejected with the numbers of all its bad lines,
because a statistic over most of a file is not a statistic of the file.
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
MAX_NUMBERS = 100_000_000  # in memory; each takes about forty bytes during the computation
MAX_SCALE_VALUES = 50  # the sums of a problem grow with the square of the number of values
REQUIRED_COLUMNS = ("task", "worker", "label")
_MAX_LISTED = 20
_Row = tuple[int, list[str]]  # the line on which it begins, and its cells


class InvalidRatingsFile(ValueError):
    """The file cannot be read as ratings. Each complaint about a line begins with its number: "line 3: no worker"."""

    def __init__(self, complaints: Sequence[str]) -> None:
        self.complaints = list(complaints)
        self.n_unlisted = max(len(self.complaints) - _MAX_LISTED, 0)
        listed = self.complaints[:_MAX_LISTED] + ([f"and {self.n_unlisted} more lines"] if self.n_unlisted else [])
        super().__init__("\n".join(listed))

    @property
    def lines(self) -> list[int]:
        """The numbers of the bad lines."""
        return [_line_of(complaint) for complaint in self.complaints]


class TableTooLarge(InvalidRatingsFile):
    """The computation needs more memory than allowed: the file has `number` items, and `limit` would fit."""

    def __init__(self, complaint: str, *, number: int, limit: int) -> None:
        self.number, self.limit = number, limit
        super().__init__([complaint])


@dataclass(frozen=True)
class CrowdRatings:
    """One row per rating, in the order of the file; `tasks` and `workers` are indices of their names."""

    task_names: list[str]
    worker_names: list[str]
    tasks: Ints
    workers: Ints
    labels: list[str]
    lines: list[int]
    extra: dict[str, list[str]]


def read_ratings(file: BinaryIO, *, optional: Sequence[str] = (), may_be_blank: Sequence[str] = ()) -> CrowdRatings:
    """Read and check a whole file. Raise `InvalidRatingsFile` with all its bad lines."""
    complaints: list[str] = []
    all_rows = _parse_csv(_decode(file))
    indices, n_columns = _read_header(all_rows, optional)
    rows = list(_select_cells(_check_width(all_rows, n_columns, complaints), indices, may_be_blank, complaints))
    if not rows and not complaints:
        raise InvalidRatingsFile(["line 2: the file has no ratings after its header"])
    names = list(indices)
    columns = {name: [cells[n] for _, cells in rows] for n, name in enumerate(names)}
    lines = [line for line, _ in rows]
    task_names, tasks = _enumerate_names(columns["task"])
    worker_names, workers = _enumerate_names(columns["worker"])
    complaints += _find_duplicates(columns["task"], columns["worker"], tasks, workers, lines)
    if complaints:
        raise InvalidRatingsFile(sorted(complaints, key=_line_of))
    extra = {name: columns[name] for name in names if name not in REQUIRED_COLUMNS}
    return CrowdRatings(task_names, worker_names, tasks, workers, columns["label"], lines, extra)


def select_workers(ratings: CrowdRatings, *, only: Sequence[str] = (), without: Sequence[str] = ()) -> CrowdRatings:
    """Return the ratings of some workers: `only` these, or all but `without`. Tasks that have none left are dropped.

    Raises InvalidRatingsFile if a name is not in the file, or no rating is left.
    """
    unknown = sorted({*only, *without} - set(ratings.worker_names))
    if unknown:
        raise InvalidRatingsFile([f"no ratings of worker {name!r}" for name in unknown])
    names = [(not only or name in only) and name not in without for name in ratings.worker_names]
    kept = [row for row, worker in enumerate(ratings.workers.tolist()) if names[worker]]
    if not kept:
        raise InvalidRatingsFile(["no ratings are left after leaving out workers"])
    task_names, tasks = _enumerate_names([ratings.task_names[ratings.tasks[row]] for row in kept])
    worker_names, workers = _enumerate_names([ratings.worker_names[ratings.workers[row]] for row in kept])
    return CrowdRatings(
        task_names,
        worker_names,
        tasks,
        workers,
        [ratings.labels[row] for row in kept],
        [ratings.lines[row] for row in kept],
        {name: [values[row] for row in kept] for name, values in ratings.extra.items()},
    )


def check_table_size(*, labels: int, others: int, called: str, numbers_per_item: int) -> None:
    """Reject a file whose tables exceed the memory limit: `numbers_per_item` for each cluster or worker (`called`)."""
    limit = MAX_NUMBERS // numbers_per_item
    if others > limit:
        raise TableTooLarge(
            f"the file has {labels} different labels and {others:,} {called}: with this many labels, at most {limit:,} "
            f"{called} fit into memory",
            number=others,
            limit=limit,
        )


def read_task_values(ratings: CrowdRatings, column: str) -> list[str]:
    """Return the value of a column for each task. All rows of a task must have the same value."""
    values: list[str | None] = [None] * len(ratings.task_names)
    complaints = []
    for task, value, line in zip(ratings.tasks.tolist(), ratings.extra[column], ratings.lines, strict=True):
        if values[task] not in (None, value):
            name = ratings.task_names[task]
            complaints.append(
                f"line {line}: {column} of task {name!r} is {value!r}, but {values[task]!r} on a line above"
            )
        values[task] = value
    if complaints:
        raise InvalidRatingsFile(complaints)
    return [value or "" for value in values]


def _decode(file: BinaryIO) -> str:
    data = file.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidRatingsFile(
            [f"line {line}: byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"]
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidRatingsFile([f"line {line}: the file has a NUL character: it is damaged or not a text file"])
    return text


def _parse_csv(text: str) -> Iterator[_Row]:
    """Yield rows that are not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    while True:
        try:
            row = next(reader)
            # The csv module has its own limit, but it is global to the process, and other readers raise it.
            if any(len(cell) > MAX_CELL_LENGTH for cell in row):
                raise csv.Error(f"a cell is longer than {MAX_CELL_LENGTH:,} characters")
        except StopIteration:
            return
        except csv.Error as error:
            raise InvalidRatingsFile([f"line {line}: not CSV ({error}): check for an open quotation mark"]) from None
        if any(cell.strip() for cell in row):
            yield line, row
        line = reader.line_num + 1


def _read_header(rows: Iterator[_Row], optional: Sequence[str]) -> tuple[dict[str, int], int]:
    """Return the index of each known column, and the number of all columns. Unknown ones are ignored."""
    line, row = next(rows, (1, []))
    names = [cell.strip().lower() for cell in row]
    missing = [name for name in REQUIRED_COLUMNS if name not in names]
    if missing:
        header = ", ".join(names)[:200]
        raise InvalidRatingsFile(
            [f"line {line}: missing column {', '.join(missing)}: the header needs task,worker,label, but is {header!r}"]
        )
    known = [*REQUIRED_COLUMNS, *(name for name in optional if name in names)]
    repeated = [name for name in known if names.count(name) > 1]
    if repeated:
        raise InvalidRatingsFile([f"line {line}: the column {repeated[0]} appears twice"])
    return {name: names.index(name) for name in known}, len(names)


def _check_width(rows: Iterator[_Row], n_columns: int, complaints: list[str]) -> Iterator[_Row]:
    """Reject rows with more cells than columns: the extra cell is half of another, as in an unquoted label 0,5."""
    for line, row in rows:
        if any(cell.strip() for cell in row[n_columns:]):
            complaints.append(
                f"line {line}: {len(row)} cells, but the header has {n_columns}: quote cells that contain a comma"
            )
        else:
            yield line, row


def _select_cells(
    rows: Iterator[_Row], indices: dict[str, int], may_be_blank: Sequence[str], complaints: list[str]
) -> Iterator[_Row]:
    """Yield the cells of the known columns."""
    width = max(indices.values()) + 1
    for line, row in rows:
        if len(row) < width:
            complaints.append(f"line {line}: {len(row)} cells, but the header has at least {width}")
            continue
        cells = {name: row[index].strip() for name, index in indices.items()}
        faults = [f"no {name}" for name, cell in cells.items() if not cell and name not in may_be_blank]
        if _is_missing_value(cells["label"]):
            faults.append(f"{cells['label']!r} is not a label: leave out rows without a rating")
        if faults:
            complaints.append(f"line {line}: {'; '.join(faults)}")
        else:
            yield line, list(cells.values())


@functools.lru_cache(maxsize=1024)
def _is_missing_value(label: str) -> bool:
    """Tell whether a label is how programs write a missing number: nan, inf or null, in any spelling."""
    try:
        return not math.isfinite(float(label))
    except ValueError:
        return label.lower() == "null"


def _enumerate_names(names: list[str]) -> tuple[list[str], Ints]:
    """Return the distinct names in order of appearance, and each row's index among them."""
    indices: dict[str, int] = {}
    numbers = np.array([indices.setdefault(name, len(indices)) for name in names], dtype=np.int64)
    return list(indices), numbers


def _find_duplicates(task: list[str], worker: list[str], tasks: Ints, workers: Ints, lines: list[int]) -> list[str]:
    """Find workers who rated a task twice: they would agree with themselves."""
    keys = tasks * (int(workers.max(initial=0)) + 1) + workers
    order = np.argsort(keys, kind="stable")
    repeats = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    return [
        f"line {lines[order[n + 1]]}: worker {worker[order[n]]!r} already rated task {task[order[n]]!r} on line "
        f"{lines[order[n]]}"
        for n in repeats
    ]


def _line_of(complaint: str) -> int:
    return int(complaint.removeprefix("line ").split(":", 1)[0])


# The scale of the labels: whether they are numbers, and their order.


class InvalidScale(ValueError):
    """The given values cannot be a scale."""


class InvalidLabel(ValueError):
    """A label is not on the scale; `row` is its index among the labels."""

    def __init__(self, message: str, row: int) -> None:
        self.row = row
        super().__init__(message)


@dataclass(frozen=True)
class RatingScale:
    """`names` in order; `values` are the numbers themselves, or the ranks of names that are not numbers."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    is_numeric: bool
    is_ordered: bool


def read_scale(labels: Sequence[str], *, names: Sequence[str] | None = None) -> tuple[RatingScale, Ints]:
    """Return the scale, and the index of each label on it. Given `names` can include values that do not occur."""
    scale = _scale_from_labels(labels) if names is None else _scale_from_names(list(names))
    indices = {name: n for n, name in enumerate(scale.names)}
    if scale.is_numeric:
        index_of_value = {value: n for n, value in enumerate(scale.values)}
        indices |= {label: index_of_value[n] for label in set(labels) if (n := _parse_number(label)) in index_of_value}
    try:
        return scale, np.array([indices[label] for label in labels], dtype=np.int64)
    except KeyError as error:
        raise InvalidLabel(f"label {error.args[0]!r} is not on the scale", labels.index(error.args[0])) from None


def _scale_from_labels(labels: Sequence[str]) -> RatingScale:
    scale = _build_scale(sorted(set(labels)), is_ordered=False)
    if len(scale.names) > MAX_SCALE_VALUES:
        raise InvalidLabel(
            f"{len(scale.names)} different labels, but at most {MAX_SCALE_VALUES} are allowed: check the label column",
            0,
        )
    return scale


def _scale_from_names(names: list[str]) -> RatingScale:
    if not all(names):
        raise InvalidScale("a value is blank: check for an extra comma")
    if len(set(names)) < len(names):
        raise InvalidScale("a value appears twice")
    if len(names) > MAX_SCALE_VALUES:
        raise InvalidScale(f"{len(names)} values, but at most {MAX_SCALE_VALUES} are allowed")
    return _build_scale(names, is_ordered=True)


def _build_scale(names: list[str], *, is_ordered: bool) -> RatingScale:
    numbers = [_parse_number(name) for name in names]
    known = [number for number in numbers if number is not None]
    is_numeric = len(known) == len(names)
    if is_numeric:
        by_value = dict(zip(reversed(known), reversed(names), strict=True))  # 1, 1.0 and +1 are the same value
        names, known = [by_value[value] for value in sorted(by_value)], sorted(by_value)
    values = known if is_numeric else [float(n) for n in range(len(names))]
    return RatingScale(tuple(names), tuple(values), is_numeric, is_ordered or is_numeric)


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
