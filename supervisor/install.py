"""Set up `.venv/` from hashed requirements, with uv if it is installed and with venv and pip otherwise.

As a script, it installs the given list and then replaces itself with the rest of its command line:
`python -m supervisor.install requirements-dev.txt -m tests.check_all`.
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

from supervisor import StartupError, children, paths

VENV = paths.BASE / ".venv"
PYTHON = VENV / "bin" / "python"
RUNTIME = paths.BASE / "requirements.txt"
PYTHON_VERSION_CHECK = [str(PYTHON), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]


def install_requirements(requirements: Path = RUNTIME) -> None:
    """Install these requirements into `.venv/`, unless they are already there."""
    with _exclusive_lock():
        if _is_current(requirements) and _succeeds(PYTHON_VERSION_CHECK):
            return
        print(f"Installing {requirements.name} into {VENV} (once; up to a minute) …", flush=True)
        began = time.monotonic()
        _stamp_path(requirements).unlink(missing_ok=True)
        for command in _commands(requirements):
            _run_command(command)
        # The development list includes the runtime list with the same pins.
        for held in {requirements, RUNTIME}:
            _stamp_path(held).write_text(_digest(held))
        print(f"Installed in {time.monotonic() - began:.0f} s.", flush=True)


def _commands(requirements: Path) -> Iterator[list[str]]:
    uv = shutil.which("uv")
    fresh = not _succeeds(PYTHON_VERSION_CHECK)
    # The file names every package, so nothing is resolved. Bytecode is compiled on first import.
    options = ["--quiet", "--no-deps", "--require-hashes", "-r", str(requirements)]
    if uv and _succeeds([uv, "--version"]):
        if fresh:
            yield [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)]
        yield [uv, "pip", "install", "--python", str(PYTHON), *options]
        return
    if fresh or not _succeeds([str(PYTHON), "-m", "pip", "--version"]):
        yield [sys.executable, "-m", "venv", "--clear", str(VENV)]
    yield [str(PYTHON), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-compile", *options]


def _run_command(command: list[str]) -> None:
    log = paths.BASE / ".venv.log"
    with log.open("wb") as output:
        process = children.start_guarded(command, env=os.environ, output=output.fileno())
        try:
            code = process.wait()
        finally:
            children.kill_group(process.pid)
    if code:
        raise StartupError(_explain_failure(log.read_text(errors="replace"), command))
    log.unlink()


def _explain_failure(output: str, command: list[str]) -> str:
    if "ensurepip" in output:
        return "This Python cannot create a virtual environment: install python3-venv (apt install python3-venv) or uv."
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no output")
    return f"Installation failed in `{' '.join(command[:4])} …`: {last} (full output: .venv.log)"


def _is_current(requirements: Path) -> bool:
    stamp = _stamp_path(requirements)
    return stamp.exists() and stamp.read_text() == _digest(requirements)


def _stamp_path(requirements: Path) -> Path:
    return VENV / f"{requirements.name}.installed"


def _digest(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes()).hexdigest()


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 (our own commands)
    except OSError:
        return False


@contextmanager
def _exclusive_lock() -> Iterator[None]:
    """Allow one installation at a time in this folder."""
    folder = os.open(paths.BASE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    except PermissionError as error:
        raise StartupError(
            f"{error.filename} is not writable: change its owner, or copy the project elsewhere."
        ) from error
    finally:
        os.close(folder)


if __name__ == "__main__":
    try:
        install_requirements(paths.BASE / sys.argv[1])
    except StartupError as error:
        sys.exit(str(error))
    if sys.argv[2:]:
        os.execv(PYTHON, [str(PYTHON), *sys.argv[2:]])  # noqa: S606 (becomes the requested program, without a shell)
