"""Where the statistics' command lines print: UTF-8 whatever the terminal says, and no traceback where printing ends."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError, OutputWrapper

EXIT_BROKEN_PIPE = 141  # what a shell says of a program whose reader closed the pipe


@contextmanager
def print_safely(out: OutputWrapper) -> Iterator[None]:
    """For what writes to `out`. `| head` takes what it wants and is no fault of anybody; a full disk is told."""
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
    """Python tries once more to write what it holds when it ends, and would complain of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
