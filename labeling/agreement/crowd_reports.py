"""First-error reports from a CSV of ratings: a task is a trace, its label the 0-based place of the first error.

-1 means that the worker saw none. More columns may say more: `steps` the trace's length (without it every trace is
taken to be as long as the furthest report of the file), `domain` its domain, and `seen` after how many steps a worker
stopped without having found an error; the label is then blank, and such a report never counts as "no error".
"""

from collections.abc import Iterable, Iterator

import numpy as np

from labeling.agreement import ratings_file
from labeling.agreement.arrays import Bools, Ints
from labeling.agreement.evidence import EVENTS
from labeling.agreement.ratings_file import BadFile, Ratings
from labeling.agreement.reports import Reports

COLUMNS = ("steps", "domain", "seen")
MAY_BE_BLANK = ("label", "domain", "seen")
MOST_STEPS = 10_000
_NONE = -1


def of_ratings(ratings: Ratings) -> Reports:
    """Raises BadFile for labels that are no place in their trace."""
    is_censored = np.array([not label for label in ratings.labels], dtype=np.bool_)
    said = _numbers(ratings, is_censored)
    lengths = _lengths(ratings, said)
    _check_size(int((lengths[ratings.tasks] + 1).sum()))
    _refuse(_outside(ratings, said, is_censored, lengths))
    domains = ratings_file.one_per_task(ratings, "domain") if "domain" in ratings.extra else [""] * len(lengths)
    return Reports(
        traces=ratings.tasks,
        raters=ratings.workers,
        ends=np.where(said == _NONE, lengths[ratings.tasks], said),
        is_censored=is_censored,
        lengths=lengths,
        problems=np.arange(len(lengths)),
        domains=np.unique(np.array(domains), return_inverse=True)[1].astype(np.int64),
    )


def _numbers(ratings: Ratings, is_censored: Bools) -> Ints:
    """The label of every row, or the steps seen where there is no label."""
    seen = ratings.extra.get("seen", [""] * len(ratings.lines))
    complaints, numbers = [], []
    for line, label, steps, censored in zip(ratings.lines, ratings.labels, seen, is_censored, strict=True):
        number = _whole(steps if censored else label, lowest=0 if censored else _NONE)
        if number is None and censored:
            complaints.append(f"line {line}: no label, and no number of steps in seen: what did the worker report?")
        elif number is None:
            complaints.append(f"line {line}: {label!r} is no place of a first error: 0, 1, 2 … or -1 for none")
        numbers.append(number or 0)
    _refuse(complaints)
    return np.array(numbers, dtype=np.int64)


def _lengths(ratings: Ratings, said: Ints) -> Ints:
    if "steps" not in ratings.extra:
        return np.full(len(ratings.task_names), int(said.max(initial=0)) + 1, dtype=np.int64)
    told = [_whole(text, lowest=1) for text in ratings_file.one_per_task(ratings, "steps")]
    _refuse(
        f"line {line}: steps is {text!r}, not a whole number from 1 to {MOST_STEPS}"
        for line, text, task in zip(ratings.lines, ratings.extra["steps"], ratings.tasks.tolist(), strict=True)
        if told[task] is None
    )
    return np.array(told, dtype=np.int64)


def _check_size(places: int) -> None:
    """Every report says something of every place of its trace."""
    most = ratings_file.MOST_NUMBERS // len(EVENTS)
    if places > most:
        raise BadFile([f"traces of {places:,} steps in all reports together: at most {most:,}, or fewer at a time"])


def _outside(ratings: Ratings, said: Ints, is_censored: Bools, lengths: Ints) -> Iterator[str]:
    most = np.where(is_censored, lengths[ratings.tasks], lengths[ratings.tasks] - 1)
    for row in np.flatnonzero(said > most):
        yield (
            f"line {ratings.lines[row]}: {said[row]} lies outside a trace of {lengths[ratings.tasks[row]]} steps "
            "(the first step is 0)"
        )


def _whole(text: str, *, lowest: int) -> int | None:
    try:
        number = int(text)
    except ValueError:
        return None
    return number if lowest <= number <= MOST_STEPS and "_" not in text else None  # 1_0 is ten in Python alone


def _refuse(complaints: Iterable[str]) -> None:
    told = list(complaints)
    if told:
        raise BadFile(told)
