"""The CSV file that the statistics' command lines read: its option, its opening, its scale."""

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
    parser.add_argument("--csv", required=True, metavar="FILE", help="task,worker,label; - is standard input")
    parser.add_argument(
        "--values", metavar="A,B,C", help="all values of the scale in their order (default: those that occur)"
    )


@contextmanager
def open_csv(path: str) -> Iterator[BinaryIO]:
    """The file, or standard input; opening and reading it may fail."""
    if path == "-" and sys.stdin is None:
        raise CommandError("cannot read standard input: it is closed")
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
            yield file
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None


def parse_scale(ratings: CrowdRatings, values: str | None) -> tuple[RatingScale, Ints]:
    """The scale of the labels; raises BadFile with the line of a label that a told scale does not have."""
    told = None if values is None else [name.strip() for name in values.split(",")]
    try:
        return ratings_file.read_scale(ratings.labels, told=told)
    except InvalidScale as error:
        raise CommandError(f"--values {values}: {error}") from None
    except InvalidLabel as error:
        raise InvalidRatingsFile([f"line {ratings.lines[error.row]}: {error}"]) from None
