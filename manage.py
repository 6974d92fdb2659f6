#!/usr/bin/env python3
"""Django's command line. `--data DIR` names the embedded data folder, for every command."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Commands that read and write files only, or nothing.
WITHOUT_DATABASE = {"agreement", "check", "collectstatic", "consensus", "evaluate_prm", "help", "version"}
# Python's default, 700, takes a sixth of a command's start: it creates 300,000 objects, none of which is garbage.
OBJECTS_BETWEEN_COLLECTIONS = 50_000
EXIT_BROKEN_PIPE = 141  # the exit code shells use when the reader closed the pipe


def take_data_folder(arguments: list[str]) -> list[str]:
    """Take `--data DIR` out of the arguments: the settings need it before any command reads its own."""
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--data" or argument.startswith("--data="):
            folder = argument.partition("=")[2] or next(waiting, "")
            if not folder:
                sys.exit("--data needs a value: --data DIR")
            os.environ["STEPMARK_DATA"] = folder
        else:
            rest.append(argument)
    return rest


def switch_to_venv() -> None:
    """Run with the Python of `.venv/`, where `./run` installed the dependencies."""
    own = Path(__file__).resolve().parent / ".venv" / "bin" / "python"
    if find_spec("django") is None:
        if not own.exists() or Path(sys.executable) == own:
            sys.exit("Stepmark is not installed here yet: start ./run once, or pip install -r requirements.txt.")
        os.execv(own, [str(own), *sys.argv])  # noqa: S606 (the same program with the Python of .venv)


def explain_empty_database(error: Exception) -> None:
    """Exit with one sentence if the database has no tables yet."""
    from django.conf import settings
    from django.db import DatabaseError, connection

    try:
        is_empty = isinstance(error, DatabaseError) and not connection.introspection.table_names()
    except DatabaseError:
        is_empty = False
    if is_empty:
        where = settings.DATA_DIR if settings.EMBEDDED else "the database"
        sys.exit(f"{where} is empty: start ./run once, or choose another folder with --data.")


@contextmanager
def closed_pipe_allowed() -> Iterator[None]:
    """End the command quietly if the reader of its output is gone (`| head`)."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes its buffer once more at exit, and would print another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)


@contextmanager
def database_for(arguments: list[str]) -> Iterator[None]:
    """Start the embedded database for the duration of a command, unless the command needs none or it is running."""
    from django.conf import settings

    command = next((word for word in arguments[1:] if not word.startswith("-")), "help")
    if command in WITHOUT_DATABASE or {"-h", "--help"} & {*arguments} or not settings.EMBEDDED:
        yield
        return
    from supervisor import database

    with database.serve_command(settings.DATA_DIR):
        yield


def describe_data_folder() -> None:
    """Let the help of every command name `--data`, which is taken before the command reads its arguments."""
    from django.core.management import base

    class HelpfulParser(base.CommandParser):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.add_argument("--data", metavar="DIR", help="data folder of ./run (default: STEPMARK_DATA, else data/)")

    base.CommandParser = HelpfulParser  # type: ignore[misc]  # Django offers no other way for all commands


def skip_system_checks() -> None:
    """Leave Django's checks of the code to `check`, `migrate` and the tests: they load every page of the interface,
    which would take a third of a command's time."""
    from django.core.management import base

    base.BaseCommand.requires_system_checks = []


def main() -> None:
    switch_to_venv()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    arguments = take_data_folder(sys.argv)
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    from supervisor import StartupError

    describe_data_folder()
    skip_system_checks()
    try:
        with database_for(arguments), closed_pipe_allowed():
            try:
                execute_from_command_line(arguments)
            except DatabaseError as error:
                explain_empty_database(error)
                raise
    except (ImproperlyConfigured, StartupError) as error:
        sys.exit(f"Stepmark cannot start: {error}")


if __name__ == "__main__":
    main()
