"""Chooses problems, tells each of them twice, and puts alternatives beside some of the errors. Pure."""

import itertools
import re
from collections.abc import Iterator

from demo import told
from demo.maths import algebra, geometry, number_theory, probability, sequences, word_problems
from demo.maths.path import Family, Path

FAMILIES: tuple[Family, ...] = (
    *algebra.FAMILIES,
    *geometry.FAMILIES,
    *number_theory.FAMILIES,
    *probability.FAMILIES,
    *sequences.FAMILIES,
    *word_problems.FAMILIES,
)
PROBLEMS_A_FAMILY = 2
ALTERNATIVES_SHARE = 0.5  # of the traces with an error: how many have alternatives to it
MOST_ALTERNATIVES = 4
RESULT = re.compile(r"= (-?\d+)\$[^$\d]*$")
FILLERS = (
    "Let me read the problem once more before I go on.",
    "I will continue from here step by step.",
    "It is worth keeping in mind what the problem asks for.",
    "So far everything fits together.",
)


def generate(*, seed: str) -> list[told.ToldTrace]:
    """The traces of every family, in an order that mixes them."""
    made = list(itertools.chain.from_iterable(_of_family(family, seed) for family in FAMILIES))
    made.append(_told(sequences.LONG, (seed, "long"), slip="one step"))
    told.dice(seed, "order").shuffle(made)
    return made


def _of_family(family: Family, seed: str) -> Iterator[told.ToldTrace]:
    seen: set[str] = set()
    numbers = itertools.count()
    while len(seen) < PROBLEMS_A_FAMILY:
        words = (seed, family.name, next(numbers))
        problem = _tell(family, words, 0).problem
        if problem not in seen:
            seen.add(problem)
            yield from _pair(family, words)


def _pair(family: Family, words: tuple[object, ...]) -> Iterator[told.ToldTrace]:
    """Two traces of one problem: both right, one right, or each with a slip of its own."""
    chance = told.dice(*words, "plan")
    slips = sorted(_tell(family, words, 0).offered)
    one, other = chance.sample(slips, 2)
    plan = chance.choices([("", ""), ("", one), (one, other)], weights=[20, 50, 30])[0]
    first, second = _told(family, words, plan[0], 0), _told(family, words, plan[1], 1)
    if first.steps == second.steps:  # told in the same words: let the second slip
        second = _told(family, words, one, 1)
    yield first
    yield second


def _tell(family: Family, words: tuple[object, ...], telling: int, slip: str = "") -> Path:
    path = Path(numbers=told.dice(*words), wording=told.dice(*words, "wording", telling), slip=slip)
    family.derive(path)
    return path


def _told(family: Family, words: tuple[object, ...], slip: str = "", telling: int = 0) -> told.ToldTrace:
    path = _tell(family, words, telling, slip)
    steps = [told.ToldStep((told.ToldOption(text, truth),)) for text, truth in path.steps]
    kind = ""
    if slip:
        place, kind = path.offered[slip]
        steps[place] = told.ToldStep((*steps[place].options, *_alternatives(family, words, telling, path)))
    return told.ToldTrace(
        problem=path.problem,
        domain=family.domain,
        reference_answer=path.reference_answer,
        steps=tuple(steps),
        answer=path.answer,
        is_right=path.answer == path.reference_answer,
        error_kind=kind,
        ref=f"{family.name}-{words[-1]}",
        facts=path.facts,
    )


def _alternatives(family: Family, words: tuple[object, ...], telling: int, path: Path) -> Iterator[told.ToldOption]:
    """What else could stand at the step of the slip: the right step, other slips, a step that adds nothing."""
    chance = told.dice(*words, telling, path.slip, "alternatives")
    if chance.random() > ALTERNATIVES_SHARE:
        return
    place = path.offered[path.slip][0]
    right = _tell(family, words, telling)
    others = [
        _tell(family, words, telling, slip)
        for slip, (at, _) in right.offered.items()
        if at == place and slip != path.slip
    ]
    options = [told.ToldOption(*right.steps[place]), told.ToldOption(chance.choice(FILLERS), 0)]
    options += [told.ToldOption(*other.steps[place]) for other in others]
    options += _miscounted(right.steps[place][0], besides=path.steps[place][0], by=chance.choice([-2, -1, 1, 2, 10]))
    options = options[:MOST_ALTERNATIVES]
    chance.shuffle(options)
    yield from options


def _miscounted(text: str, *, besides: str, by: int) -> Iterator[told.ToldOption]:
    """The same step with another number at the end of its equation: wrong, since the right one stood there."""
    match = RESULT.search(text)
    if match:
        wrong = f"{text[: match.start(1)]}{int(match[1]) + by}{text[match.end(1) :]}"
        if wrong != besides:
            yield told.ToldOption(wrong, -1)
