"""What a screening set can be made of: gold that is in use, and places that three raters or a person settled. Reads
alone, and looks through so many rows at most, however large the project is."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

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
LOOKED_AT = 2000  # traces settled last, in each of two states


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
    is_gold = set(Gold.objects.filter(trace__in=[row.trace_id for row in settled]).values_list("trace_id", flat=True))
    return {row.trace_id: _agreed(row) for row in settled if row.trace_id not in is_gold} | found


def _golds(project_id: int, only: Collection[int] | None) -> Iterator[Candidate]:
    """A screening trace stands for itself where it is hidden gold besides."""
    in_use = Gold.objects.filter(trace__project=project_id, retired_at=None, trace__withdrawn_at=None)
    rows = in_use if only is None else in_use.filter(trace__in=only)
    columns = ("trace_id", "trace__problem_id", "accepted_first_errors", "trace__n_steps", "trace__problem__domain")
    shown = set(
        in_use.filter(use__in=[GoldUse.TRAINING, GoldUse.CANARY]).values_list("trace_id", flat=True)[:MOST_GOLD]
    )
    for use, tier in ((GoldUse.HIDDEN, HIDDEN), (GoldUse.SCREENING, IN_SET)):
        for trace, problem, accepted, n_steps, domain in (
            rows.filter(use=use).order_by("-pk").values_list(*columns)[:MOST_GOLD]
        ):
            if trace not in shown or tier == IN_SET:
                place = strata.place_of(accepted, n_steps)
                yield Candidate(Known(trace, problem, place, domain, tier), accepted)


def _settled(project_id: int, only: Collection[int] | None) -> Iterator[Consensus]:
    """Not of the reserve, on which PRMs are judged by what is then said of it."""
    rows = Consensus.objects.filter(
        project_id=project_id,
        revision=F("trace__settlement__consensus_revision"),
        trace__withdrawn_at=None,
        trace__problem__is_reserve=False,
    ).select_related("trace__problem")
    for state in (SettlementState.DECIDED, SettlementState.SETTLED):
        last = consensus.settled_last(project_id=project_id, state=state, only=only)[:LOOKED_AT]
        asked = [trace for trace, n_votes in last if state == SettlementState.DECIDED or n_votes >= LEAST_VOTES]
        yield from rows.filter(trace__in=asked)


def _agreed(row: Consensus) -> Candidate:
    trace = row.trace
    is_decided = row.source == ConsensusSource.PERSON
    place = strata.place_of([row.first_error], trace.n_steps)
    known = Known(trace.pk, trace.problem_id, place, trace.problem.domain, DECIDED if is_decided else AGREED)
    return Candidate(known, [row.first_error], row.n_votes, round((row.confidence or 0) * row.n_votes))
