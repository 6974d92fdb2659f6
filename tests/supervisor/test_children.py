"""The logs of supervised programs."""

import subprocess
import sys
from pathlib import Path

import pytest

from supervisor import children

WRITER = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def test_full_log_is_rotated_while_its_program_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MAX_LOG_BYTES", 100)
    log = tmp_path / "web.log"
    with log.open("ab") as output:
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=output, text=True, bufsize=1
        )
    assert writer.stdin is not None
    writer.stdin.write("old line\n" * 20)
    writer.stdin.flush()
    while log.stat().st_size < 9 * 20:
        assert writer.poll() is None
    children.rotate_log(log)
    writer.stdin.write("new line\n")
    writer.stdin.close()
    writer.wait()
    assert log.read_text() == "new line\n"
    old = tmp_path / "web.old.log"
    assert old.read_text() == "old line\n" * 20
    assert old.stat().st_mode & 0o077 == 0


def test_short_and_missing_logs_stay(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    children.rotate_log(log)
    log.write_text("line\n")
    children.rotate_log(log)
    assert [each.name for each in tmp_path.iterdir()] == ["web.log"]
