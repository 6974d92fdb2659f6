"""Name forked processes for `top` and `ps`; they all have the command line of their parent."""

import ctypes
import sys
from pathlib import Path

PR_SET_NAME = 15


def set_process_name(name: str) -> None:
    """Set the name of this process. Linux keeps fifteen characters; other systems show the command line."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode(), 0, 0, 0)


def read_process_name(process: Path) -> str:
    """Read the name of a process from its folder in /proc."""
    return (process / "comm").read_text().strip()
