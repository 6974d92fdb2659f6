"""Output of the statistics commands: always UTF-8, and no traceback when it cannot be written."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError, OutputWrapper

EXIT_BROKEN_PIPE = 141  # the exit code shells use when the reader closed the pipe


@contextmanager
def print_safely(out: OutputWrapper) -> Iterator[None]:
    """Write to `out` inside this block. A closed pipe (`| head`) ends the command; other failures are reported."""
    if sys.stdout is None:
        raise CommandError("cannot print: standard output is closed")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        yield
        out.flush()
    except BrokenPipeError:
        _discard_stdout()
        sys.exit(EXIT_BROKEN_PIPE)
    except OSError as error:
        _discard_stdout()
        raise CommandError(f"cannot print: {error.strerror}") from None


def _discard_stdout() -> None:
    # Python flushes its buffer once more at exit, and would print another error.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
