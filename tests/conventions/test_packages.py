"""The contracts of import-linter hold, can fail, and cover every package."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.conventions.rule import ROOT, list_files

pytestmark = pytest.mark.static

CONTRACTS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
PURE = (
    "labeling/agreement",
    "labeling/traces/readers",
    "labeling/texts",
    "exports/formats",
    "charts",
    "prm/selection",
    "prm/evaluation",
    "demo/math_problems",
    "demo/agents",
)

# One import for each contract that must break it, and the module that it is written into.
BREAKING = {
    "packages": ("accounts/models.py", "import labeling.models"),
    "config": ("annotate/views.py", "import config.env"),
    "labeling": ("labeling/models/trace.py", "import labeling.traces"),
    "pure": ("stats/__init__.py", "import django.db"),
}


def lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [command, "--no-cache", "--no-logo", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_contracts_are_kept() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_contract_can_fail(tmp_path: Path) -> None:
    """Make a copy of the source tree with one import per contract that breaks it."""
    for name in list_files():
        if name.endswith(".py") or name == "pyproject.toml":
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tmp_path / name)
    for module, line in BREAKING.values():
        with (tmp_path / module).open("a") as file:
            file.write(f"\n{line}\n")
    result = lint(tmp_path)
    assert result.returncode == 1
    assert set(BREAKING) == {contract["id"] for contract in CONTRACTS["contracts"]}
    assert f"0 kept, {len(BREAKING)} broken" in result.stdout, result.stdout


def test_every_package_is_under_contract() -> None:
    packages = {name.split("/")[0] for name in list_files() if name.count("/") == 1 and name.endswith("/__init__.py")}
    assert packages == set(CONTRACTS["root_packages"])
    layers = " ".join(layer for contract in CONTRACTS["contracts"] for layer in contract.get("layers", []))
    named = {word.strip("()") for word in layers.replace("|", " ").replace(":", " ").split()}
    assert packages - {"config"} <= named


def test_every_pure_package_is_under_contract() -> None:
    pure = next(contract for contract in CONTRACTS["contracts"] if contract["id"] == "pure")
    there = {package.replace("/", ".") for package in PURE if (ROOT / package).is_dir()}
    assert there <= set(pure["source_modules"])
