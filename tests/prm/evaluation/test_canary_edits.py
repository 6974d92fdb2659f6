"""Edits by rule: what each changes, what it leaves alone, and that it can be repeated."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prm.evaluation.canary_edits import (
    SHOULD_FALL,
    CanaryEdit,
    EditedSolution,
    Solution,
    SolutionStep,
    edit_solution,
    make_edits,
)

SEED = "seed"
_SENTENCES = st.sampled_from(
    [
        "We add: 12 + 30 = 42.",
        "Then $42 \\cdot 2 = 84$.",
        "So the answer is 84!",
        "Let x be the number of apples.",
        "It is \\frac{10}{4} = 2.5 meters.",
        "",
        "Äpfel kosten 17 Euro.",
    ]
)
_TEXTS = st.lists(_SENTENCES, min_size=1, max_size=3).map(" ".join) | st.text(max_size=40)
_STEPS = st.lists(st.builds(SolutionStep, st.just("step"), st.booleans(), _TEXTS), min_size=1, max_size=6)


@st.composite
def solutions(draw: st.DrawFn, key: str = "a") -> Solution:
    steps = tuple(draw(_STEPS))
    rateable = [position for position, step in enumerate(steps) if step.is_rateable]
    first_error = draw(st.sampled_from([None, *rateable]))
    return Solution(key, key, "source", f"Problem {key} about 12 apples?", steps, first_error)


def edit(kind: CanaryEdit, solution: Solution) -> EditedSolution | None:
    other = Solution("b", "b", "source", "Another problem?", (), None)
    return edit_solution(kind, solution, [solution, other], seed=SEED)


def list_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


@given(solutions(), st.sampled_from(list(CanaryEdit)))
@settings(max_examples=60, deadline=None)
def test_edit_is_repeatable_and_local(solution: Solution, kind: CanaryEdit) -> None:
    edited = edit(kind, solution)
    assert edit(kind, solution) == edited
    if edited is None:
        return
    assert all(0 <= place < len(edited.solution.steps) for place in edited.places)
    assert all(solution.steps[place].is_rateable for place in edited.original_places)
    assert all(edited.solution.steps[place].is_rateable for place in edited.places)
    first = min(edited.original_places[0], edited.places[0])
    kept = first if kind != CanaryEdit.DROP_STEP else 0
    assert edited.solution.steps[:kept] == solution.steps[:kept]
    is_swapped = kind == CanaryEdit.SWAP_PROBLEM
    assert (edited.solution.problem != solution.problem) == is_swapped
    assert (edited.solution.steps == solution.steps) <= is_swapped or kind == CanaryEdit.REFORMAT
    if kind in SHOULD_FALL:  # only what is known to be correct is made wrong
        assert set(edited.original_places) <= set(solution.list_correct())
    elif solution.first_error is not None:
        assert edited.original_places == (solution.first_error,)


@given(solutions())
@settings(max_examples=40, deadline=None)
def test_words_survive_edits_of_the_form(solution: Solution) -> None:
    for kind in (CanaryEdit.SPLIT_STEP, CanaryEdit.REFORMAT, CanaryEdit.INFLATE, CanaryEdit.CONFIDENCE):
        edited = edit(kind, solution)
        if edited is None:
            continue
        (place,) = edited.original_places
        before = solution.steps[place].text
        after = "\n".join(edited.solution.steps[each].text for each in edited.places)
        if kind in (CanaryEdit.INFLATE, CanaryEdit.CONFIDENCE):
            assert before in after
            assert not re.search(r"\d", after.replace(before, "", 1))
        else:
            assert list_words(after) == list_words(before)
            assert len(edited.places) == (2 if kind == CanaryEdit.SPLIT_STEP else 1)


@given(solutions())
@settings(max_examples=40, deadline=None)
def test_one_number_is_corrupted(solution: Solution) -> None:
    edited = edit(CanaryEdit.CORRUPT_NUMBER, solution)
    if edited is None:
        return
    (place,) = edited.places
    before, after = solution.steps[place].text, edited.solution.steps[place].text
    numbers = [re.findall(r"\d+(?:\.\d+)?", text) for text in (before, after)]
    assert sum(one != other for one, other in zip(*numbers, strict=True)) == 1
    assert re.sub(r"[\d.]+", "#", before) == re.sub(r"[\d.]+", "#", after)
    assert edited.solution.first_error == place


@pytest.mark.parametrize(
    ("text", "is_result"),
    [
        ("12 + 30 = 42.", True),
        ("$6 \\times 7 = 42$", True),
        ("= \\frac{84}{2} = 42", True),
        ("x = 42.", False),  # a definition may be any number
        ("12 + 30 = 42 + 0", False),
        ("2 + 3 = 5x", False),
        ("They have 42 apples.", False),
    ],
)
def test_only_results_of_calculations_are_corrupted(text: str, is_result: bool) -> None:
    solution = Solution("a", "a", "source", "?", (SolutionStep("step", True, text),), None)
    assert (edit(CanaryEdit.CORRUPT_NUMBER, solution) is not None) == is_result


def test_step_is_dropped_if_a_later_one_needs_its_number() -> None:
    texts = ["There are 15 boys.", "So 15 + 20 = 35 pupils.", "Nothing new.", "Half of 35 is 17."]
    steps = tuple(SolutionStep("step", True, text) for text in texts)
    edited = edit(CanaryEdit.DROP_STEP, Solution("a", "a", "source", "15 boys and 20 girls?", steps, None))
    assert edited is not None
    assert [step.text for step in edited.solution.steps] == [texts[0], *texts[2:]]
    assert (edited.original_places, edited.places) == ((3,), (2,))


def test_formulas_are_never_split() -> None:
    step = SolutionStep("step", True, "We get $a. B = 2$ from it. Then we stop here.")
    edited = edit(CanaryEdit.SPLIT_STEP, Solution("a", "a", "source", "?", (step,), 0))
    assert edited is not None
    assert [step.text for step in edited.solution.steps] == ["We get $a. B = 2$ from it.", "Then we stop here."]
    assert edited.places == (0, 1)


def test_edits_are_spread_over_kinds_and_problems() -> None:
    rows = []
    for number in range(30):
        texts = [
            f"First 1{number} + 20 = 3{number}.",
            f"Then 3{number} + 10 = 4{number}. That is the sum.",
            f"So 4{number}.",
        ]
        steps = tuple(SolutionStep("step", True, text) for text in texts)
        rows.append(
            Solution(f"{number}", f"p{number}", "source", f"Sum {number}?", steps, 1 if number % 3 == 0 else None)
        )
    made = make_edits(rows, n=70, seed=SEED)
    counts = [sum(each.edit == kind for each in made) for kind in CanaryEdit]
    assert counts == [10] * 7
    assert len({(each.edit, each.solution.problem_key) for each in made}) == 70
    assert make_edits(list(reversed(rows)), n=70, seed=SEED) == made
    assert make_edits(rows, n=70, seed="other") != made
