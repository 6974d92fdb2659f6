"""The command that judges a PRM on ProcessBench files."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.prm.backends import scorer_servers

KEYS = (
    *("f1", "accuracy_erroneous", "accuracy_correct", "auc", "risk_set_auc", "risk_set_auc_length_matched"),
    *("risk_set_auc_length_only", "ece", "intervals", "counts", "problems_in_training"),
)


def evaluate(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("evaluate_prm", *arguments, "--json", stdout=out)
    told: dict[str, Any] = json.loads(out.getvalue())
    return told


def lines(path: Path, *, n: int = 40, problems: int = 20) -> Path:
    """Every second trace says something false at its second step."""
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


def test_trained_on_gsm8k_it_beats_length_on_math(shared_data: Path) -> None:
    """The contract: .05 above what length alone reaches on the same pairs, and better than chance beyond doubt."""
    bench = shared_data / "processbench"
    told = evaluate("--processbench", str(bench / "math.json"), "--train", str(bench / "gsm8k.json"))
    assert tuple(told) == KEYS
    assert told["risk_set_auc_length_matched"] >= told["risk_set_auc_length_only"] + 0.05
    assert told["intervals"]["risk_set_auc_length_matched"][0] > 0.5
    assert (told["counts"]["traces"], told["counts"]["erroneous"], told["problems_in_training"]) == (1000, 594, 0)


def test_without_training_files_each_fold_is_judged_by_the_others(tmp_path: Path) -> None:
    told = evaluate("--processbench", str(lines(tmp_path / "a.jsonl")))
    assert told["auc"] > 0.9
    assert told["problems_in_training"] == 0


def test_contamination_is_counted_and_refused_when_strict(tmp_path: Path) -> None:
    judged, other = lines(tmp_path / "a.jsonl"), lines(tmp_path / "b.jsonl")
    some = tmp_path / "some.jsonl"
    some.write_text("\n".join([*judged.read_text().splitlines()[:3], other.read_text()]))
    assert evaluate("--processbench", str(judged), "--train", str(some))["problems_in_training"] == 3
    with pytest.raises(CommandError, match="3 of the judged problems"):
        evaluate("--processbench", str(judged), "--train", str(some), "--strict")
    assert evaluate("--processbench", str(judged), "--train", str(other), "--strict")["problems_in_training"] == 0


def test_vllm_backend_is_judged_without_training(tmp_path: Path) -> None:
    fake = scorer_servers.FakeVllmServer(
        rows=lambda prompt: [[0.9, 0.1] if "guess" in step else [0.1, 0.9] for step in _steps(prompt)]
    )
    with scorer_servers.running_scorer(fake) as address:
        told = evaluate(
            *("--processbench", str(lines(tmp_path / "a.jsonl")), "--backend", "vllm"),
            *("--address", address, "--model", "m"),
        )
    assert (told["f1"], told["auc"]) == (1.0, 1.0)


def _steps(prompt: str) -> list[str]:
    return prompt.rpartition("assistant\n")[2].split("<extra_0>")[:-1]


@pytest.mark.parametrize(
    ("text", "what"),
    [("", "no trace"), ('{"problem": "p", "steps": ["a"], "label": 7}', "label 7"), ("not json", "records are bad")],
)
def test_file_that_cannot_be_judged_on_is_refused(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(text)
    with pytest.raises(CommandError, match=what):
        evaluate("--processbench", str(file))


def test_file_that_is_not_there_and_backend_without_address_are_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        evaluate("--processbench", str(tmp_path / "none.json"))
    with pytest.raises(CommandError, match="needs --address"):
        evaluate("--processbench", str(lines(tmp_path / "a.jsonl")), "--backend", "vllm")


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (("--threshold", "7"), "no number from 0 to 1"),
        (("--threshold", "nan"), "no number from 0 to 1"),
        (("--threshold", "0.4"), "for vllm and http"),
        (("--backend", "http", "--address", "http://127.0.0.1:1", "--secret-file", "/none"), "secret cannot be read"),
        (("--backend", "vllm", "--address", "ftp://x"), "must look like https"),
    ],
)
def test_option_that_means_nothing_is_refused(tmp_path: Path, more: tuple[str, ...], what: str) -> None:
    with pytest.raises(CommandError, match=what):
        evaluate("--processbench", str(lines(tmp_path / "a.jsonl")), *more)
