"""What a screening set can be made of: gold that is in use, and places that three raters or a person settled. Reads
alone, and looks through so many rows at most, however large the project is."""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import Consensus, Gold, Project, Trace
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.onboarding import screening
from labeling.quality import consensus
from labeling.quality.gold import MIN_GOLD_VOTES, InvalidGold, enqueue_gold, move_gold, promote_to_gold, retire_gold
from stats import strata
from stats.strata import GoldCandidate

# Whence, in the order in which they are taken: what stands in the set stays there first of all.
IN_SET, HIDDEN, DECIDED, AGREED = range(4)
MAX_GOLD = 5000
MAX_RECENT = 1000  # traces settled last, in each of two states


@dataclass(frozen=True)
class ScreeningCandidate:
    known: GoldCandidate
    accepted: list[int | None]
    n_votes: int = 0
    n_for: int = 0  # votes for the place

    @property
    def is_gold(self) -> bool:
        return self.known.tier in (IN_SET, HIDDEN)


def find_candidates(project_id: int, *, only: Collection[int] | None = None) -> dict[int, ScreeningCandidate]:
    """By trace; `only` looks at these traces, whenever they were settled. What was gold for anything else is left out:
    training shows its answers, a canary is shown to nobody, and what was retired was so for a reason."""
    found = {each.known.trace: each for each in _gold_candidates(project_id, only)}
    settled = list(_settled_traces(project_id, only))
    is_gold = set(Gold.objects.filter(trace__in=[row.trace for row in settled]).values_list("trace_id", flat=True))
    return {row.trace: _settled_candidate(row) for row in settled if row.trace not in is_gold} | found


def _gold_candidates(project_id: int, only: Collection[int] | None) -> Iterator[ScreeningCandidate]:
    """Yield the gold of a project. A screening trace counts as a screening trace even if it is also hidden gold."""
    rows = Gold.objects.active().filter(trace__project=project_id).order_by("-pk")
    rows = rows if only is None else rows.filter(trace__in=only)
    about = ("trace_id", "trace__problem_id", "accepted_first_errors", "trace__n_steps", "trace__problem__domain")
    found = list(rows.values_list("use", "trace__withdrawn_at", *about)[:MAX_GOLD])
    shown = {trace for use, _withdrawn, trace, *_more in found if use in (GoldUse.TRAINING, GoldUse.CANARY)}
    for asked, tier in ((GoldUse.HIDDEN, HIDDEN), (GoldUse.SCREENING, IN_SET)):
        for use, withdrawn_at, trace, problem, accepted, n_steps, domain in found:
            if use == asked and withdrawn_at is None and (trace not in shown or tier == IN_SET):
                yield ScreeningCandidate(
                    GoldCandidate(trace, problem, strata.stratum_of(accepted, n_steps), domain, tier), accepted
                )


class _SettledTrace(NamedTuple):
    trace: int
    problem: int
    first_error: int | None
    n_steps: int
    domain: str
    source: str
    confidence: float | None
    n_votes: int


def _settled_traces(project_id: int, only: Collection[int] | None) -> Iterator[_SettledTrace]:
    """Not of the reserve, on which PRMs are judged by what is then said of it."""
    rows = Consensus.objects.filter(
        project_id=project_id,
        revision=F("trace__settlement__consensus_revision"),
        trace__withdrawn_at=None,
        trace__problem__is_reserve=False,
    )
    about = ("trace_id", "trace__problem_id", "first_error", "trace__n_steps", "trace__problem__domain")
    for state in (SettlementState.DECIDED, SettlementState.SETTLED):
        last = consensus.latest_resolved(project_id=project_id, state=state, only=only)[:MAX_RECENT]
        asked = [trace for trace, n_votes in last if state == SettlementState.DECIDED or n_votes >= MIN_GOLD_VOTES]
        told = rows.filter(trace__in=asked).values_list(*about, "source", "confidence", "n_votes")
        yield from (_SettledTrace(*row) for row in told)


def _settled_candidate(row: _SettledTrace) -> ScreeningCandidate:
    tier = DECIDED if row.source == ConsensusSource.PERSON else AGREED
    place = strata.stratum_of([row.first_error], row.n_steps)
    known = GoldCandidate(row.trace, row.problem, place, row.domain, tier)
    return ScreeningCandidate(known, [row.first_error], row.n_votes, round((row.confidence or 0) * row.n_votes))


# Whether a screening set tells those who read from those who only press a key. Reads only.


class ScreeningMix(NamedTuple):
    """What a screening set is made of, and what is right of it without reading."""

    n_traces: int
    n_sound: int  # traces in which "no error" is right
    n_needed: int

    @property
    def passes_without_reading(self) -> bool:
        return self.n_sound >= self.n_needed


def load_screening_mix(project: Project) -> ScreeningMix | None:
    """None where the project has no screening set."""
    golds = Gold.objects.active().filter(trace__project=project, use=GoldUse.SCREENING)
    accepted = list(golds.values_list("accepted_first_errors", flat=True))
    if not accepted:
        return None
    sound = sum(None in places for places in accepted)
    return ScreeningMix(len(accepted), sound, screening.pass_mark(len(accepted), project.screening_pass_share))


def count_hidden_gold_places(project: Project) -> Counter[str]:
    """How much hidden gold has its first error where, of what was made last."""
    golds = Gold.objects.active().filter(trace__project=project).order_by("-pk")
    rows = golds.values_list("use", "accepted_first_errors", "trace__n_steps")[:MAX_GOLD]
    return Counter(strata.stratum_of(accepted, n_steps) for use, accepted, n_steps in rows if use == GoldUse.HIDDEN)


# A screening set in which no way of not reading is right: drawn, shown, and taken as a lead has adjusted it.


DEFAULT_SET_SIZE = 30  # traces of a set, as PRM800K had it
MAX_SET_SIZE = 200


@dataclass(frozen=True)
class ScreeningProposal:
    chosen: Sequence[ScreeningCandidate]  # in the order in which they would be met
    leaving: Sequence[ScreeningCandidate]  # stand in the set and were not chosen
    wanted: Mapping[str, int]
    there: Mapping[str, int]  # how many could be had of each place
    mix: ScreeningMix  # of those that were chosen

    def n_of(self, place: str) -> int:
        return sum(each.known.place == place for each in self.chosen)


class ScreeningSetChange(NamedTuple):
    """What became of a set."""

    n: int
    n_new: int
    n_left: int


def propose_screening_set(*, project: Project, wanted: Mapping[str, int], round: int = 1) -> ScreeningProposal:
    found = find_candidates(project.pk)
    known = [each.known for each in found.values()]
    drawn = strata.draw_stratified(known, wanted, seed=f"project {project.pk} screening {round}")
    chosen = [found[each.trace] for each in drawn]
    taken = {each.trace for each in drawn}
    leaving = [each for each in found.values() if each.known.tier == IN_SET and each.known.trace not in taken]
    return ScreeningProposal(
        chosen, leaving, wanted, Counter(each.place for each in known), compute_screening_mix(project, chosen)
    )


def compute_screening_mix(project: Project, chosen: Collection[ScreeningCandidate]) -> ScreeningMix:
    sound = sum(each.known.place == strata.NONE for each in chosen)
    return ScreeningMix(len(chosen), sound, screening.pass_mark(len(chosen), project.screening_pass_share))


def replace_screening_set(
    *, project: Project, trace_ids: Sequence[int], by: User, now: dt.datetime
) -> ScreeningSetChange:
    """These traces are the screening set from now on, in this order, and no others: what stood in it besides is
    retired, hidden gold is hidden no more, a consensus becomes gold. Who is at the set meets what is left and new of
    it; who is past it stays so. Raises NotKnowable where one of them cannot be in it (any more)."""
    wanted = list(dict.fromkeys(trace_ids))
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        found = find_candidates(project.pk, only=wanted)
        _check_available(wanted, found)
        left = _retire_others(project, wanted, by, now)
        new = [each for each in wanted if found[each].known.tier != IN_SET]
        for trace in new:
            _make_screening_gold(found[trace], by, now)
        enqueue_gold(project_id=project.pk, use=GoldUse.SCREENING, trace_ids=wanted, now=now)
        queue.reorder_lane(project_id=project.pk, arm=SamplingSource.SCREENING, trace_ids=wanted, now=now)
        _log_set_change(project, [found[each] for each in wanted], len(new), left, by, now)
    return ScreeningSetChange(len(wanted), len(new), left)


def _check_available(wanted: Sequence[int], found: Collection[int]) -> None:
    if not wanted:
        raise InvalidGold(_("Choose the traces of the set."))
    if len(wanted) > MAX_SET_SIZE:
        raise InvalidGold(_("A set has %(n)d traces at most.") % {"n": MAX_SET_SIZE})
    if gone := sorted(set(wanted) - set(found)):
        told = ", ".join(str(each) for each in gone[:10])
        raise InvalidGold(_("No longer to be had for a screening: trace %(traces)s.") % {"traces": told})


def _retire_others(project: Project, wanted: Collection[int], by: User, now: dt.datetime) -> int:
    golds = Gold.objects.active().filter(trace__project=project, use=GoldUse.SCREENING)
    others = golds.exclude(trace__in=wanted).select_related("trace").order_by("trace_id")
    return sum(retire_gold(gold=gold, by=by, now=now) for gold in others)


def _make_screening_gold(one: ScreeningCandidate, by: User, now: dt.datetime) -> None:
    if one.known.tier == HIDDEN:
        hidden = Gold.objects.active().select_related("trace").get(trace=one.known.trace, use=GoldUse.HIDDEN)
        move_gold(gold=hidden, use=GoldUse.SCREENING, by=by, now=now)
    else:
        trace = Trace.objects.get(pk=one.known.trace)
        promote_to_gold(trace=trace, use=GoldUse.SCREENING, by=by, now=now)


def _log_set_change(
    project: Project, chosen: Sequence[ScreeningCandidate], n_new: int, n_left: int, by: User, now: dt.datetime
) -> None:
    places = Counter(each.known.place for each in chosen)
    detail = {"traces": len(chosen), "new": n_new, "left": n_left, **places}
    subject = f"project:{project.pk}"
    audit_log.log_event(what="screening.set_taken", by=by, now=now, project=project.pk, subject=subject, detail=detail)
