"""Where the platform is reached that runs on a data folder, when nobody said."""

import re
from pathlib import Path

DEFAULT_ORIGIN = "http://127.0.0.1:8000"


def read_noted_origin(folder: Path) -> str:
    """What the supervisor noted when it took the folder, so that links of the command line lead to the right port."""
    try:
        noted = (folder / "supervisor.lock").read_text()
    except (OSError, UnicodeDecodeError):
        return DEFAULT_ORIGIN
    found = re.match(r"at (https?://\S+)", noted)
    return found.group(1) if found else DEFAULT_ORIGIN
