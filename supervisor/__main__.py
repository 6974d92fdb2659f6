"""`python -m supervisor [--port 8000] [--data DIR] [--no-demo]`, which `./run` calls."""

import argparse
import os
import sys
from pathlib import Path

from supervisor import StartupError, paths, run_all


def parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run", description="Start Stepmark on this machine, on loopback alone.")
    parser.add_argument("--port", type=_port, default=8000, help="where to listen on 127.0.0.1 (8000; 0: any free one)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where all data is kept (STEPMARK_DATA, or data/)")
    parser.add_argument("--no-demo", action="store_true", help="start empty, without the demo project and its accounts")
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: write a number up to 65535")
    return int(text)


def main(arguments: list[str]) -> int:
    chosen = parse_options(arguments)
    folder = chosen.data or Path(os.environ.get("STEPMARK_DATA") or paths.BASE / "data")
    try:
        run_all.run_platform(folder.resolve(), port=chosen.port, with_demo=not chosen.no_demo)
    except StartupError as trouble:
        print(f"Stepmark cannot run: {trouble}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
