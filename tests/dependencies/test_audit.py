"""The comparison of the lock file with advisories."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from dependencies import audit
from dependencies.lock_file import read_lock_file

RANGES = {"type": "ECOSYSTEM", "events": [{"introduced": "2.0"}, {"fixed": "2.3"}, {"introduced": "3.0"}]}


def write_advisory(folder: Path, name: str = "django", *, days: int = 0, **affected: Any) -> None:
    at = dt.datetime.now(dt.UTC) - dt.timedelta(days=days)
    content = {
        "id": "PYSEC-1",
        "aliases": ["CVE-1"],
        "modified": at.isoformat(),
        "affected": [{"package": {"ecosystem": "PyPI", "name": name}, **affected}],
    }
    (folder / f"{name}.json").write_text(json.dumps(content))


def run(folder: Path, version: str) -> int:
    lock = folder / "requirements.txt"
    lock.write_text(f"django=={version} \\\n    --hash=sha256:00\n")
    return audit.main([str(folder), "--lock-file", str(lock)])


@pytest.mark.parametrize(
    ("version", "code"),
    [("1.9", 0), ("2.0", 1), ("2.2.9", 1), ("2.3", 0), ("2.10", 0), ("3.0.1", 1)],
)
def test_affected_package_is_found(version: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_advisory(tmp_path, "Django", ranges=[RANGES])
    assert run(tmp_path, version) == code
    assert ("CVE-1" in capsys.readouterr().out) == bool(code)


def test_listed_version_is_found(tmp_path: Path) -> None:
    write_advisory(tmp_path, versions=["1.10"])
    assert run(tmp_path, "1.10") == audit.AFFECTED
    assert run(tmp_path, "1.1") == 0


def test_yaml_keeps_versions_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        f"id: PYSEC-1\nmodified: {dt.datetime.now(dt.UTC).isoformat()}\naffected:\n"
        '- package: {ecosystem: PyPI, name: django}\n  versions: [1.10, "1.11"]\n'
    )
    assert run(tmp_path, "1.10") == audit.AFFECTED
    assert run(tmp_path, "1.1") == 0


@pytest.mark.parametrize("change", [{"withdrawn": "2026-01-01T00:00:00Z"}, {"affected": []}])
def test_withdrawn_and_other_advisories_are_left_out(change: dict[str, Any], tmp_path: Path) -> None:
    write_advisory(tmp_path, versions=["1.1"])
    path = tmp_path / "django.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert not list(audit.find_weaknesses(read_lock_file(), audit.read_advisories(tmp_path)))


def test_missing_or_old_advisories_are_no_success(tmp_path: Path) -> None:
    assert run(tmp_path, "1.1") == audit.UNUSABLE
    write_advisory(tmp_path, "other", days=31, versions=["1"])
    assert run(tmp_path, "1.1") == audit.UNUSABLE
    write_advisory(tmp_path, "other", days=29, versions=["1"])
    assert run(tmp_path, "1.1") == 0
