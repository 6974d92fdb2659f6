"""The CSV file that the statistics' command lines read: its option, its opening, its scale."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import BinaryIO

from django.core.management.base import CommandError

from labeling.agreement import scale
from labeling.agreement.arrays import Ints
from labeling.agreement.ratings_file import BadFile, Ratings
from labeling.agreement.scale import BadLabel, BadScale, Scale


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--csv", required=True, metavar="FILE", help="task,worker,label; - is standard input")
    parser.add_argument(
        "--values", metavar="A,B,C", help="all values of the scale in their order (default: those that occur)"
    )


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The file, or standard input; opening and reading it may fail."""
    if path == "-" and sys.stdin is None:
        raise CommandError("cannot read standard input: it is closed")
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
            yield file
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None


def scale_of(ratings: Ratings, values: str | None) -> tuple[Scale, Ints]:
    """The scale of the labels; raises BadFile with the line of a label that a told scale does not have."""
    told = None if values is None else [name.strip() for name in values.split(",")]
    try:
        return scale.read(ratings.labels, told=told)
    except BadScale as error:
        raise CommandError(f"--values {values}: {error}") from None
    except BadLabel as error:
        raise BadFile([f"line {ratings.lines[error.row]}: {error}"]) from None
