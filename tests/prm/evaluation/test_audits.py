"""Audits raise their alarms on planted faults; contamination finds copies, variants and near copies."""

import json
from pathlib import Path

import numpy as np
import pytest

from formats.near_duplicates import LISTED_DIGITS, digest_normalized
from prm.evaluation import audits
from prm.evaluation.audits import TraceOutcomes
from prm.evaluation.contamination import ContaminationKind, TrainingProblems
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces
from tests.prm.evaluation import benchmarks

LONG = (
    "A train leaves the station at nine in the morning and travels at sixty miles per hour towards the coast while "
    "another train leaves the coast at ten and travels at forty miles per hour"
)


def test_last_step_ratio_is_one_by_chance_and_alarming_for_an_outcome_model() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(2, 10, 2000)
    is_right = random.random(2000) < 0.3
    by_chance = random.random(int(lengths.sum()))
    is_last = np.zeros(len(by_chance), dtype=np.bool_)
    is_last[np.cumsum(lengths) - 1] = True
    honest = audits.last_step_ratio(p_wrong=by_chance, lengths=lengths, is_answer_right=is_right)
    collapsed = audits.last_step_ratio(
        p_wrong=np.where(is_last, by_chance + 0.5, by_chance), lengths=lengths, is_answer_right=is_right
    )
    assert honest.value == pytest.approx(1.0, abs=0.1)
    assert (honest.is_alarming, collapsed.is_alarming) == (False, True)
    assert honest.n == int((~is_right).sum())


def test_outcome_model_finds_wrong_answers_but_no_errors_behind_right_ones() -> None:
    """Four traces of two steps: one right, one wrong, and two with a right answer in spite of an error."""
    judged = JudgedTraces(
        p_wrong=np.array([0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1]),
        characters=np.full(8, 20),
        lengths=np.full(4, 2),
        truth=np.array([NO_ERROR, 1, 0, 1]),
        problems=np.arange(4),
        sources=np.zeros(4, dtype=np.int64),
    )
    outcomes = TraceOutcomes(domains=["sums"], domain=[0] * 4, is_answer_right=[True, False, True, True])
    result = audits.build_audit_report(judged, outcomes, contamination={})["audits"]
    assert (result["auc_right_answers"]["value"], result["auc_wrong_answers"]["value"]) == (0.5, 1.0)


def test_outcome_slope_is_alarming_if_scores_depend_on_the_outcome() -> None:
    random = np.random.default_rng(1)
    wrong, right_answer = random.random(3000) < 0.2, random.random(3000) < 0.5
    noise = random.normal(0, 1, 3000)
    for slope, is_alarming in ((0.0, False), (1.0, True)):
        logits = -2 + 3 * wrong - slope * right_answer + noise
        result = audits.outcome_slope(p_wrong=1 / (1 + np.exp(-logits)), is_wrong=wrong, is_answer_right=right_answer)
        assert result.value == pytest.approx(slope, abs=0.12)
        assert result.is_alarming == is_alarming


def test_length_drift_is_alarming_if_draws_are_selected_by_length() -> None:
    random = np.random.default_rng(2)
    length, noise = random.normal(4, 1, 2000), random.normal(0, 1, 2000)
    same = audits.length_drift(
        pool_p_wrong=noise, pool_log_characters=length, served_p_wrong=noise[:500], served_log_characters=length[:500]
    )
    fed = audits.length_drift(
        pool_p_wrong=noise,
        pool_log_characters=length,
        served_p_wrong=noise[:500] + length[:500],
        served_log_characters=length[:500],
    )
    assert (same.is_alarming, fed.is_alarming) == (False, True)


def test_audits_without_cases_have_no_value() -> None:
    none, no = np.zeros(0), np.zeros(0, dtype=np.bool_)
    assert audits.last_step_ratio(p_wrong=none, lengths=none.astype(np.int64), is_answer_right=no).value is None
    assert audits.outcome_slope(p_wrong=none, is_wrong=no, is_answer_right=no).value is None
    drift = audits.length_drift(
        pool_p_wrong=none, pool_log_characters=none, served_p_wrong=none, served_log_characters=none
    )
    assert (drift.value, drift.is_alarming) == (None, False)


def test_contamination_finds_copies_variants_and_near_copies() -> None:
    judged = [
        "What is 2 + 2?",
        "what  IS 2 ＋ 2 ?!",
        LONG + ". When do they meet on a Sunday?",
        "Something else entirely.",
        "",
    ]
    training = TrainingProblems(["What is 2 + 2?", LONG + " and the sun shines. Who is first?"])
    equal, overlapping = ContaminationKind.EQUAL, ContaminationKind.OVERLAPPING
    assert [training.holds(problem) for problem in judged] == [equal, equal, overlapping, None, None]


def test_runs_of_several_training_problems_do_not_add_up() -> None:
    words = LONG.split()
    halves = [" ".join(words[: len(words) // 2 + 3]), " ".join(words[len(words) // 2 - 3 :])]
    assert TrainingProblems(halves).holds(LONG) is None


@pytest.mark.parametrize(
    ("matches", "alarms", "advisory"),
    [
        ([("reserve", 0, 0), ("benchmark", 0, 0)], [], []),
        ([("reserve", 0, 0), ("benchmark", 0, 1)], ["contamination"], ["contamination"]),
        ([("other_reserve", 1, 0), ("other_gold", 1, 0)], ["contamination"], ["contamination"]),
        ([("gold", 1, 0), ("benchmark", 4, 1)], ["contamination"], []),
        ([("reserve", 0, 1)], ["contamination"], []),
        ([("canary", 1, 0)], ["contamination"], []),
    ],
)
def test_only_overlap_with_this_projects_problems_blocks_the_gate(
    matches: list[tuple[str, int, int]], alarms: list[str], advisory: list[str]
) -> None:
    judged = JudgedTraces(
        np.array([0.1]), np.array([9]), np.array([1]), np.array([NO_ERROR]), np.array([0]), np.array([0])
    )
    judges = [{"kind": kind, "n_equal": equal, "n_overlapping": runs} for kind, equal, runs in matches]
    result = audits.build_audit_report(judged, TraceOutcomes(["a"], [0], [None]), contamination={"judges": judges})
    assert (result["alarms"], result["advisory"]) == (alarms, advisory)


def test_known_contamination_of_public_benchmarks_is_found(shared_data: Path) -> None:
    """ProcessBench's MATH part shares 108 of its 955 problems with MATH-500."""
    lists = json.loads((shared_data / "benchmarks" / "problem_hashes.json").read_text())["lists"]
    problems = benchmarks.load_processbench(shared_data, "math").problems
    digests = {digest_normalized(problem)[:LISTED_DIGITS] for problem in problems}
    assert len(digests & set(lists["MATH-500"])) == 108
