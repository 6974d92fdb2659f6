"""Audits see what was put there to be seen; contamination finds copies, rewritings and near copies."""

import json
from pathlib import Path

import numpy as np
import pytest

from prm.evaluation import audits, contamination
from prm.evaluation.audits import TraceOutcomes
from prm.evaluation.labeled_steps import NO_ERROR
from prm.evaluation.report import JudgedTraces
from tests.prm.evaluation import benchmarks

LONG = (
    "A train leaves the station at nine in the morning and travels at sixty miles per hour towards the coast while "
    "another train leaves the coast at ten and travels at forty miles per hour"
)


def test_last_step_ratio_is_one_for_chance_and_an_alarm_for_an_outcome_model() -> None:
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


def test_outcome_model_tells_wrong_answers_and_no_error_behind_a_right_one() -> None:
    """Four traces of two steps: sound, wrong throughout, and two that are right by luck."""
    judged = JudgedTraces(
        p_wrong=np.array([0.1, 0.1, 0.1, 0.9, 0.1, 0.1, 0.1, 0.1]),
        characters=np.full(8, 20),
        lengths=np.full(4, 2),
        truth=np.array([NO_ERROR, 1, 0, 1]),
        problems=np.arange(4),
        sources=np.zeros(4, dtype=np.int64),
    )
    outcomes = TraceOutcomes(domains=["sums"], domain=[0] * 4, is_answer_right=[True, False, True, True])
    found = audits.build_audit_report(judged, outcomes, contamination={})["audits"]
    assert (found["auc_right_answers"]["value"], found["auc_wrong_answers"]["value"]) == (0.5, 1.0)


def test_outcome_slope_is_an_alarm_where_scores_read_the_outcome() -> None:
    random = np.random.default_rng(1)
    wrong, right_answer = random.random(3000) < 0.2, random.random(3000) < 0.5
    noise = random.normal(0, 1, 3000)
    for slope, is_alarming in ((0.0, False), (1.0, True)):
        logits = -2 + 3 * wrong - slope * right_answer + noise
        found = audits.outcome_slope(p_wrong=1 / (1 + np.exp(-logits)), is_wrong=wrong, is_answer_right=right_answer)
        assert found.value == pytest.approx(slope, abs=0.12)
        assert found.is_alarming == is_alarming


def test_length_drift_is_an_alarm_where_only_length_is_served() -> None:
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


def test_audits_of_nothing_say_nothing() -> None:
    none, no = np.zeros(0), np.zeros(0, dtype=np.bool_)
    assert audits.last_step_ratio(p_wrong=none, lengths=none.astype(np.int64), is_answer_right=no).value is None
    assert audits.outcome_slope(p_wrong=none, is_wrong=no, is_answer_right=no).value is None
    drift = audits.length_drift(
        pool_p_wrong=none, pool_log_characters=none, served_p_wrong=none, served_log_characters=none
    )
    assert (drift.value, drift.is_alarming) == (None, False)


def test_contamination_finds_copies_rewritings_and_near_copies() -> None:
    judged = [
        "What is 2 + 2?",
        "what  IS 2 ＋ 2 ?!",
        LONG + ". When do they meet on a Sunday?",
        "Something else entirely.",
        "",
    ]
    found = contamination.find_contaminated(
        training=["What is 2 + 2?", LONG + " and the sun shines. Who is first?"], judged=judged
    )
    assert (found.equal, found.overlapping, found.n) == ([0, 1], [2], 3)


def test_runs_of_several_training_problems_do_not_add_up() -> None:
    words = LONG.split()
    halves = [" ".join(words[: len(words) // 2 + 3]), " ".join(words[len(words) // 2 - 3 :])]
    assert contamination.find_contaminated(training=halves, judged=[LONG]).n == 0


@pytest.mark.parametrize(
    ("told", "alarms", "said"),
    [
        ([("reserve", 0, 0), ("benchmark", 0, 0)], [], []),
        ([("reserve", 0, 0), ("benchmark", 0, 1)], ["contamination"], ["contamination"]),
        ([("other_reserve", 1, 0), ("other_gold", 1, 0)], ["contamination"], ["contamination"]),
        ([("gold", 1, 0), ("benchmark", 4, 1)], ["contamination"], []),
        ([("reserve", 0, 1)], ["contamination"], []),
        ([("canary", 1, 0)], ["contamination"], []),
    ],
)
def test_what_judges_here_holds_the_gate_and_what_judges_elsewhere_is_said(
    told: list[tuple[str, int, int]], alarms: list[str], said: list[str]
) -> None:
    judged = JudgedTraces(
        np.array([0.1]), np.array([9]), np.array([1]), np.array([NO_ERROR]), np.array([0]), np.array([0])
    )
    judges = [{"kind": kind, "n_equal": equal, "n_overlapping": runs} for kind, equal, runs in told]
    found = audits.build_audit_report(judged, TraceOutcomes(["a"], [0], [None]), contamination={"judges": judges})
    assert (found["alarms"], found["said"]) == (alarms, said)


def test_known_contamination_of_public_benchmarks_is_found(shared_data: Path) -> None:
    """ProcessBench's mathematics shares 108 of its 955 problems with MATH-500."""
    lists = json.loads((shared_data / "benchmarks" / "problem_hashes.json").read_text())["lists"]
    problems = sorted(set(benchmarks.load_processbench(shared_data, "math").problems))
    found = contamination.find_listed_problems(problems=problems, digests=lists["MATH-500"])
    assert len({contamination.normal_text_digest(problems[n]) for n in found}) == 108
