"""Generate two traces for each of several problems, with alternatives to some of the errors. Pure."""

import itertools
import re
from collections.abc import Iterator

from demo import generated_content
from demo.math_problems import algebra, geometry, number_theory, probability, sequences, word_problems
from demo.math_problems.derivation import Derivation, ProblemFamily

FAMILIES: tuple[ProblemFamily, ...] = (
    *algebra.FAMILIES,
    *geometry.FAMILIES,
    *number_theory.FAMILIES,
    *probability.FAMILIES,
    *sequences.FAMILIES,
    *word_problems.FAMILIES,
)
PROBLEMS_PER_FAMILY = 2
ALTERNATIVES_SHARE = 0.5  # of the traces with an error
MAX_ALTERNATIVES = 4
RESULT = re.compile(r"= (-?\d+)\$[^$\d]*$")
FILLERS = (
    "Let me read the problem once more before I continue.",
    "I will continue from here step by step.",
    "It is worth keeping in mind what the problem asks for.",
    "So far everything fits together.",
)


def generate_math_traces(*, seed: str) -> list[generated_content.GeneratedTrace]:
    """Generate the traces of all families, shuffled."""
    made = list(itertools.chain.from_iterable(_generate_family(family, seed) for family in FAMILIES))
    made.append(_derive(sequences.LONG, (seed, "long"), slip="one step"))
    generated_content.seeded_random(seed, "order").shuffle(made)
    return made


def _generate_family(family: ProblemFamily, seed: str) -> Iterator[generated_content.GeneratedTrace]:
    seen: set[str] = set()
    numbers = itertools.count()
    while len(seen) < PROBLEMS_PER_FAMILY:
        words = (seed, family.name, next(numbers))
        problem = _generate_trace(family, words, 0).problem
        if problem not in seen:
            seen.add(problem)
            yield from _generate_pair(family, words)


def _generate_pair(family: ProblemFamily, words: tuple[object, ...]) -> Iterator[generated_content.GeneratedTrace]:
    """Yield two traces of one problem: both right, one right, or each with its own slip."""
    chance = generated_content.seeded_random(*words, "plan")
    slips = sorted(_generate_trace(family, words, 0).offered)
    one, other = chance.sample(slips, 2)
    plan = chance.choices([("", ""), ("", one), (one, other)], weights=[20, 50, 30])[0]
    first, second = _derive(family, words, plan[0], 0), _derive(family, words, plan[1], 1)
    if first.steps == second.steps:  # same wording: make a slip in the second
        second = _derive(family, words, one, 1)
    yield first
    yield second


def _generate_trace(family: ProblemFamily, words: tuple[object, ...], telling: int, slip: str = "") -> Derivation:
    path = Derivation(
        numbers=generated_content.seeded_random(*words),
        wording=generated_content.seeded_random(*words, "wording", telling),
        slip=slip,
    )
    family.derive(path)
    return path


def _derive(
    family: ProblemFamily, words: tuple[object, ...], slip: str = "", telling: int = 0
) -> generated_content.GeneratedTrace:
    path = _generate_trace(family, words, telling, slip)
    steps = [
        generated_content.GeneratedStep((generated_content.GeneratedOption(text, truth),)) for text, truth in path.steps
    ]
    kind = ""
    if slip:
        place, kind = path.offered[slip]
        steps[place] = generated_content.GeneratedStep(
            (*steps[place].options, *_alternatives(family, words, telling, path))
        )
    return generated_content.GeneratedTrace(
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


def _alternatives(
    family: ProblemFamily, words: tuple[object, ...], telling: int, path: Derivation
) -> Iterator[generated_content.GeneratedOption]:
    """Yield alternatives to the wrong step: the right step, a step without progress, other slips."""
    chance = generated_content.seeded_random(*words, telling, path.slip, "alternatives")
    if chance.random() > ALTERNATIVES_SHARE:
        return
    place = path.offered[path.slip][0]
    right = _generate_trace(family, words, telling)
    others = [
        _generate_trace(family, words, telling, slip)
        for slip, (at, _) in right.offered.items()
        if at == place and slip != path.slip
    ]
    options = [
        generated_content.GeneratedOption(*right.steps[place]),
        generated_content.GeneratedOption(chance.choice(FILLERS), 0),
    ]
    options += [generated_content.GeneratedOption(*other.steps[place]) for other in others]
    options += _miscounted(right.steps[place][0], besides=path.steps[place][0], by=chance.choice([-2, -1, 1, 2, 10]))
    options = options[:MAX_ALTERNATIVES]
    chance.shuffle(options)
    yield from options


def _miscounted(text: str, *, besides: str, by: int) -> Iterator[generated_content.GeneratedOption]:
    """Yield the right step with another number at the end of its equation, which makes it wrong."""
    match = RESULT.search(text)
    if match:
        wrong = f"{text[: match.start(1)]}{int(match[1]) + by}{text[match.end(1) :]}"
        if wrong != besides:
            yield generated_content.GeneratedOption(wrong, -1)
