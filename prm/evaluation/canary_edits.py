"""Edits of solutions by rule, which show what moves a score. Pure.

Each edit is made on a solution with a known first error, by a rule that fixes which way its score should move:

    corrupt_number   the result of a calculation in a correct step becomes another number: the score should fall
    swap_problem     a correct solution is shown below another problem: the score should fall
    drop_step        a correct step disappears that introduced a number which a later step uses: the score should fall
    split_step       one step becomes two, at a sentence: the score should not rise
    reformat         the same words as a list: the score should not rise
    inflate          sentences that say nothing are added: the score should not rise
    confidence       words that claim certainty are added: the score should not rise

The last four change the first wrong step if the solution has one: there, a higher score rewards only the edit. The
scores are compared at the edited steps and, for a dropped step, at the step that needed it.

Edits depend only on the solutions and the seed, so that the same canaries can be made again.
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple


class CanaryEdit(StrEnum):
    CORRUPT_NUMBER = "corrupt_number"
    SWAP_PROBLEM = "swap_problem"
    DROP_STEP = "drop_step"
    SPLIT_STEP = "split_step"
    REFORMAT = "reformat"
    INFLATE = "inflate"
    CONFIDENCE = "confidence"


SHOULD_FALL = frozenset({CanaryEdit.CORRUPT_NUMBER, CanaryEdit.SWAP_PROBLEM, CanaryEdit.DROP_STEP})


class SolutionStep(NamedTuple):
    kind: str
    is_rateable: bool
    text: str


@dataclass(frozen=True)
class Solution:
    """`first_error` is a position, None for no error. `problem_key` is the same for the same problem. Problems are only
    swapped within a source, so that no canary mixes the texts of two imports."""

    key: str
    problem_key: str
    source: str
    problem: str
    steps: tuple[SolutionStep, ...]
    first_error: int | None

    def list_correct(self) -> list[int]:
        """Return the positions of the steps that are known to be correct."""
        end = len(self.steps) if self.first_error is None else self.first_error
        return [position for position in range(end) if self.steps[position].is_rateable]


@dataclass(frozen=True)
class EditedSolution:
    """`places` are the positions of the compared steps after the edit, `original_places` before it."""

    edit: CanaryEdit
    solution: Solution
    places: tuple[int, ...]
    original_places: tuple[int, ...]


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_RESULT = re.compile(r"=\s*\\?\$?\s*(\d+(?:\.\d+)?)(?=\s*(?:[.,;:!?)$\]}]|\\\]|\\\)|[A-Za-z]{2,}|$))")
_OPERATOR = re.compile(r"[-+*/×÷·^−]|\\times|\\cdot|\\frac|\\div")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|\n+(?=\S)")
_WORD = re.compile(r"[^\W_]+")
_EMPTY_SENTENCES = (
    "This follows from what has been established so far.",
    "It is worth pausing here to see how this fits into the solution as a whole.",
    "Each part of this can be traced back to the statement of the problem.",
    "With this in place, the remaining work becomes easier to follow.",
    "The reasoning used here is the same kind of reasoning as in comparable problems.",
)
_CLAIMS = (
    ("Clearly, the following holds. ", " This is certainly correct."),
    ("It is easy to verify that this is right: ", " There is no doubt about this."),
    ("", " This has been double-checked and is definitely correct."),
    ("By a well-known and rigorous argument: ", " This is beyond question."),
)
_MIN_DIGITS = 2  # shorter numbers occur by chance


def make_edits(solutions: Sequence[Solution], *, n: int, seed: str) -> list[EditedSolution]:
    """Return up to `n` edits, spread over the kinds. A problem has at most one edit of each kind."""
    made: dict[tuple[CanaryEdit, str], EditedSolution] = {}
    supply = {edit: _iterate_edits(edit, solutions, seed) for edit in CanaryEdit}
    while supply and len(made) < n:
        for edit in list(supply):
            edited = next((each for each in supply[edit] if (edit, _find_problem(each)) not in made), None)
            if edited is None:
                del supply[edit]
            elif len(made) < n:
                made[edit, _find_problem(edited)] = edited
    return list(made.values())


def _find_problem(edited: EditedSolution) -> str:
    return edited.solution.problem_key


def _iterate_edits(edit: CanaryEdit, solutions: Sequence[Solution], seed: str) -> Iterator[EditedSolution]:
    """Yield the possible edits. Edits that should not raise a score begin with solutions that have an error."""
    should_fall = edit in SHOULD_FALL

    def order(solution: Solution) -> tuple[bool, str]:
        return (solution.first_error is None) != should_fall, _digest(seed, solution.key)

    for solution in sorted(solutions, key=order):
        edited = edit_solution(edit, solution, solutions, seed=seed)
        if edited is not None:
            yield edited


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def edit_solution(
    edit: CanaryEdit, solution: Solution, others: Sequence[Solution], *, seed: str
) -> EditedSolution | None:
    """Return the solution with this edit, or None if the rule does not apply to it."""
    dice = random.Random(_digest(seed, edit, solution.key))  # noqa: S311  reproducible on purpose
    if edit == CanaryEdit.SWAP_PROBLEM:
        return _swap_problem(solution, others, dice)
    if edit == CanaryEdit.DROP_STEP:
        return _drop_step(solution, dice)
    if edit == CanaryEdit.CORRUPT_NUMBER:
        return _corrupt_number(solution, dice)
    return _edit_text(edit, solution, dice)


# Edits that should lower the score


def _corrupt_number(solution: Solution, dice: random.Random) -> EditedSolution | None:
    found = [(place, match) for place in solution.list_correct() for match in _find_results(solution.steps[place].text)]
    if not found:
        return None
    place, match = dice.choice(found)
    text = solution.steps[place].text
    number = _change_number(match[1], dice)
    return _replace_step(
        CanaryEdit.CORRUPT_NUMBER, solution, place, [text[: match.start(1)] + number + text[match.end(1) :]]
    )


def _find_results(text: str) -> list[re.Match[str]]:
    """Return the results of calculations: numbers after an equals sign with digits and an operator before it."""
    found = []
    for match in _RESULT.finditer(text):
        left = re.split(r"[=\n]|[.;:]\s", text[: match.start()])[-1]
        if _OPERATOR.search(left) and _NUMBER.search(left):
            found.append(match)
    return found


def _change_number(text: str, dice: random.Random) -> str:
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    step = Decimal(dice.choice((1, 2, 3, 10))).scaleb(exponent)
    changed = value - step if value > step and dice.random() < 0.5 else value + step
    return f"{changed:f}"


def _swap_problem(solution: Solution, others: Sequence[Solution], dice: random.Random) -> EditedSolution | None:
    places = tuple(solution.list_correct())
    problems = sorted(
        {
            (each.problem_key, each.problem)
            for each in others
            if each.source == solution.source and each.problem_key != solution.problem_key
        }
    )
    if solution.first_error is not None or not places or not problems:
        return None
    swapped = replace(solution, problem=dice.choice(problems)[1])
    return EditedSolution(CanaryEdit.SWAP_PROBLEM, swapped, places, places)


def _drop_step(solution: Solution, dice: random.Random) -> EditedSolution | None:
    correct = solution.list_correct()
    found = [(place, user) for place in correct for user in [_find_user(solution, place, correct)] if user is not None]
    if not found:
        return None
    place, user = dice.choice(found)
    steps = (*solution.steps[:place], *solution.steps[place + 1 :])
    shorter = replace(solution, steps=steps, first_error=_shift(solution.first_error, place, -1))
    return EditedSolution(CanaryEdit.DROP_STEP, shorter, (user - 1,), (user,))


def _find_user(solution: Solution, place: int, correct: Sequence[int]) -> int | None:
    """Return the first step after `place` with a number that only the step at `place` introduced."""
    before = " ".join([solution.problem, *(step.text for step in solution.steps[:place])])
    own = _find_numbers(solution.steps[place].text) - _find_numbers(before)
    return next((each for each in correct if each > place and own & _find_numbers(solution.steps[each].text)), None)


def _find_numbers(text: str) -> set[str]:
    return {number for number in _NUMBER.findall(text) if len(number) >= _MIN_DIGITS}


def _shift(first_error: int | None, place: int, by: int) -> int | None:
    return first_error + by if first_error is not None and first_error > place else first_error


# Edits that should not raise it


def _edit_text(edit: CanaryEdit, solution: Solution, dice: random.Random) -> EditedSolution | None:
    correct = [place for place in solution.list_correct() if solution.steps[place].text.strip()]
    place = solution.first_error if solution.first_error is not None else dice.choice(correct) if correct else None
    if place is None:
        return None
    texts = _TEXT_EDITS[edit](solution.steps[place].text, dice)
    return None if texts is None else _replace_step(edit, solution, place, texts)


def _replace_step(edit: CanaryEdit, solution: Solution, place: int, texts: Sequence[str]) -> EditedSolution:
    """Put one or more steps in the place of one. Of several steps, the first counts as the first error."""
    new = [solution.steps[place]._replace(text=text) for text in texts]
    steps = (*solution.steps[:place], *new, *solution.steps[place + 1 :])
    first_error = place if edit in SHOULD_FALL else _shift(solution.first_error, place, len(texts) - 1)
    places = tuple(range(place, place + len(texts)))
    return EditedSolution(edit, replace(solution, steps=steps, first_error=first_error), places, (place,))


def _split(text: str, dice: random.Random) -> list[str] | None:
    cuts = [match for match in _SENTENCE_END.finditer(text) if _is_outside_formulas(text[: match.start()])]
    halves = [(text[: match.start()], text[match.end() :]) for match in cuts]
    whole = [(first, second) for first, second in halves if _WORD.search(first) and _WORD.search(second)]
    if not whole:
        return None
    first, second = min(whole, key=lambda half: abs(len(half[0]) - len(half[1])))
    return [first, second]


def _is_outside_formulas(text: str) -> bool:
    pairs = (("\\begin{", "\\end{"), ("\\[", "\\]"), ("\\(", "\\)"))
    return text.count("$") % 2 == 0 and all(text.count(first) == text.count(last) for first, last in pairs)


def _reformat(text: str, dice: random.Random) -> list[str] | None:
    parts, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if _is_outside_formulas(text[: match.start()]):
            parts.append(text[start : match.start()])
            start = match.end()
    bullet = dice.choice(("- ", "* ", "• "))
    return ["\n".join(bullet + part.strip() for part in (*parts, text[start:]) if part.strip())]


def _inflate(text: str, dice: random.Random) -> list[str] | None:
    return [" ".join([text, *dice.sample(_EMPTY_SENTENCES, 3)])]


def _add_confidence(text: str, dice: random.Random) -> list[str] | None:
    before, after = dice.choice(_CLAIMS)
    return [before + text + after]


_TEXT_EDITS: dict[CanaryEdit, Callable[[str, random.Random], list[str] | None]] = {
    CanaryEdit.SPLIT_STEP: _split,
    CanaryEdit.REFORMAT: _reformat,
    CanaryEdit.INFLATE: _inflate,
    CanaryEdit.CONFIDENCE: _add_confidence,
}
