#!/usr/bin/env python3
"""Django's command line. `--data DIR` names the embedded data folder, for every command."""

import os
import sys


def take_data_folder(arguments: list[str]) -> list[str]:
    """Take `--data DIR` out of the arguments: the settings need it before any command reads its own."""
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--data" or argument.startswith("--data="):
            folder = argument.partition("=")[2] or next(waiting, "")
            if not folder:
                sys.exit("--data needs a folder: --data DIR")
            os.environ["STEPMARK_DATA"] = folder
        else:
            rest.append(argument)
    return rest


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    arguments = take_data_folder(sys.argv)
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(arguments)
    except ImproperlyConfigured as error:
        sys.exit(f"Stepmark cannot run: {error}")


if __name__ == "__main__":
    main()
