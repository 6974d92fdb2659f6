"""Parse the options of `./run`: `python -m supervisor [--port 8000] [--data DIR] [--no-demo]`."""

import argparse
import os
import sys
from pathlib import Path

from supervisor import StartupError, paths, run_all


def parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run", description="Start Stepmark on this machine, on the loopback interface."
    )
    parser.add_argument("--port", type=_port, default=8000, help="port on 127.0.0.1 (default 8000; 0 takes a free one)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="data folder (default: STEPMARK_DATA, else data/)")
    parser.add_argument("--no-demo", action="store_true", help="start without the demo projects and accounts")
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: use a number up to 65535")
    return int(text)


def main(arguments: list[str]) -> int:
    options = parse_options(arguments)
    folder = options.data or Path(os.environ.get("STEPMARK_DATA") or paths.BASE / "data")
    try:
        run_all.run_platform(folder.resolve(), port=options.port, with_demo=not options.no_demo)
    except StartupError as error:
        print(f"Stepmark cannot start: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
