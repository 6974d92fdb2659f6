"""The package works without Django, as its docstring shows."""

import gzip
import subprocess
import sys
import textwrap
from pathlib import Path

import formats
from tests.conventions.rule import ROOT
from tests.formats import prm800k_lines as prm


def test_docstring_example_runs_without_django(tmp_path: Path) -> None:
    """The code blocks of the docstring run in a process that cannot import Django."""
    (tmp_path / "traces.jsonl.gz").write_bytes(gzip.compress(prm.make_line() + b"\n"))
    blocks = [line for line in (formats.__doc__ or "").splitlines() if line.startswith("    ")]
    code = 'import sys; sys.modules["django"] = None\n' + textwrap.dedent("\n".join(blocks))
    code += "\nprint(len(records), len(lines), len(rows))"
    env = {"PYTHONPATH": str(ROOT), "PATH": ""}
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "1 1 1\n"), ended.stderr
