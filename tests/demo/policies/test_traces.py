"""Generated compliance traces: every outcome, each step with a clause of the policy, at most one violation."""

from demo.policies import traces
from labeling.projects.clauses import parse_clauses

MADE = [trace for seed in range(10) for trace in traces.generate_policy_traces(seed=str(seed))]


def test_generate_gives_the_same_traces_each_time() -> None:
    assert traces.generate_policy_traces(seed="x") == traces.generate_policy_traces(seed="x")
    assert len({trace.ref for trace in MADE}) == len(MADE) / 10


def test_generate_makes_every_outcome_with_and_without_violation() -> None:
    outcomes = {"help", "refusal", "partial help", "safe completion"}
    assert {(trace.domain, trace.is_right) for trace in MADE} == {
        (each, is_so) for each in outcomes for is_so in (0, 1)
    }


def test_every_step_has_a_clause_of_the_policy() -> None:
    codes = {clause.code for clause in parse_clauses(traces.load_policy())}
    cited = {step.options[0].clause for trace in MADE for step in trace.steps}
    assert cited < codes  # no step is about the tone: the report shows a clause that nobody cites


def test_only_the_violation_is_negative() -> None:
    for trace in MADE:
        ratings = [step.rating for step in trace.steps]
        assert ratings.count(-1) == (not trace.is_right)
        assert (trace.first_error is None) == trace.is_right
        assert [step.kind for step in trace.steps].count("answer") == 1
