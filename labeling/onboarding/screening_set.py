"""The screening set of a project: candidates, a stratified proposal, and the replacement of the set by a lead.

Candidates are active gold, and traces that three raters or a person settled. The number of rows read is limited, so
that the size of the project does not matter.
"""

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

# Tiers of candidates in the order of preference: traces of the current set stay in it first.
IN_SET, HIDDEN, DECIDED, AGREED = range(4)
MAX_GOLD = 5000
MAX_RECENT = 1000  # recently settled traces, in each of two states
DEFAULT_SET_SIZE = 30  # as in PRM800K
MAX_SET_SIZE = 200


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
    """Return the candidates by trace. `only` restricts them to these traces, whenever they were settled.

    Other gold is left out: training shows its answers, canaries are never shown, and gold was retired for a reason.
    """
    from_gold = {each.known.trace: each for each in _gold_candidates(project_id, only)}
    settled = list(_settled_traces(project_id, only))
    was_gold = set(Gold.objects.filter(trace__in=[row.trace for row in settled]).values_list("trace_id", flat=True))
    return {row.trace: _settled_candidate(row) for row in settled if row.trace not in was_gold} | from_gold


def _gold_candidates(project_id: int, only: Collection[int] | None) -> Iterator[ScreeningCandidate]:
    """Yield the gold of a project. A screening trace counts as a screening trace even if it is also hidden gold."""
    rows = Gold.objects.active().filter(trace__project=project_id).order_by("-pk")
    rows = rows if only is None else rows.filter(trace__in=only)
    about = ("trace_id", "trace__problem_id", "accepted_first_errors", "trace__n_steps", "trace__problem__domain")
    golds = list(rows.values_list("use", "trace__withdrawn_at", *about)[:MAX_GOLD])
    excluded = {trace for use, _withdrawn, trace, *_more in golds if use in (GoldUse.TRAINING, GoldUse.CANARY)}
    for use_of_tier, tier in ((GoldUse.HIDDEN, HIDDEN), (GoldUse.SCREENING, IN_SET)):
        for use, withdrawn_at, trace, problem, accepted, n_steps, domain in golds:
            if use == use_of_tier and withdrawn_at is None and (trace not in excluded or tier == IN_SET):
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
    """Yield recently settled traces, except of the held-out set, whose labels evaluate PRMs."""
    rows = Consensus.objects.filter(
        project_id=project_id,
        revision=F("trace__settlement__consensus_revision"),
        trace__withdrawn_at=None,
        trace__problem__is_reserve=False,
    )
    about = ("trace_id", "trace__problem_id", "first_error", "trace__n_steps", "trace__problem__domain")
    for state in (SettlementState.DECIDED, SettlementState.SETTLED):
        recent = consensus.latest_resolved(project_id=project_id, state=state, only=only)[:MAX_RECENT]
        certain = [trace for trace, n_votes in recent if state == SettlementState.DECIDED or n_votes >= MIN_GOLD_VOTES]
        columns = rows.filter(trace__in=certain).values_list(*about, "source", "confidence", "n_votes")
        yield from (_SettledTrace(*row) for row in columns)


def _settled_candidate(row: _SettledTrace) -> ScreeningCandidate:
    tier = DECIDED if row.source == ConsensusSource.PERSON else AGREED
    place = strata.stratum_of([row.first_error], row.n_steps)
    known = GoldCandidate(row.trace, row.problem, place, row.domain, tier)
    return ScreeningCandidate(known, [row.first_error], row.n_votes, round((row.confidence or 0) * row.n_votes))


class ScreeningMix(NamedTuple):
    """Whether a rater can pass a screening set by always answering "no error"."""

    n_traces: int
    n_sound: int  # traces without an error
    n_needed: int

    @property
    def passes_without_reading(self) -> bool:
        return self.n_sound >= self.n_needed


def load_screening_mix(project: Project) -> ScreeningMix | None:
    """Return the mix of the current screening set, or None if the project has none."""
    golds = Gold.objects.active().filter(trace__project=project, use=GoldUse.SCREENING)
    accepted = list(golds.values_list("accepted_first_errors", flat=True))
    if not accepted:
        return None
    sound = sum(None in places for places in accepted)
    return ScreeningMix(len(accepted), sound, screening.pass_mark(len(accepted), project.screening_pass_share))


def count_hidden_gold_places(project: Project) -> Counter[str]:
    """Count recent hidden gold by the stratum of its first error."""
    golds = Gold.objects.active().filter(trace__project=project).order_by("-pk")
    rows = golds.values_list("use", "accepted_first_errors", "trace__n_steps")[:MAX_GOLD]
    return Counter(strata.stratum_of(accepted, n_steps) for use, accepted, n_steps in rows if use == GoldUse.HIDDEN)


@dataclass(frozen=True)
class ScreeningProposal:
    chosen: Sequence[ScreeningCandidate]  # in the order of the set
    leaving: Sequence[ScreeningCandidate]  # in the current set, but not chosen
    wanted: Mapping[str, int]  # by stratum
    available: Mapping[str, int]  # by stratum
    mix: ScreeningMix  # of the chosen ones

    def n_of(self, place: str) -> int:
        return sum(each.known.place == place for each in self.chosen)


class ScreeningSetChange(NamedTuple):
    n: int
    n_new: int
    n_retired: int


def propose_screening_set(*, project: Project, wanted: Mapping[str, int], round: int = 1) -> ScreeningProposal:
    """Draw a stratified set, in which no constant answer passes. The draw is reproducible for a `round`."""
    candidates = find_candidates(project.pk)
    known = [each.known for each in candidates.values()]
    drawn = strata.draw_stratified(known, wanted, seed=f"project {project.pk} screening {round}")
    chosen = [candidates[each.trace] for each in drawn]
    taken = {each.trace for each in drawn}
    leaving = [each for each in candidates.values() if each.known.tier == IN_SET and each.known.trace not in taken]
    return ScreeningProposal(
        chosen, leaving, wanted, Counter(each.place for each in known), compute_screening_mix(project, chosen)
    )


def compute_screening_mix(project: Project, chosen: Collection[ScreeningCandidate]) -> ScreeningMix:
    sound = sum(each.known.place == strata.NONE for each in chosen)
    return ScreeningMix(len(chosen), sound, screening.pass_mark(len(chosen), project.screening_pass_share))


def replace_screening_set(
    *, project: Project, trace_ids: Sequence[int], by: User, now: dt.datetime
) -> ScreeningSetChange:
    """Make these traces the screening set, in this order. Raises InvalidGold if one of them is not available.

    Other traces of the set are retired, hidden gold moves to the set, and a consensus becomes gold. Raters in screening
    get what is left of the new set; raters who have finished are not affected.
    """
    wanted = list(dict.fromkeys(trace_ids))
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        candidates = find_candidates(project.pk, only=wanted)
        _check_available(wanted, candidates)
        n_retired = _retire_others(project, wanted, by, now)
        new = [each for each in wanted if candidates[each].known.tier != IN_SET]
        for trace in new:
            _make_screening_gold(candidates[trace], by, now)
        enqueue_gold(project_id=project.pk, use=GoldUse.SCREENING, trace_ids=wanted, now=now)
        queue.reorder_lane(project_id=project.pk, arm=SamplingSource.SCREENING, trace_ids=wanted, now=now)
        _log_set_change(project, [candidates[each] for each in wanted], len(new), n_retired, by, now)
    return ScreeningSetChange(len(wanted), len(new), n_retired)


def _check_available(wanted: Sequence[int], available: Collection[int]) -> None:
    if not wanted:
        raise InvalidGold(_("Select the traces of the screening set."))
    if len(wanted) > MAX_SET_SIZE:
        raise InvalidGold(_("A screening set can have at most %(n)d traces.") % {"n": MAX_SET_SIZE})
    if missing := sorted(set(wanted) - set(available)):
        numbers = ", ".join(str(each) for each in missing[:10])
        raise InvalidGold(_("No longer available for screening: trace %(traces)s.") % {"traces": numbers})


def _retire_others(project: Project, wanted: Collection[int], by: User, now: dt.datetime) -> int:
    golds = Gold.objects.active().filter(trace__project=project, use=GoldUse.SCREENING)
    others = golds.exclude(trace__in=wanted).select_related("trace").order_by("trace_id")
    return sum(retire_gold(gold=gold, by=by, now=now) for gold in others)


def _make_screening_gold(candidate: ScreeningCandidate, by: User, now: dt.datetime) -> None:
    if candidate.known.tier == HIDDEN:
        hidden = Gold.objects.active().select_related("trace").get(trace=candidate.known.trace, use=GoldUse.HIDDEN)
        move_gold(gold=hidden, use=GoldUse.SCREENING, by=by, now=now)
    else:
        trace = Trace.objects.get(pk=candidate.known.trace)
        promote_to_gold(trace=trace, use=GoldUse.SCREENING, by=by, now=now)


def _log_set_change(
    project: Project, chosen: Sequence[ScreeningCandidate], n_new: int, n_retired: int, by: User, now: dt.datetime
) -> None:
    places = Counter(each.known.place for each in chosen)
    detail = {"traces": len(chosen), "new": n_new, "left": n_retired, **places}
    subject = f"project:{project.pk}"
    audit_log.log_event(what="screening.set_taken", by=by, now=now, project=project.pk, subject=subject, detail=detail)
