"""Every format on real files: detection, counts, first errors, and the places of bad records."""

import io
import json
from collections import Counter
from pathlib import Path

import pytest

from formats import catalog
from formats.catalog import UnknownFormat
from formats.records import BadLine, TraceRecord

# Of each file: its format, its traces and its submissions.
FILES = [
    ("prm800k/genuine.jsonl", "prm800k", 8, 8),
    ("processbench/gsm8k.json", "processbench", 400, 400),
    ("processbench/math.json", "processbench", 1000, 1000),
    ("gsm8k/example_model_solutions.jsonl", "gsm8k", 600, 0),
    ("agent/tau_bench_airline.json", "chat", 30, 0),
    ("agent/swe_agent_00.traj", "swe_agent", 1, 0),
    ("agent/swe_agent_02.traj", "swe_agent", 1, 0),
    ("agent/swe_agent_05.traj", "swe_agent", 1, 0),
    ("other/math_shepherd_sample.jsonl", "math_shepherd", 7, 7),
    ("other/bigbench_mistake_logical_deduction.jsonl", "bigbench_mistake", 60, 60),
    ("other/prmbench_circular.jsonl", "prmbench", 30, 30),
    ("other/mr_ben_math.json", "mr_ben", 120, 120),
]


def read(path: Path) -> list[TraceRecord]:
    return given(path.read_bytes())


def given(content: bytes) -> list[TraceRecord]:
    found = list(catalog.detect_format(io.BytesIO(content)).read(io.BytesIO(content)))
    bad = [str(item) for item in found if isinstance(item, BadLine)]
    assert not bad
    return [item for item in found if isinstance(item, TraceRecord)]


def first_error(record: TraceRecord) -> int:
    """Return the first position rated negative, or -1."""
    ratings = {turn.position: (turn.shown or [])[0].rating for turn in record.submissions[0].turns}
    return min((position for position, rating in ratings.items() if rating == -1), default=-1)


@pytest.mark.parametrize(("name", "format", "n_traces", "n_submissions"), FILES)
def test_detect_and_read_real_files(
    shared_data: Path, name: str, format: str, n_traces: int, n_submissions: int
) -> None:
    path = shared_data / name
    assert catalog.detect_format(io.BytesIO(path.read_bytes())).name == format
    records = read(path)
    assert len(records) == n_traces
    assert sum(len(record.submissions) for record in records) == n_submissions
    assert len({record.digest for record in records}) == n_traces


@pytest.mark.parametrize(("name", "share"), [("gsm8k", 0.035), ("math", 0.188)])
def test_processbench_has_errors_despite_right_answers(shared_data: Path, name: str, share: float) -> None:
    path = shared_data / f"processbench/{name}.json"
    records, source = read(path), json.loads(path.read_text())
    assert [first_error(record) for record in records] == [item["label"] for item in source]
    assert [record.ref for record in records] == [item["id"] for item in source]
    right = [record for record in records if record.is_right]
    assert round(sum(first_error(record) >= 0 for record in right) / len(right), 3) == share


def test_first_errors_follow_the_counting_of_each_file(shared_data: Path) -> None:
    bigbench = read(shared_data / "other/bigbench_mistake_logical_deduction.jsonl")
    assert Counter(map(first_error, bigbench)) == {2: 24, 1: 19, 3: 10, 4: 4, 5: 1, 6: 1, 7: 1}
    mr_ben = read(shared_data / "other/mr_ben_math.json")
    assert Counter(map(first_error, mr_ben))[0] == 22  # "1" in the file
    assert Counter(map(first_error, mr_ben))[-1] == 20  # "N/A"
    prmbench = read(shared_data / "other/prmbench_circular.jsonl")
    assert first_error(prmbench[0]) == 1  # [2, 3, 4] in the file


def test_math_shepherd_loses_no_text(shared_data: Path) -> None:
    path = shared_data / "other/math_shepherd_sample.jsonl"
    for record, line in zip(read(path), path.read_text().splitlines(), strict=True):
        text = record.problem.text + "".join(step.separator + step.options[0].text for step in record.steps)
        assert json.loads(line)["input"] == text + " ки"
        assert record.submissions[0].machine == "Monte Carlo (Math-Shepherd)"


def test_tau_bench_steps_of_the_agent_are_rateable(shared_data: Path) -> None:
    records = read(shared_data / "agent/tau_bench_airline.json")
    kinds = Counter(step.kind for record in records for step in record.steps)
    assert kinds == {"system": 30, "user": 282, "reasoning": 252, "action": 181, "observation": 181}
    assert all(step.is_rateable == (step.kind in {"reasoning", "action"}) for r in records for step in r.steps)
    call = next(step for step in records[0].steps if step.kind == "action").options[0].parts[-1]
    assert (call.kind, call.name) == ("call", "get_user_details")


def test_swe_agent_joins_thought_and_action(shared_data: Path) -> None:
    (record,) = read(shared_data / "agent/swe_agent_00.traj")
    step = next(step for step in record.steps if step.is_rateable)
    assert [part.kind for part in step.options[0].parts] == ["text", "call"]
    assert step.options[0].parts[1].name == "find_file"
    assert "missing_colon" in record.problem.text


def test_gsm8k_has_one_problem_for_four_models(shared_data: Path) -> None:
    records = read(shared_data / "gsm8k/example_model_solutions.jsonl")
    assert len({record.problem for record in records}) == 150
    assert {record.provenance.policy for record in records[:4] if record.provenance} == {
        *("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
    }
    assert records[0].problem.answer == "18"


BAD = [
    ("processbench", {"problem": "p", "steps": ["a"], "label": 1}, 43, "label"),
    ("prmbench", {"modified_question": "q", "modified_process": ["a"], "error_steps": [0]}, 70, "0"),
    ("bigbench_mistake", {"input": "i", "steps": [], "mistake_index": 0}, 46, "0"),
    (
        "trl",
        {"prompt": "p", "completions": ["a"], "labels": [-1]},
        50,
        "labels[0]",
    ),
    ("trl", {"prompt": "p", "completions": ["a"], "labels": [True, True]}, 49, "2"),
    ("math_shepherd", {"input": "Q Step 1: a ки", "label": "Q Step 1: b +"}, None, "label"),
    ("chat", {"messages": [{"role": "user"}], "step_labels": {"3": 1}}, 55, '"3"'),
    ("native", {"problem": "p"}, 1, '"steps"'),
    ("native", {"problem": "p", "steps": [], "step": 1}, 39, '"steps"'),
    ("native", {"problem": "p", "text": "a", "segmenter": "by mood"}, 44, "by mood"),
    ("mr_ben", {"Question": "q"}, 1, "`Model_Solution_Steps`"),
    ("processbench", {"problem": "p", "steps": [], "label": -1, "id": "x" * 201}, 50, "in id"),
    ("gsm8k", {"question": "p", "m" * 201: {"solution": "s"}}, 224, "200"),
]


@pytest.mark.parametrize(("name", "record", "column", "fact"), BAD)
def test_read_refuses_a_misfit_at_its_place(
    name: str, record: dict[str, object], column: int | None, fact: str
) -> None:
    (bad,) = catalog.get_input_format(name).read(io.BytesIO(json.dumps(record, ensure_ascii=False).encode()))
    assert isinstance(bad, BadLine)
    assert fact in bad.reason
    assert column in (None, bad.column)


@pytest.mark.parametrize("digits", [400, 5000])
def test_read_refuses_endless_numbers(digits: int) -> None:
    """The key is unknown to the format; Python refuses to convert so many digits."""
    line = b'{"messages": [{"role": "user", "content": "hi"}], "seed": 1' + b"0" * digits + b"}"
    (item,) = catalog.get_input_format("chat").read(io.BytesIO(line))
    assert isinstance(item, BadLine) == (digits > 1000)
    assert not isinstance(item, BadLine) or (item.line, item.column) == (1, 59)


def test_native_accepts_all_documented_fields() -> None:
    line = {
        "problem": "What is 2 + 2?",
        "answer": "4",
        "domain": "sums",
        "ref": "x-1",
        "policy": "m",
        "steps": ["2 + 2", {"text": "= 4", "alternatives": ["= 5"], "kind": "answer"}],
        "final_answer": "4",
        "is_right": True,
        "labels": [1, 0],
        "labeler": "ann",
    }  # fmt: skip  -- one field per line
    (record,) = catalog.get_input_format("native").read(io.BytesIO(json.dumps(line).encode()))
    assert isinstance(record, TraceRecord)
    assert [option.text for option in record.steps[1].options] == ["= 4", "= 5"]
    assert [(turn.shown or [])[0].rating for turn in record.submissions[0].turns] == [1, 0]
    assert (record.ref, record.is_right, record.outcome_by) == ("x-1", True, "file")


def test_unknown_formats_are_refused_with_the_known_ones() -> None:
    names = ", ".join(catalog.INPUT_FORMATS)
    with pytest.raises(UnknownFormat, match=names):
        catalog.get_input_format("docx")
    with pytest.raises(UnknownFormat, match=names):
        catalog.detect_format(io.BytesIO(b'{"a": 1}'))
