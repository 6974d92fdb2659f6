"""Generate two traces for each of several problems, half of them with alternatives to every step. Pure."""

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
ALTERNATIVES_SHARE = 0.5  # of all traces
ALTERNATIVES = (2, 3, 4)  # of each step of such a trace
RESULT = re.compile(r"= (-?\d+)\$[^$\d]*$")
FILLERS = (
    "Let me read the problem once more before I continue.",
    "I will continue from here step by step.",
    "It is worth keeping in mind what the problem asks for.",
    "So far everything fits together.",
    "There may be several ways from here; I take the most direct one.",
    "I will write the next part down carefully.",
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
    if [step.text for step in first.steps] == [
        step.text for step in second.steps
    ]:  # same wording: make a slip in the second
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
    alternatives = _Alternatives(family, words, telling, path)
    steps = [
        generated_content.GeneratedStep((generated_content.GeneratedOption(text, truth), *alternatives.at(place)))
        for place, (text, truth) in enumerate(path.steps)
    ]
    kind = path.offered[slip][1] if slip else ""
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


class _Alternatives:
    """The alternatives to the steps of a trace.

    Either every step has some, or none has: alternatives only at the error would tell a rater where it is. All steps
    of a trace have the same number of them, of the same kinds."""

    def __init__(self, family: ProblemFamily, words: tuple[object, ...], telling: int, path: Derivation) -> None:
        self.path = path
        self.chance = generated_content.seeded_random(*words, telling, path.slip, "alternatives")
        self.n = self.chance.choice(ALTERNATIVES) if self.chance.random() < ALTERNATIVES_SHARE else 0
        self.right = _generate_trace(family, words, telling)
        self.slipped = [_generate_trace(family, words, telling, slip) for slip in self.right.offered]
        self.error = path.offered[path.slip][0] if path.slip else len(path.steps)

    def at(self, place: int) -> list[generated_content.GeneratedOption]:
        """Return other versions of the step, right and wrong, and at least one step without progress."""
        if not self.n:
            return []
        fillers = self.chance.sample(FILLERS, self.n)
        neutral = None if place > self.error else 0
        versions = list(self._versions(place))[: self.n - 1]
        options = versions + [generated_content.GeneratedOption(text, neutral) for text in fillers]
        options = options[: self.n]
        self.chance.shuffle(options)
        return options

    def _versions(self, place: int) -> Iterator[generated_content.GeneratedOption]:
        own = self.path.steps[place][0]
        if place > self.error:  # no step can be right or wrong by itself any more
            yield from self._miscounted(own, besides={own}, rating=None)
            return
        right = self.right.steps[place]
        if right[0] != own:
            yield generated_content.GeneratedOption(*right)
        slips = {path.steps[place][0] for path in self.slipped if path.offered[path.slip][0] == place}
        for text in sorted(slips - {own, right[0]}):
            yield generated_content.GeneratedOption(text, -1)
        yield from self._miscounted(right[0], besides={own, *slips}, rating=-1)

    def _miscounted(
        self, text: str, *, besides: set[str], rating: int | None
    ) -> Iterator[generated_content.GeneratedOption]:
        """Yield the step with other numbers at the end of its equation, which makes a right step wrong."""
        match = RESULT.search(text)
        if match is None:
            return
        for by in self.chance.sample([-2, -1, 1, 2, 10], 3):
            changed = f"{text[: match.start(1)]}{int(match[1]) + by}{text[match.end(1) :]}"
            if changed not in besides:
                yield generated_content.GeneratedOption(changed, rating)
