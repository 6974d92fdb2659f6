"""What a screening set can be made of: gold that is in use, and places that three raters or a person settled. Reads
alone, and looks through so many rows at most, however large the project is."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import F

from labeling.agreement import strata
from labeling.agreement.strata import Known
from labeling.models import Consensus, Gold
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.models.quality import GoldUse
from labeling.quality import consensus
from labeling.quality.gold import LEAST_VOTES

# Whence, in the order in which they are taken: what stands in the set stays there first of all.
IN_SET, HIDDEN, DECIDED, AGREED = range(4)
MOST_GOLD = 5000
LOOKED_AT = 1000  # traces settled last, in each of two states


@dataclass(frozen=True)
class Candidate:
    known: Known
    accepted: list[int | None]
    n_votes: int = 0
    n_for: int = 0  # votes for the place

    @property
    def is_gold(self) -> bool:
        return self.known.tier in (IN_SET, HIDDEN)


def of_project(project_id: int, *, only: Collection[int] | None = None) -> dict[int, Candidate]:
    """By trace; `only` looks at these traces, whenever they were settled. What was gold for anything else is left out:
    training shows its answers, a canary is shown to nobody, and what was retired was so for a reason."""
    found = {each.known.trace: each for each in _golds(project_id, only)}
    settled = list(_settled(project_id, only))
    is_gold = set(Gold.objects.filter(trace__in=[row.trace for row in settled]).values_list("trace_id", flat=True))
    return {row.trace: _agreed(row) for row in settled if row.trace not in is_gold} | found


def _golds(project_id: int, only: Collection[int] | None) -> Iterator[Candidate]:
    """Yield the gold of a project. A screening trace counts as a screening trace even if it is also hidden gold."""
    rows = Gold.objects.active().filter(trace__project=project_id).order_by("-pk")
    rows = rows if only is None else rows.filter(trace__in=only)
    about = ("trace_id", "trace__problem_id", "accepted_first_errors", "trace__n_steps", "trace__problem__domain")
    found = list(rows.values_list("use", "trace__withdrawn_at", *about)[:MOST_GOLD])
    shown = {trace for use, _withdrawn, trace, *_more in found if use in (GoldUse.TRAINING, GoldUse.CANARY)}
    for asked, tier in ((GoldUse.HIDDEN, HIDDEN), (GoldUse.SCREENING, IN_SET)):
        for use, withdrawn_at, trace, problem, accepted, n_steps, domain in found:
            if use == asked and withdrawn_at is None and (trace not in shown or tier == IN_SET):
                yield Candidate(Known(trace, problem, strata.place_of(accepted, n_steps), domain, tier), accepted)


class _Settled(NamedTuple):
    trace: int
    problem: int
    first_error: int | None
    n_steps: int
    domain: str
    source: str
    confidence: float | None
    n_votes: int


def _settled(project_id: int, only: Collection[int] | None) -> Iterator[_Settled]:
    """Not of the reserve, on which PRMs are judged by what is then said of it."""
    rows = Consensus.objects.filter(
        project_id=project_id,
        revision=F("trace__settlement__consensus_revision"),
        trace__withdrawn_at=None,
        trace__problem__is_reserve=False,
    )
    about = ("trace_id", "trace__problem_id", "first_error", "trace__n_steps", "trace__problem__domain")
    for state in (SettlementState.DECIDED, SettlementState.SETTLED):
        last = consensus.settled_last(project_id=project_id, state=state, only=only)[:LOOKED_AT]
        asked = [trace for trace, n_votes in last if state == SettlementState.DECIDED or n_votes >= LEAST_VOTES]
        told = rows.filter(trace__in=asked).values_list(*about, "source", "confidence", "n_votes")
        yield from (_Settled(*row) for row in told)


def _agreed(row: _Settled) -> Candidate:
    tier = DECIDED if row.source == ConsensusSource.PERSON else AGREED
    place = strata.place_of([row.first_error], row.n_steps)
    known = Known(row.trace, row.problem, place, row.domain, tier)
    return Candidate(known, [row.first_error], row.n_votes, round((row.confidence or 0) * row.n_votes))
