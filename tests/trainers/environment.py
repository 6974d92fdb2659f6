"""Run the trainer checks in a separate environment, because torch and TRL are large and not part of the platform. It is
created once under build/, in at most five minutes. If that fails, the reason is printed.

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
TIMEOUT = 300  # seconds
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "PYTHONWARNINGS": "ignore",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def main() -> int:
    reason = ensure_environment()
    if reason:
        print(f"SKIPPED: {reason}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        environment = {**inherited, **QUIET, "STEPMARK_DATA": f"{folder}/data", "STEPMARK_LOG_LEVEL": "ERROR"}
        Path(folder, "data").mkdir()
        subprocess.run(
            [sys.executable, "-m", "tests.trainers.make_snapshots", folder], cwd=ROOT, env=environment, check=True
        )
        folders = sorted(str(path.parent) for path in Path(folder).glob("*/README.md"))
        check = [str(FOLDER / "bin" / "python"), str(ROOT / "tests/trainers/check_snapshots.py"), *folders]
        return subprocess.run(check, cwd=folder, env=environment, check=False).returncode


def ensure_environment() -> str:
    """Create the environment if needed. Return why it cannot be used, or an empty string."""
    marker = FOLDER / "complete"
    if marker.exists() and marker.read_text() == " ".join(PACKAGES):
        return ""
    shutil.rmtree(FOLDER, ignore_errors=True)
    venv.create(FOLDER, with_pip=True)
    # Bytecode is compiled on first import: most modules of torch and transformers are never imported here.
    install = [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile", *PACKAGES]
    try:
        result = subprocess.run(install, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return f"pip took longer than {TIMEOUT} seconds"
    if result.returncode:
        return (result.stderr.strip().splitlines() or ["pip failed"])[-1]
    marker.write_text(" ".join(PACKAGES))
    return ""


if __name__ == "__main__":
    sys.exit(main())
