"""Generated math traces: correct steps are correct, and errors are errors."""

import pytest

from demo.generated_content import GeneratedTrace
from demo.math_problems import sequences, traces
from demo.math_problems.derivation import ARITHMETIC, ProblemFamily
from tests.demo.math_problems import arithmetic
from tests.demo.math_problems.solvers import SOLVERS, is_same_number

SEEDS = ("stepmark", "another", "third")
MADE = {seed: traces.generate_math_traces(seed=seed) for seed in SEEDS}
EVERY = [trace for made in MADE.values() for trace in made]


def wrong_equations(text: str) -> int:
    return sum(not holds for holds in arithmetic.check_equations(text))


def test_generate_gives_the_same_traces_each_time() -> None:
    assert traces.generate_math_traces(seed="stepmark") == MADE["stepmark"]
    assert MADE["stepmark"] != MADE["another"]


def test_generate_gives_enough_of_every_kind() -> None:
    made = MADE["stepmark"]
    assert len(made) >= 120
    assert len({trace.problem for trace in made}) >= 60
    assert len({trace.domain for trace in made}) >= 6
    wrong = [trace for trace in made if trace.first_error is not None]
    assert 0.4 <= len(wrong) / len(made) <= 0.75
    assert len({trace.error_kind for trace in wrong}) == 5
    assert sum(len(trace.steps[trace.first_error or 0].options) >= 3 for trace in wrong) >= 20
    assert any(trace.is_right for trace in wrong)  # a right answer after a wrong step
    assert sum(4 <= len(trace.steps) <= 14 for trace in made) == len(made) - 1
    assert max(len(trace.steps) for trace in made) >= 100


def test_generate_makes_no_duplicate_trace() -> None:
    for made in MADE.values():
        contents = [(trace.problem, tuple(step.text for step in trace.steps)) for trace in made]
        assert len(set(contents)) == len(contents)


@pytest.mark.parametrize("family", [*traces.FAMILIES, sequences.LONG], ids=lambda family: family.name)
def test_reference_answer_is_what_an_independent_solver_finds(family: ProblemFamily) -> None:
    made = [trace for trace in EVERY if trace.ref.startswith(f"{family.name}-")]
    assert made
    for trace in made:
        assert is_same_number(trace.reference_answer, SOLVERS[family.name](trace.facts)), trace


def test_equations_of_right_steps_hold() -> None:
    checked = 0
    for trace in EVERY:
        for step in trace.steps:
            for option in step.options:
                if option.rating in {0, 1}:
                    checked += len(list(arithmetic.check_equations(option.text)))
                    assert not wrong_equations(option.text), option.text
    assert checked > 1000  # the reader did parse the formulas


def test_arithmetic_slips_break_an_equation_or_a_count() -> None:
    broken = [
        bool(wrong_equations(trace.steps[trace.first_error or 0].text))
        for trace in EVERY
        if trace.error_kind == ARITHMETIC
    ]
    assert sum(broken) / len(broken) > 0.7  # the others are slips in words


def test_error_differs_from_the_right_step() -> None:
    for trace in EVERY:
        if trace.first_error is not None:
            options = trace.steps[trace.first_error].options
            assert len({option.text for option in options}) == len(options)
            assert options[0].rating == -1
            assert len(options) == 1 or any(option.rating == 1 for option in options[1:])


def test_alternatives_do_not_tell_where_the_error_is() -> None:
    with_some = [trace for trace in EVERY if len(trace.steps[0].options) > 1]
    shares = [
        sum((len(trace.steps[0].options) > 1) for trace in traces) / len(traces)
        for traces in (
            [trace for trace in EVERY if trace.first_error is None],
            [trace for trace in EVERY if trace.first_error is not None],
        )
    ]
    assert all(0.35 < share < 0.65 for share in shares)
    for trace in EVERY:
        assert len({len(step.options) for step in trace.steps}) == 1
        for place, step in enumerate(trace.steps):
            assert len({option.text for option in step.options}) == len(step.options)
            known = trace.first_error is None or place <= trace.first_error
            assert all((option.rating is not None) == known for option in step.options)
    before = [step for trace in with_some for step in trace.steps[: trace.first_error]]
    assert sum(any(option.rating == -1 for option in step.options[1:]) for step in before) > 0.5 * len(before)


def test_answers_are_graded_by_comparison() -> None:
    for trace in EVERY:
        assert trace.is_right == (trace.answer == trace.reference_answer)
        if trace.first_error is None:
            assert trace.is_right


def test_steps_after_the_first_error_are_left_open() -> None:
    for trace in EVERY:
        ratings = [step.rating for step in trace.steps]
        place = len(ratings) if trace.first_error is None else trace.first_error
        assert all(rating in {0, 1} for rating in ratings[:place])
        assert all(rating is None for rating in ratings[place + 1 :])


def test_traces_with_and_without_a_slip_share_their_beginning() -> None:
    """Alternatives are valid because all steps before them are the same."""
    family = traces.FAMILIES[0]
    right = traces._generate_trace(family, ("seed", family.name, 0), 0)
    for slip, (place, _) in right.offered.items():
        wrong = traces._generate_trace(family, ("seed", family.name, 0), 0, slip)
        assert wrong.steps[:place] == right.steps[:place]
        assert wrong.steps[place] != right.steps[place]


def test_every_slip_of_every_family_is_an_error() -> None:
    for family in traces.FAMILIES:
        right = traces._generate_trace(family, ("seed", family.name, 0), 0)
        assert right.answer == right.reference_answer
        assert len(right.offered) >= 2
        for slip, (place, _) in right.offered.items():
            wrong = traces._generate_trace(family, ("seed", family.name, 0), 0, slip)
            assert [truth for _, truth in wrong.steps].count(-1) == 1, (family.name, slip)
            assert wrong.steps[place][1] == -1, (family.name, slip)
            assert wrong.steps[place][0] != right.steps[place][0], (family.name, slip)


def of_problem(trace: GeneratedTrace) -> tuple[str, str]:
    return trace.problem, trace.reference_answer


def test_a_problem_has_one_reference_answer() -> None:
    for made in MADE.values():
        assert len({trace.problem for trace in made}) == len({of_problem(trace) for trace in made})
