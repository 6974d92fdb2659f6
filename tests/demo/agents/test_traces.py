"""Generated agent traces: observations are correct, and slips are rated as errors."""

import json
import re
from decimal import Decimal
from typing import Any

from demo.agents import bugfix, logs, traces
from demo.agents.script import AgentScript
from demo.generated_content import GeneratedStep, GeneratedTrace, seeded_random

SEEDS = [str(number) for number in range(20)]
EVERY = [trace for seed in SEEDS for trace in traces.generate_agent_traces(seed=seed)]


def traces_of(scenario: str) -> list[GeneratedTrace]:
    return [trace for trace in EVERY if trace.ref.startswith(f"{scenario}-")]


def observations(trace: GeneratedTrace, tool: str) -> list[str]:
    return [step.text for step in trace.steps if step.kind == "observation" and step.options[0].parts[0].name == tool]


def arguments(step: GeneratedStep) -> Any:
    return json.loads(step.options[0].parts[0].text)


def test_generate_gives_the_same_traces_each_time() -> None:
    assert traces.generate_agent_traces(seed="x") == traces.generate_agent_traces(seed="x")


def test_generate_makes_every_scenario_with_and_without_slips() -> None:
    made = traces.generate_agent_traces(seed="stepmark")
    assert len(made) == 12
    assert sum(trace.first_error is None for trace in made) == 4
    assert max(len(step.text) for trace in made for step in trace.steps) > 8000  # long enough to be folded


def test_only_what_the_agent_does_is_rateable() -> None:
    for trace in EVERY:
        for step in trace.steps:
            assert step.is_rateable == (step.kind in {"reasoning", "action", "answer"})
            assert step.is_rateable or step.rating is None


def test_every_call_is_json_and_has_its_result() -> None:
    for trace in EVERY:
        called = [part.call_ref for step in trace.steps for part in step.options[0].parts if part.kind == "call"]
        answered = [part.call_ref for step in trace.steps for part in step.options[0].parts if part.kind == "result"]
        assert called == answered
        assert all(isinstance(arguments(step), dict) for step in trace.steps if step.kind == "action")


def test_right_runs_end_right_and_slips_are_errors() -> None:
    for trace in EVERY:
        if trace.first_error is None:
            assert trace.is_right
        else:
            assert trace.steps[trace.first_error].is_rateable
            assert trace.error_kind


def test_every_slip_marks_one_step() -> None:
    for name, run_scenario, slips in traces.SCENARIOS:
        for slip in slips:
            made = [run_scenario(AgentScript(numbers=seeded_random(seed, name), slip=slip), name) for seed in SEEDS]
            assert all(trace.first_error is not None for trace in made), (name, slip)


def test_sums_of_orders_are_right() -> None:
    for trace in traces_of("orders"):
        listed = json.loads(observations(trace, "list_orders")[0])
        expression = next(arguments(step)["expression"] for step in trace.steps if step.text.startswith("calculate("))
        amounts = [Decimal(each) for each in expression.split(" + ")]
        assert sum(amounts) == Decimal(observations(trace, "calculate")[0])
        if trace.first_error is None:
            assert sum(amounts) == sum(Decimal(each["amount"]) for each in listed if each["state"] == "paid")


def test_failure_counts_match_the_log() -> None:
    for trace in traces_of("logs"):
        (log,), (counted,) = observations(trace, "read_file"), observations(trace, "count")
        query = next(arguments(step) for step in trace.steps if step.text.startswith("count("))
        for host in logs.HOSTS:
            lines = [line for line in log.splitlines() if re.search(f" {host} 5[0-9][0-9] ", line)]
            inside = [line for line in lines if query["from"] <= line[11:16] < query["to"]]
            assert f"{host} {len(inside)}" in counted.splitlines()


def test_booked_train_respects_every_wish_without_a_slip() -> None:
    for trace in traces_of("trains"):
        listed = json.loads(observations(trace, "search")[0])
        limit = re.search(r"before (\d\d:00)", trace.problem)
        assert limit
        fitting = [each for each in listed if each["arrives"] < limit[1] and each["changes"] <= 1]
        best = min(fitting, key=lambda each: each["price"])
        assert trace.reference_answer == best["connection"]
        assert len({each["price"] for each in fitting}) == len(fitting)
        assert all(each["departs"] < each["arrives"] for each in listed)


def run(program: str, call: str) -> str:
    names: dict[str, Any] = {}
    exec(program, names)
    return repr(eval(call, names))


def test_fixed_programs_work_and_broken_ones_fail_as_described() -> None:
    for bug in bugfix.BUGS:
        assert run(bug.broken, bug.call) == bug.got != bug.expected
        assert run(bug.fixed, bug.call) == bug.expected
        assert run(bug.beside, bug.call) == bug.got_beside != bug.expected
        assert f"== {bug.expected}" in bug.test
        assert f"== {bug.got}" in bug.bent_test
