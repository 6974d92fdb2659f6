"""Draw gold traces stratified by the place of their first error, so that rating without reading does not pass.

    none                 no error, or "none" is accepted too: calling every step positive is right
    early, middle, late  the earliest accepted place is in the first, second or last third of the trace

An unstratified screening admits raters who call every step positive: of 30 traces with 72 % correct ones, such a rater
gets 23 or more right with a probability above one third. With a quarter correct, they always get a quarter right.

Within a stratum, domains alternate, and no problem repeats while others are left. Remaining ties are broken by sha256
of a seed and the trace, so the same traces give the same draw on every machine.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

NONE, EARLY, MIDDLE, LATE = "none", "early", "middle", "late"
STRATA = (NONE, EARLY, MIDDLE, LATE)
ERROR_STRATA = STRATA[1:]


class GoldCandidate(NamedTuple):
    """A trace with a known first error. Candidates with a lower `tier` are drawn first."""

    trace: int
    problem: int
    place: str
    domain: str
    tier: int = 0


def stratum_of(accepted: Collection[int | None], n_steps: int) -> str:
    """Return the stratum for accepted first errors, given as positions among `n_steps` or None for "no error"."""
    places = [place for place in accepted if place is not None]
    if None in accepted or not places:
        return NONE
    return ERROR_STRATA[min(3 * min(places) // max(n_steps, 1), 2)]


def equal_quotas(n: int) -> dict[str, int]:
    """Divide `n` traces equally among the strata, and the remainder among the strata with an error."""
    each, over = divmod(n, len(STRATA))
    return {place: each + (place != NONE and ERROR_STRATA.index(place) < over) for place in STRATA}


def draw_stratified(known: Iterable[GoldCandidate], wanted: Mapping[str, int], *, seed: str) -> list[GoldCandidate]:
    """Draw the wanted number from each stratum.

    Other strata with an error fill in for one that has too few. Traces without an error never do: a smaller set is
    better than one that can be passed without reading.
    """
    order = rank_within_strata(known, seed=seed)
    quotas = {place: wanted.get(place, 0) for place in STRATA}
    shortage = sum(max(quotas[place] - len(order[place]), 0) for place in ERROR_STRATA)
    for _ in range(shortage):
        available = [place for place in ERROR_STRATA if quotas[place] < len(order[place])]
        if not available:
            break
        quotas[min(available, key=quotas.__getitem__)] += 1
    return _interleave({place: order[place][: quotas[place]] for place in STRATA})


def interleave_strata(known: Iterable[GoldCandidate], *, seed: str) -> list[GoldCandidate]:
    """Order all traces so that every prefix has equally many from each stratum, as long as they last."""
    return _interleave(rank_within_strata(known, seed=seed))


def rank_within_strata(known: Iterable[GoldCandidate], *, seed: str) -> dict[str, list[GoldCandidate]]:
    """Return the traces of each stratum in the order in which they are drawn."""
    ranked = sorted(known, key=lambda candidate: (candidate.tier, _hash(seed, candidate.trace)))
    repeats: Counter[int] = Counter()
    turns: Counter[tuple[object, ...]] = Counter()
    keyed: dict[str, list[tuple[tuple[int, int, int, str], GoldCandidate]]] = defaultdict(list)
    for candidate in ranked:
        repeat = repeats[candidate.problem]
        cell = (candidate.place, repeat, candidate.tier, candidate.domain)
        key = (repeat, candidate.tier, turns[cell], _hash(seed, candidate.trace))
        keyed[candidate.place].append((key, candidate))
        repeats[candidate.problem] += 1
        turns[cell] += 1
    return {place: [candidate for _key, candidate in sorted(keyed[place])] for place in STRATA}


def _interleave(order: Mapping[str, Sequence[GoldCandidate]]) -> list[GoldCandidate]:
    """Take one trace of each stratum in turn."""
    rounds = zip_longest(*(order[place] for place in STRATA))
    return [candidate for one_round in rounds for candidate in one_round if candidate is not None]


def _hash(seed: str, trace: int) -> str:
    return hashlib.sha256(f"{seed} trace {trace}".encode()).hexdigest()
