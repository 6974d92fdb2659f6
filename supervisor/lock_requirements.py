"""Write both lists of hashed requirements from `pyproject.toml`: `make lock`. Needs uv.

A pin stays while it satisfies the table. Delete a list before `make lock` to upgrade everything in it.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from supervisor import paths

HEADER = """\
# Written by `make lock` from the table in pyproject.toml; change that and run it again.
# Lists every package with all its published hashes; nothing else can be installed.
"""


def lock_requirements(folder: Path) -> None:
    table = tomllib.loads((paths.BASE / "pyproject.toml").read_text())
    runtime = table["project"]["dependencies"]
    extras = [each for group in table["project"]["optional-dependencies"].values() for each in group]
    runtime_list, development_list = paths.BASE / "requirements.txt", paths.BASE / "requirements-dev.txt"
    _compile_list(runtime, runtime_list, folder=folder)
    _compile_list(
        [*runtime, *extras, *table["dependency-groups"]["dev"]], development_list, folder=folder, held=runtime_list
    )


def _compile_list(wanted: list[str], listed: Path, *, folder: Path, held: Path | None = None) -> None:
    table, fresh = folder / "pyproject.in", folder / listed.name
    table.write_text("\n".join(wanted) + "\n")
    fresh.write_text(listed.read_text() if listed.exists() else "")
    constraints = folder / "held.txt"
    constraints.write_text(held.read_text() if held else "")
    command = ["uv", "pip", "compile", "--quiet", "--generate-hashes", "--universal", "--python-version", "3.11"]
    quiet = ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    subprocess.run(  # noqa: S603 (our own command)
        [*command, *quiet, "--constraint", str(constraints), "--output-file", str(fresh), str(table)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    listed.write_text(HEADER + fresh.read_text())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        try:
            lock_requirements(Path(name))
        except (OSError, subprocess.CalledProcessError) as error:
            sys.exit(f"The lists could not be written: {error}. `make lock` needs uv.")
