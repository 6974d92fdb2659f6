"""Find the address of the platform that runs on a data folder, unless STEPMARK_ORIGIN is set."""

import re
from pathlib import Path

DEFAULT_ORIGIN = "http://127.0.0.1:8000"


def read_noted_origin(folder: Path) -> str:
    """Return the address that the supervisor wrote into its lock file, so that printed links have the right port."""
    try:
        noted = (folder / "supervisor.lock").read_text()
    except (OSError, UnicodeDecodeError):
        return DEFAULT_ORIGIN
    found = re.match(r"at (https?://\S+)", noted)
    return found.group(1) if found else DEFAULT_ORIGIN
