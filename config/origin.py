"""Where the platform is reached that runs on a data folder, when nobody said."""

import re
from pathlib import Path

USUAL = "http://127.0.0.1:8000"


def of(folder: Path) -> str:
    """What the supervisor noted when it took the folder, so that links of the command line lead to the right port."""
    try:
        noted = (folder / "supervisor.lock").read_text()
    except (OSError, UnicodeDecodeError):
        return USUAL
    found = re.match(r"at (https?://\S+)", noted)
    return found.group(1) if found else USUAL
