"""The command that evaluates a PRM on ProcessBench files."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from prm.benchmark_evaluation import BenchmarkUnreadable
from tests.prm.backends import scorer_servers

KEYS = (
    *("f1", "accuracy_erroneous", "accuracy_correct", "auc", "risk_set_auc", "risk_set_auc_length_matched"),
    *("risk_set_auc_length_only", "ece", "intervals", "counts", "problems_in_training"),
)


def evaluate(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("evaluate_prm", *arguments, "--json", stdout=out)
    result: dict[str, Any] = json.loads(out.getvalue())
    return result


def write_records(path: Path, *, n: int = 40, problems: int = 20) -> Path:
    """Write traces of which every second one has an error at its second step."""
    rows = []
    for number in range(n):
        wrong = number % 2
        middle = (
            f"Then {number} + 2 = {number + 2 + wrong}, so we guess" if wrong else f"Then {number} + 2 = {number + 2}"
        )
        problem = f"What is {number % problems} plus two of {path.stem}?"
        steps = ["We add.", middle, "Done."]
        rows.append({"problem": problem, "steps": steps, "label": 1 if wrong else -1})
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.fault
def test_prm_trained_on_gsm8k_beats_length_on_math(shared_data: Path) -> None:
    """At least 0.05 above length only on the same pairs, and significantly better than chance."""
    bench = shared_data / "processbench"
    result = evaluate("--processbench", str(bench / "math.json"), "--train", str(bench / "gsm8k.json"))
    assert tuple(result) == KEYS
    assert result["risk_set_auc_length_matched"] >= result["risk_set_auc_length_only"] + 0.05
    assert result["intervals"]["risk_set_auc_length_matched"][0] > 0.5
    assert (result["counts"]["traces"], result["counts"]["erroneous"], result["problems_in_training"]) == (1000, 594, 0)


def test_without_training_files_each_fold_is_evaluated_by_the_others(tmp_path: Path) -> None:
    result = evaluate("--processbench", str(write_records(tmp_path / "a.jsonl")))
    assert result["auc"] > 0.9
    assert result["problems_in_training"] == 0


@pytest.mark.fault
def test_contamination_is_counted_and_refused_by_strict(tmp_path: Path) -> None:
    judged, other = write_records(tmp_path / "a.jsonl"), write_records(tmp_path / "b.jsonl")
    some = tmp_path / "some.jsonl"
    some.write_text("\n".join([*judged.read_text().splitlines()[:3], other.read_text()]))
    assert evaluate("--processbench", str(judged), "--train", str(some))["problems_in_training"] == 3
    with pytest.raises(CommandError, match=r"^3 "):
        evaluate("--processbench", str(judged), "--train", str(some), "--strict")
    assert evaluate("--processbench", str(judged), "--train", str(other), "--strict")["problems_in_training"] == 0


def test_vllm_backend_needs_no_training_files(tmp_path: Path) -> None:
    fake = scorer_servers.FakeVllmServer(
        rows=lambda prompt: [[0.9, 0.1] if "guess" in step else [0.1, 0.9] for step in _steps(prompt)]
    )
    with scorer_servers.running_scorer(fake) as address:
        result = evaluate(
            *("--processbench", str(write_records(tmp_path / "a.jsonl")), "--backend", "vllm"),
            *("--address", address, "--model", "m"),
        )
    assert (result["f1"], result["auc"]) == (1.0, 1.0)


def _steps(prompt: str) -> list[str]:
    return prompt.rpartition("assistant\n")[2].split("<extra_0>")[:-1]


@pytest.mark.parametrize("text", ["", '{"problem": "p", "steps": ["a"], "label": 7}', "not json"])
def test_invalid_benchmark_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    with pytest.raises(CommandError) as refused:
        evaluate("--processbench", str(file))
    assert isinstance(refused.value.__cause__, BenchmarkUnreadable)
    assert str(file) in str(refused.value)


def test_missing_file_and_missing_address_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refused:
        evaluate("--processbench", str(tmp_path / "none.json"))
    assert isinstance(refused.value.__cause__, BenchmarkUnreadable)
    with pytest.raises(CommandError, match="--address"):
        evaluate("--processbench", str(write_records(tmp_path / "a.jsonl")), "--backend", "vllm")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--threshold", "7"), "--threshold"),
        (("--threshold", "nan"), "--threshold"),
        (("--threshold", "0.4"), "--threshold"),
        (("--backend", "http", "--address", "http://127.0.0.1:1", "--secret-file", "/none"), "/none"),
        (("--backend", "vllm", "--address", "ftp://x"), "ftp://x"),
    ],
)
@pytest.mark.fault
def test_invalid_option_is_refused_and_named(tmp_path: Path, options: tuple[str, ...], named: str) -> None:
    with pytest.raises(CommandError, match=named):
        evaluate("--processbench", str(write_records(tmp_path / "a.jsonl")), *options)
