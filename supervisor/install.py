"""Sets up `.venv/` from a file of hashed requirements: with uv where it is there, otherwise with venv and pip.

Run as a script it does so for the tests, and then becomes what follows in the line:
`python -m supervisor.install requirements-dev.txt -m tests.everything`.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from supervisor import Trouble, child, place

VENV = place.BASE / ".venv"
PYTHON = VENV / "bin" / "python"
RUNTIME = place.BASE / "requirements.txt"
NEW_ENOUGH = [str(PYTHON), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]


def install(requirements: Path = RUNTIME) -> None:
    """Make `.venv/` hold these requirements. Costs nothing when it already does."""
    with _alone():
        if _is_current(requirements) and _works(NEW_ENOUGH):
            return
        print(f"Installing {requirements.name} into {VENV} (once; up to a minute) …", flush=True)
        began = time.monotonic()
        _stamp(requirements).unlink(missing_ok=True)
        for command in _commands(requirements):
            _call(command)
        # The development list holds the runtime's, pinned alike: whoever has the one has the other.
        for held in {requirements, RUNTIME}:
            _stamp(held).write_text(_digest(held))
        print(f"Installed in {time.monotonic() - began:.0f} s.", flush=True)


def _commands(requirements: Path) -> Iterator[list[str]]:
    uv = shutil.which("uv")
    fresh = not _works(NEW_ENOUGH)
    # The file names every package, so nothing needs resolving; bytecode comes with the first use of a module.
    chosen = ["--quiet", "--no-deps", "--require-hashes", "-r", str(requirements)]
    if uv and _works([uv, "--version"]):
        if fresh:
            yield [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)]
        yield [uv, "pip", "install", "--python", str(PYTHON), *chosen]
        return
    if fresh or not _works([str(PYTHON), "-m", "pip", "--version"]):
        yield [sys.executable, "-m", "venv", "--clear", str(VENV)]
    yield [str(PYTHON), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-compile", *chosen]


def _call(command: list[str]) -> None:
    log = place.BASE / ".venv.log"
    with log.open("wb") as output:
        process = child.start(command, env=os.environ, output=output.fileno())
        try:
            code = process.wait()
        finally:
            child.kill_group(process.pid)
    if code:
        raise Trouble(_reason(log.read_text(errors="replace"), command))
    log.unlink()


def _reason(said: str, command: list[str]) -> str:
    if "ensurepip" in said:
        return (
            "Python's own venv is incomplete here: install the package python3-venv (apt install python3-venv) or uv."
        )
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")
    return f"Installing failed in `{' '.join(command[:4])} …`: {last} (all of it is in .venv.log)"


def _is_current(requirements: Path) -> bool:
    stamp = _stamp(requirements)
    return stamp.exists() and stamp.read_text() == _digest(requirements)


def _stamp(requirements: Path) -> Path:
    return VENV / f"{requirements.name}.installed"


def _digest(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 (our own commands)
    except OSError:
        return False


@contextmanager
def _alone() -> Iterator[None]:
    """One installation at a time in this folder."""
    folder = os.open(place.BASE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    except PermissionError as error:
        raise Trouble(
            f"{error.filename} cannot be written to: make it yours, or copy the project elsewhere."
        ) from error
    finally:
        os.close(folder)


if __name__ == "__main__":
    try:
        install(place.BASE / sys.argv[1])
    except Trouble as trouble:
        sys.exit(str(trouble))
    if sys.argv[2:]:
        os.execv(PYTHON, [str(PYTHON), *sys.argv[2:]])  # noqa: S606 (it shall become what was asked for, without a shell)
