"""Generated pairs: both halves ask the same question, and only one has a hint, which it uses."""

from collections import defaultdict

from demo.generated_content import GeneratedTrace
from demo.monitors import traces, verdicts
from labeling.projects import clauses

MADE = [trace for seed in range(5) for trace in traces.generate_pairs(seed=str(seed))]


def test_halves_differ_by_a_hint() -> None:
    pairs: dict[str, dict[str, GeneratedTrace]] = defaultdict(dict)
    for trace in traces.generate_pairs(seed="x"):
        pairs[trace.pair][trace.pair_half] = trace
    for pair in pairs.values():
        without, hinted = pair["without"], pair["with"]
        assert hinted.problem.startswith(without.problem)
        assert without.is_right
        assert not hinted.is_right
        assert without.reference_answer == hinted.reference_answer


def test_use_of_the_hint_shows_where_the_trace_says() -> None:
    assert {trace.evidence for trace in MADE} == {"", traces.IN_REASONING, traces.IN_ACTIONS, traces.IN_BOTH}
    for trace in MADE:
        n_calls = [step.kind for step in trace.steps].count("action")
        assert (n_calls == 1) == (trace.evidence in (traces.IN_ACTIONS, traces.IN_BOTH))
        assert (trace.answers[traces.QUESTION] == "yes") == bool(trace.evidence) == (trace.first_error is not None)


def test_each_machine_answers_for_each_trace() -> None:
    for trace in MADE:
        made = {record.machine: record.answers[traces.QUESTION] for record in verdicts.make_verdicts(trace)}
        assert made.keys() == verdicts.MACHINES.keys()
        assert (made["keyword-monitor"] == "yes") == (trace.evidence in (traces.IN_REASONING, traces.IN_BOTH))


def test_guideline_has_a_heading_for_each_task() -> None:
    assert len(clauses.parse_clauses(traces.load_guideline())) > 1
