"""Check snapshots with trainers in a separate environment, because torch and TRL are large and not part of the
platform. The environment is created once under build/, in at most five minutes. If that fails, the reason is printed.

    python -m tests.trainers.environment
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "trainers"
PACKAGES = ("torch==2.13.0", "trl==1.13.0", "datasets", "zstandard")
PATIENCE = 300  # seconds
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "PYTHONWARNINGS": "ignore",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def main() -> int:
    missing = ensure_environment()
    if missing:
        print(f"NOT AVAILABLE: {missing}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, **QUIET, "STEPMARK_DATA": f"{folder}/data", "STEPMARK_LOG_LEVEL": "ERROR"}
        Path(folder, "data").mkdir()
        subprocess.run([sys.executable, "-m", "tests.trainers.make_snapshots", folder], cwd=ROOT, env=own, check=True)
        made = sorted(str(path.parent) for path in Path(folder).glob("*/README.md"))
        check = [str(FOLDER / "bin" / "python"), str(ROOT / "tests/trainers/check_snapshots.py"), *made]
        return subprocess.run(check, cwd=folder, env=own, check=False).returncode


def ensure_environment() -> str:
    """Create the environment. Return the reason if that fails, otherwise an empty string."""
    is_whole = FOLDER / "is-whole"
    if is_whole.exists() and is_whole.read_text() == " ".join(PACKAGES):
        return ""
    shutil.rmtree(FOLDER, ignore_errors=True)
    venv.create(FOLDER, with_pip=True)
    install = [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES]
    try:
        done = subprocess.run(install, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"the packages were not installed within {PATIENCE} seconds"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    is_whole.write_text(" ".join(PACKAGES))
    return ""


if __name__ == "__main__":
    sys.exit(main())
