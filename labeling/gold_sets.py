"""The training set and the screening set of a project: the same gold traces for every new rater.

A lead can replace the screening set by a stratified proposal. Its candidates are active gold, and traces that three
raters or a person settled. The number of rows read is limited, so that the size of the project does not matter.
"""

import datetime as dt
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import Assignment, Consensus, Gold, Project, QueueEntry, Rater, Trace
from labeling.models.assignment import OPEN_STATES, AssignmentPurpose, AssignmentQuerySet, AssignmentState
from labeling.models.consensus import ConsensusSource, SettlementState
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.quality import consensus
from labeling.quality.gold import (
    MIN_GOLD_VOTES,
    InvalidGold,
    enqueue_gold,
    make_gold,
    move_gold,
    promote_to_gold,
    retire_gold,
)
from labeling.queue.slots import WAS_GOLD
from stats import strata
from stats.strata import GoldCandidate

# Tiers of candidates in the order of preference: traces of the current set come first.
IN_SET, HIDDEN, DECIDED, AGREED = range(4)
MAX_GOLD = 5000
MAX_RECENT = 1000  # recently settled traces that are read, for each of two states
DEFAULT_SET_SIZE = 30  # as in PRM800K
MAX_SET_SIZE = 200


def serve_gold_set(*, project: Project, use: GoldUse, now: dt.datetime) -> int:
    """Serve all gold of this use in the order of its creation, and return how many traces are new. Only raters who have
    not finished the set get them."""
    golds = Gold.objects.active().filter(trace__project=project, use=use).order_by("pk")
    traces = list(golds.values_list("trace_id", flat=True))
    return enqueue_gold(project_id=project.pk, use=use, trace_ids=traces, now=now)


def make_served_gold(*, trace: Trace, use: GoldUse, by: User | None, now: dt.datetime, **answer: Any) -> Gold:
    """Make a trace gold, and serve it in its set or hidden among the work. It no longer counts as work.

    `answer` has the other arguments of `make_gold`. Raises InvalidGold.
    """
    with transaction.atomic():
        gold = make_gold(trace=trace, use=use, by=by, now=now, **answer)
        enqueue_gold(project_id=trace.project_id, use=use, trace_ids=[trace.pk], now=now)
    return gold


# The progress of a rater


class SetProgress(NamedTuple):
    done: int
    total: int

    @property
    def number(self) -> int:
        """The number of the open trace, or of the next one."""
        return min(self.done + 1, self.total)


def load_set_progress(*, rater: Rater, purpose: AssignmentPurpose) -> SetProgress:
    assignments = _assignments_of_attempt(rater, purpose)
    done = assignments.submitted().count()
    return SetProgress(done, done + assignments.open().count() + _remaining_entries(rater, purpose).count())


def position_in_set(assignment: Assignment) -> tuple[int, int]:
    """Return the number of this trace in its set, and the size of the set."""
    rater, purpose = assignment.rater, AssignmentPurpose(assignment.purpose)
    others = _assignments_of_attempt(rater, purpose).filter(state__in=(*OPEN_STATES, AssignmentState.SUBMITTED))
    earlier = Q(held_at__lt=assignment.held_at) | Q(held_at=assignment.held_at, pk__lt=assignment.pk)
    return others.filter(earlier).count() + 1, load_set_progress(rater=rater, purpose=purpose).total


def is_set_begun(rater: Rater, purpose: AssignmentPurpose) -> bool:
    """Return whether the rater has had a trace of the set in the current attempt."""
    return _assignments_of_attempt(rater, purpose).exists()


def is_set_complete(rater: Rater, purpose: AssignmentPurpose) -> bool:
    """Return whether no trace of the set is open, in any attempt, and none is left."""
    open_ones = Assignment.objects.open().filter(rater=rater, purpose=purpose)
    return not open_ones.exists() and not _remaining_entries(rater, purpose).exists()


def is_set_served(project_id: int, arm: SamplingSource) -> bool:
    return _open_entries(project_id, arm).exists()


def _assignments_of_attempt(rater: Rater, purpose: AssignmentPurpose) -> AssignmentQuerySet:
    return Assignment.objects.filter(rater=rater, purpose=purpose, attempt=_attempt_number(rater, purpose))


def _attempt_number(rater: Rater, purpose: AssignmentPurpose) -> int:
    return rater.training_attempt if purpose == AssignmentPurpose.TRAINING else rater.screening_attempt


def _open_entries(project_id: int, arm: str) -> QuerySet[QueueEntry]:
    return QueueEntry.objects.open().filter(lane__project=project_id, lane__arm=arm, lane__closed_at=None)


def _remaining_entries(rater: Rater, purpose: AssignmentPurpose) -> QuerySet[QueueEntry]:
    """Return the entries that the queue will still serve. `queue/claim.sql` excludes the same ones."""
    earlier = Assignment.objects.filter(rater=rater, trace=OuterRef("trace"))
    earlier = earlier.exclude(opened_at=None, state__in=[AssignmentState.RELEASED, AssignmentState.LAPSED])
    earlier = earlier.filter(Q(purpose=purpose, attempt=_attempt_number(rater, purpose)) | Q(state__in=OPEN_STATES))
    return _open_entries(rater.project_id, purpose).filter(~Exists(earlier))


# The mix of a screening set


def pass_mark(n_traces: int, share: float) -> int:
    """Return how many traces must be right. Rounds first, so that 0.7 of 10 is 7."""
    return math.ceil(round(share * n_traces, 9))


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
    return _compute_mix(project, [None in places for places in accepted]) if accepted else None


def _compute_mix(project: Project, are_sound: Sequence[bool]) -> ScreeningMix:
    n_traces = len(are_sound)
    return ScreeningMix(n_traces, sum(are_sound), pass_mark(n_traces, project.screening_pass_share))


# The candidates of a screening set


@dataclass(frozen=True)
class ScreeningCandidate:
    known: GoldCandidate
    accepted: list[int | None]
    n_votes: int = 0
    n_for: int = 0  # votes for the place of the first error


def _find_candidates(project_id: int, *, only: Collection[int] | None = None) -> dict[int, ScreeningCandidate]:
    """Return the candidates by trace. `only` restricts them to these traces, whenever they were settled.

    Other gold is left out: training shows its answers, canaries are never shown, and gold was retired for a reason.
    """
    candidates = (*_settled_candidates(project_id, only), *_gold_candidates(project_id, only))
    return {each.known.trace: each for each in candidates}


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


def _settled_candidates(project_id: int, only: Collection[int] | None) -> Iterator[ScreeningCandidate]:
    """Yield recently settled traces that were never gold, except of the held-out set, whose labels evaluate PRMs."""
    rows = Consensus.objects.filter(
        ~WAS_GOLD,
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
        for trace, problem, first_error, n_steps, domain, source, confidence, n_votes in columns:
            tier = DECIDED if source == ConsensusSource.PERSON else AGREED
            known = GoldCandidate(trace, problem, strata.stratum_of([first_error], n_steps), domain, tier)
            yield ScreeningCandidate(known, [first_error], n_votes, round((confidence or 0) * n_votes))


def count_hidden_gold_places(project: Project) -> Counter[str]:
    """Count recent hidden gold by the stratum of its first error."""
    golds = Gold.objects.active().filter(trace__project=project).order_by("-pk")
    rows = golds.values_list("use", "accepted_first_errors", "trace__n_steps")[:MAX_GOLD]
    return Counter(strata.stratum_of(accepted, n_steps) for use, accepted, n_steps in rows if use == GoldUse.HIDDEN)


# The proposal and the replacement of a screening set


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
    candidates = _find_candidates(project.pk)
    known = [each.known for each in candidates.values()]
    drawn = strata.draw_stratified(known, wanted, seed=f"project {project.pk} screening {round}")
    taken = {each.trace for each in drawn}
    return ScreeningProposal(
        chosen=[candidates[each.trace] for each in drawn],
        leaving=[each for each in candidates.values() if each.known.tier == IN_SET and each.known.trace not in taken],
        wanted=wanted,
        available=Counter(each.place for each in known),
        mix=_compute_mix(project, [each.place == strata.NONE for each in drawn]),
    )


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
        candidates = _find_candidates(project.pk, only=wanted)
        _check_available(wanted, candidates)
        current = Gold.objects.active().filter(trace__project=project, use=GoldUse.SCREENING)
        others = current.exclude(trace__in=wanted).select_related("trace").order_by("trace_id")
        n_retired = sum(retire_gold(gold=gold, by=by, now=now) for gold in others)
        new = [each for each in wanted if candidates[each].known.tier != IN_SET]
        for trace in new:
            _make_screening_gold(candidates[trace].known, by, now)
        enqueue_gold(project_id=project.pk, use=GoldUse.SCREENING, trace_ids=wanted, now=now)
        queue.reorder_lane(project_id=project.pk, arm=SamplingSource.SCREENING, trace_ids=wanted, now=now)
        places = Counter(candidates[each].known.place for each in wanted)
        audit_log.log_event(
            what="screening.set_taken",
            by=by,
            now=now,
            project=project.pk,
            subject=f"project:{project.pk}",
            detail={"traces": len(wanted), "new": len(new), "left": n_retired, **places},
        )
    return ScreeningSetChange(len(wanted), len(new), n_retired)


def _check_available(wanted: Sequence[int], available: Collection[int]) -> None:
    if not wanted:
        raise InvalidGold(_("Select at least one trace for the screening set."))
    if len(wanted) > MAX_SET_SIZE:
        raise InvalidGold(_("A screening set can have at most %(n)d traces.") % {"n": MAX_SET_SIZE})
    if missing := sorted(set(wanted) - set(available)):
        numbers = ", ".join(str(each) for each in missing[:10])
        raise InvalidGold(
            _("These traces are no longer available for screening: %(traces)s. Reload the page and choose others.")
            % {"traces": numbers}
        )


def _make_screening_gold(candidate: GoldCandidate, by: User, now: dt.datetime) -> None:
    if candidate.tier == HIDDEN:
        hidden = Gold.objects.active().select_related("trace").get(trace=candidate.trace, use=GoldUse.HIDDEN)
        move_gold(gold=hidden, use=GoldUse.SCREENING, by=by, now=now)
    else:
        trace = Trace.objects.get(pk=candidate.trace)
        promote_to_gold(trace=trace, use=GoldUse.SCREENING, by=by, now=now)
