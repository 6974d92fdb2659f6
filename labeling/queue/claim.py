"""Give a rater the next trace, or say why none is left. `claim.sql` makes the decision."""

import datetime as dt
import random
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery

import rawsql
from labeling.models import Assignment, Lane, PairReader, QueueEntry, Rater
from labeling.models.assignment import AssignmentPurpose
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterStage
from labeling.queue import eligibility, exposures, leases, limits, slots
from labeling.queue.eligibility import AssignmentLeaseLost, NothingLeft, QueueIsBusy

CLAIM_SQL = rawsql.load_sql(__file__, "claim.sql")
_SECTIONS = rawsql.sections(CLAIM_SQL)
_IS_WORK_LEFT = f"""{_SECTIONS["lanes"]}{_SECTIONS["work"].strip().removesuffix(",")}
SELECT 1 FROM work WHERE NOT EXISTS (SELECT 1 FROM lanes WHERE is_held)"""  # noqa: S608  made of constants
# Constraints that reject the statement when one rater makes two claims at the same time.
_CONCURRENT_CLAIM = (
    "one_held_assignment_per_rater",
    "an_open_assignment_has_a_lease_and_a_slot",
    'column "half" of relation "labeling_pairreader"',
)


class Claim(NamedTuple):
    """The assignment that a rater gets."""

    assignment_id: int
    trace_id: int
    purpose: str
    arm: str
    state: str
    lease_ends_at: dt.datetime
    draw_id: int | None
    suggestion_plan: int | None = None


class ClaimRequest(NamedTuple):
    rater_id: int
    now: dt.datetime
    chance: float  # between 0 and 1, decides on the sampling source
    opened: bool = False
    from_top: bool = False
    unless_opened_besides: Sequence[int] | None = None

    def parameters(self) -> dict[str, object]:
        """Return the parameters of `claim.sql`."""
        return {
            **self._asdict(),
            "arrivals_until": slots.renewal_key(self.now),
            "held_for": leases.HOLD_DURATION,
            "unless_opened_besides": None if self.unless_opened_besides is None else list(self.unless_opened_besides),
        }


def claim_trace(*, rater_id: int, now: dt.datetime, opened: bool = False, chance: float | None = None) -> Claim:
    """Return the trace that the rater holds, otherwise the next one. Raises a QueueRefusal."""
    request = ClaimRequest(rater_id, now, _draw_chance() if chance is None else chance, opened)
    return take_slot(request) or _claim_slowly(request)


def claim_next(*, rater_id: int, now: dt.datetime, opened: bool, besides: Sequence[int]) -> Claim | None:
    """Return the next trace in the usual case. Return None if the rater has another trace open or held than these, or
    if only `claim_trace` can tell what comes next."""
    return take_slot(ClaimRequest(rater_id, now, _draw_chance(), opened, unless_opened_besides=besides))


def _draw_chance() -> float:
    return random.random()  # noqa: S311  a choice of lane, not a secret


def take_slot(request: ClaimRequest) -> Claim | None:
    """Take a slot. Return None if there is none, or the rater already holds a trace, or is not eligible."""
    try:
        # Inside a transaction a savepoint, so that a rejected statement does not end the transaction.
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            rows = rawsql.fetch_rows(CLAIM_SQL, request.parameters())
    except IntegrityError as error:
        if not any(name in str(error) for name in _CONCURRENT_CLAIM):
            raise
        return None
    if not rows:
        return None
    *columns, empty_lanes = rows[0]
    if empty_lanes:  # the next claim does not search them again
        arms = Lane.objects.filter(pk__in=empty_lanes).order_by("pk").values_list("pk", "arm")
        keys = {(request.rater_id, pk): slots.exhausted_key(arm, request.now) for pk, arm in arms}
        slots.move_cursors(keys=keys, now=request.now)
    claim = Claim._make(columns)
    if claim.suggestion_plan is not None:
        exposures.draw_exposure(
            plan_id=claim.suggestion_plan,
            assignment_id=claim.assignment_id,
            rater_id=request.rater_id,
            trace_id=claim.trace_id,
            now=request.now,
        )
    return claim


def is_work_left(request: ClaimRequest) -> bool:
    """Search from the top without locks, so that entries locked by other claims at this moment count, too."""
    return bool(rawsql.fetch_rows(_IS_WORK_LEFT, request._replace(from_top=True).parameters()))


def _claim_slowly(request: ClaimRequest) -> Claim:
    """Find out why the fast statement took nothing, and try everything else."""
    rater = Rater.objects.select_related("project").get(pk=request.rater_id)
    eligibility.check_eligibility(rater, rater.project)
    held = _held_claim(request)
    if held is not None:
        return held
    limits.check_limits(rater, rater.project, request.now)
    claim = _take_from_top(request)
    if claim is None and leases.lapse_expired_leases(now=request.now, project_id=rater.project_id):
        claim = _take_from_top(request)
    # Another request of the same rater may have been faster.
    claim = claim or _held_claim(request)
    if claim is None:
        raise explain_nothing_left([rater.pk])[rater.pk]
    return claim


def _held_claim(request: ClaimRequest) -> Claim | None:
    held = Assignment.objects.held().select_related("lane").filter(rater=request.rater_id).first()
    if held is None:
        return None
    if request.opened:
        held = leases.open_assignment(assignment_id=held.pk, rater_id=request.rater_id, now=request.now)
    else:
        held.lease_ends_at = request.now + leases.HOLD_DURATION
        Assignment.objects.held().filter(pk=held.pk).update(lease_ends_at=held.lease_ends_at)
    if held.lease_ends_at is None:
        raise AssignmentLeaseLost
    arm = held.lane.arm if held.lane is not None else SamplingSource.TOP_UP
    return Claim(held.pk, held.trace_id, held.purpose, arm, held.state, held.lease_ends_at, held.draw_id)


def _take_from_top(request: ClaimRequest) -> Claim | None:
    """Return None if nothing is left. An entry that another claim has locked may be free again soon: try repeatedly."""
    for _ in slots.retry_attempts():
        claim = take_slot(request._replace(from_top=True))
        if claim or not is_work_left(request):
            return claim
    raise QueueIsBusy


def explain_nothing_left(raters: Collection[int]) -> dict[int, NothingLeft]:
    """Return for each of these raters why no trace is left, in one query.

    It reads open slots and open leases by index, and stops at the first row that answers the question.
    """
    own = Assignment.objects.filter(rater=OuterRef("pk"))
    lanes = _lanes_with_slots()
    rows = Rater.objects.filter(pk__in=raters).annotate(
        free_at=Subquery(_assigned_to_others().values("lease_ends_at")[:1]),
        has_work=Exists(lanes.exclude(arm__in=slots.GOLD_SOURCES)),
        has_set=Exists(lanes.filter(arm=OuterRef("stage"))),
        has_rated=Exists(own.submitted()),
    )
    reasons = {}
    for pk, stage, free_at, has_work, has_set, has_rated in rows.values_list(
        "pk", "stage", "free_at", "has_work", "has_set", "has_rated"
    ):
        if free_at is not None:
            code = "assigned_to_others"
        elif has_set if stage in (RaterStage.TRAINING, RaterStage.SCREENING) else has_work:
            code = "kept_for_others"
        else:
            code = "all_labeled" if has_rated else "empty"
        reasons[pk] = NothingLeft(code, free_at)
    return reasons


# The next two queries read one row by its index for each lane and each lease. With joins, a planner that misjudges how
# much a rater has labeled would read all of that rater's work each time.


def _lanes_with_slots() -> QuerySet[Lane]:
    first = QueueEntry.objects.open().filter(lane=OuterRef("pk")).order_by("-key", "-trace")
    lanes = Lane.objects.open().filter(project=OuterRef("project"))
    return lanes.alias(first=Subquery(first.values("trace")[:1])).filter(first__isnull=False)


def _assigned_to_others() -> QuerySet[Assignment]:
    """Return work that may come back and that this rater has not had, in the order in which the leases end. No one
    waits for gold, which is served only beside work."""
    own = Assignment.objects.filter(rater=OuterRef(OuterRef("pk")), trace=OuterRef("trace"))
    others = Assignment.objects.open().filter(project=OuterRef("project"), purpose=AssignmentPurpose.WORK)
    given = PairReader.objects.filter(rater=OuterRef(OuterRef("pk")), pair=OuterRef("trace__pairing__pair"))
    other_half = given.exclude(half=OuterRef("trace__pairing__half"))
    new = others.alias(own=Subquery(own.values("pk")[:1])).filter(~Exists(other_half), own=None)
    return new.exclude(rater=OuterRef("pk")).order_by("lease_ends_at")
