"""Benchmarks that need no database start."""

import os
import subprocess

import pytest

from tests import command_server
from tests.conventions.rule import ROOT

NAMES = ("agreement", "gate", "label_efficiency", "protection", "settling")
OWN_VARIABLES = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE", "SECRET_KEY")


@pytest.mark.fault
@pytest.mark.parametrize("name", NAMES)
def test_benchmark_starts_without_a_database(name: str) -> None:
    env = {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES}
    command = [command_server.find_python(), "-m", f"bench.{name}", "--help"]
    found = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
