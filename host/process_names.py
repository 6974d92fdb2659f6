"""What `top` and `ps` call a process that branched off: its command line is that of the one that it came from."""

import ctypes
import sys
from pathlib import Path

PR_SET_NAME = 15


def set_process_name(name: str) -> None:
    """The kernel keeps fifteen characters. Other systems show the command line, and nothing is lost."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def read_process_name(process: Path) -> str:
    """By its folder in /proc."""
    return (process / "comm").read_text().strip()
