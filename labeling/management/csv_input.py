"""CSV input of the statistics commands: the options, the file and the scale."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import BinaryIO

from django.core.management.base import CommandError

from stats import ratings_file
from stats.arrays import Ints
from stats.ratings_file import CrowdRatings, InvalidLabel, InvalidRatingsFile, InvalidScale, RatingScale


def add_csv_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--csv", required=True, metavar="FILE", help="CSV with the columns task, worker, label; - reads standard input"
    )
    parser.add_argument(
        "--values", metavar="A,B,C", help="all values of the scale in order (default: those in the file)"
    )


@contextmanager
def open_csv(path: str) -> Iterator[BinaryIO]:
    """Open the file or standard input. Report failures to open or read it as a CommandError."""
    if path == "-" and sys.stdin is None:
        raise CommandError("cannot read standard input: it is closed")
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
            yield file
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from error


def parse_scale(ratings: CrowdRatings, values: str | None) -> tuple[RatingScale, Ints]:
    """Return the scale, and the index of each label on it. A label that is not on the scale is reported by its line."""
    names = None if values is None else [name.strip() for name in values.split(",")]
    try:
        return ratings_file.read_scale(ratings.labels, names=names)
    except InvalidScale as error:
        raise CommandError(f"--values {values}: {error}") from error
    except InvalidLabel as error:
        raise InvalidRatingsFile([f"line {ratings.lines[error.row]}: {error}"]) from None
