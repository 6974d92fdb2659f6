"""Known traces by where their first error lies, and a choice of them in which no way of not reading is right.

    none      there is no error, or "none" is accepted too: whoever calls every step positive is right
    early, middle, late      the first third of the trace, the second, the last, by the earliest place that is accepted

At the rate at which errors occur a screening lets in who only says "positive": of 30 traces, 72 % of them sound, such a
rater is right in 23 or more in more than one case of three. With a quarter sound they are right in a quarter, always.

Within a place domains take turns, and no problem comes twice while others are left. Where nothing else decides, sha256
of a seed and the trace does, so that the same traces give the same choice on any machine.
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
    """A trace whose first error is known. The lower its `tier`, the sooner it is taken."""

    trace: int
    problem: int
    place: str
    domain: str
    tier: int = 0


def stratum_of(accepted: Collection[int | None], n_steps: int) -> str:
    """`accepted` are positions among `n_steps`, None for "no error"."""
    places = [each for each in accepted if each is not None]
    if None in accepted or not places:
        return NONE
    return ERROR_STRATA[min(3 * min(places) // max(n_steps, 1), 2)]


def equal_quotas(n: int) -> dict[str, int]:
    """So many traces in equal parts; what is left over goes to traces with an error."""
    each, over = divmod(n, len(STRATA))
    return {place: each + (place != NONE and ERROR_STRATA.index(place) < over) for place in STRATA}


def draw_stratified(known: Iterable[GoldCandidate], wanted: Mapping[str, int], *, seed: str) -> list[GoldCandidate]:
    """So many of each place. Where there are too few with an error in one place, others with an error stand in; sound
    traces never do: a set is rather smaller than one that needs no reading."""
    order = rank_within_strata(known, seed=seed)
    taken = {place: wanted.get(place, 0) for place in STRATA}
    short = sum(max(taken[place] - len(order[place]), 0) for place in ERROR_STRATA)
    for _ in range(short):
        left = [place for place in ERROR_STRATA if taken[place] < len(order[place])]
        if not left:
            break
        taken[min(left, key=taken.__getitem__)] += 1
    return _interleave({place: order[place][: taken[place]] for place in STRATA})


def interleave_strata(known: Iterable[GoldCandidate], *, seed: str) -> list[GoldCandidate]:
    """All of them, in an order of which every beginning has as many of one place as of another, while they last."""
    return _interleave(rank_within_strata(known, seed=seed))


def rank_within_strata(known: Iterable[GoldCandidate], *, seed: str) -> dict[str, list[GoldCandidate]]:
    """By place, what is taken first coming first."""
    ranked = sorted(known, key=lambda each: (each.tier, _hash(seed, each.trace)))
    met: Counter[int] = Counter()
    turns: Counter[tuple[object, ...]] = Counter()
    keyed: dict[str, list[tuple[tuple[int, int, int, str], GoldCandidate]]] = defaultdict(list)
    for each in ranked:
        repeat, met[each.problem] = met[each.problem], met[each.problem] + 1
        cell = (each.place, repeat, each.tier, each.domain)
        turn, turns[cell] = turns[cell], turns[cell] + 1
        keyed[each.place].append(((repeat, each.tier, turn, _hash(seed, each.trace)), each))
    return {place: [each for _key, each in sorted(keyed[place])] for place in STRATA}


def _interleave(order: Mapping[str, Sequence[GoldCandidate]]) -> list[GoldCandidate]:
    """One of each place in turn."""
    rounds = zip_longest(*(order[place] for place in STRATA))
    return [each for of_round in rounds for each in of_round if each is not None]


def _hash(seed: str, trace: int) -> str:
    return hashlib.sha256(f"{seed} trace {trace}".encode()).hexdigest()
