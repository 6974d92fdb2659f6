"""The base of commands that compute statistics of a CSV file: its options, the file, the scale and the output."""

import io
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from stats import ratings_file
from stats.arrays import Ints
from stats.ratings_file import CrowdRatings, InvalidLabel, InvalidRatingsFile, InvalidScale, RatingScale


class CsvCommand(BaseCommand):
    """Compute a result and print it, always in UTF-8. A bad file, and output that cannot be written, are reported."""

    requires_system_checks = ()  # uses no database

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--csv",
            required=True,
            metavar="FILE",
            help="CSV file with the columns task, worker, label; use - for standard input",
        )
        parser.add_argument(
            "--values",
            metavar="A,B,C",
            help="all values of the rating scale, in order (default: the values in the file)",
        )

        parser.add_argument(
            "--rater", action="append", default=[], metavar="WORKER", help="only ratings of this worker (repeatable)"
        )
        parser.add_argument(
            "--without-rater",
            action="append",
            default=[],
            metavar="WORKER",
            help="leave out the ratings of this worker (repeatable)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = self.compute(options)
        except InvalidRatingsFile as error:
            raise CommandError(str(error)) from error
        with _print_safely(self.stdout):
            self.print_result(result, options)

    def compute(self, options: dict[str, Any]) -> Any:
        raise NotImplementedError

    def print_result(self, result: Any, options: dict[str, Any]) -> None:
        raise NotImplementedError


def select_raters(ratings: CrowdRatings, options: dict[str, Any]) -> CrowdRatings:
    """Apply --rater and --without-rater."""
    if not options["rater"] and not options["without_rater"]:
        return ratings
    return ratings_file.select_workers(ratings, only=options["rater"], without=options["without_rater"])


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


@contextmanager
def _print_safely(out: OutputWrapper) -> Iterator[None]:
    """Write to `out` inside this block. A closed pipe (`| head`) ends the command; other failures are reported."""
    if sys.stdout is None:
        raise CommandError("cannot write the result: standard output is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        yield
        out.flush()
    except BrokenPipeError:
        raise  # `manage.py` ends the command
    except OSError as error:
        _discard_stdout()
        raise CommandError(f"cannot write the result: {error.strerror}") from None


def _discard_stdout() -> None:
    # Python flushes its buffer once more at exit, and would print another error.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
