"""Lists of benchmark problems."""

import datetime as dt
import json
from pathlib import Path

import pytest

from formats.normalization import digest_normalized
from labeling import benchmarks
from labeling.models import BenchmarkProblem
from tests import factories

pytestmark = pytest.mark.django_db


def test_shipped_lists_contain_a_real_benchmark_file(shared_data: Path) -> None:
    """Every problem of the file is found on its list."""
    records = json.loads((shared_data / "processbench/gsm8k.json").read_text())
    found = benchmarks.find_lists([digest_normalized(record["problem"]) for record in records])
    assert all("ProcessBench gsm8k" in names for names in found.values())
    assert len(found) == 375
    assert {name: len(listed) for name, listed in benchmarks.load_shipped_lists().items()} == {
        "MATH-500": 500,
        "GSM8K test": 1319,
        "ProcessBench gsm8k": 375,
        "ProcessBench math": 955,
        "ProcessBench olympiadbench": 561,
        "ProcessBench omnimath": 951,
        "PRMBench": 923,
    }


def test_registered_problems_count_once_per_list(now: dt.datetime) -> None:
    ours, theirs = (factories.make_source(factories.make_project(), name) for name in ("ours", "theirs"))
    one, other, free = digest_normalized("What is 1?"), digest_normalized("What is 2?"), digest_normalized("What is 3?")
    assert benchmarks.register_problems(source=ours, normal_digests=[one, other, one], now=now) == 2
    assert benchmarks.register_problems(source=ours, normal_digests=[one, other], now=now) == 0
    assert benchmarks.register_problems(source=theirs, normal_digests=[one], now=now) == 1
    assert benchmarks.find_lists([one, other, free]) == {one: ("ours", "theirs"), other: ("ours",)}


def test_forget_deletes_one_list(now: dt.datetime) -> None:
    ours, theirs = (factories.make_source(factories.make_project(), name) for name in ("ours", "theirs"))
    one = digest_normalized("What is 1?")
    for source in (ours, theirs):
        benchmarks.register_problems(source=source, normal_digests=[one], now=now)
    assert benchmarks.forget_source(source=ours, now=now) == 1
    assert BenchmarkProblem.objects.count() == 1
    assert benchmarks.find_lists([one]) == {one: ("theirs",)}
