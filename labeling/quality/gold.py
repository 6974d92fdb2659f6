"""What is known of a trace before anybody rates it. Alone makes gold, corrects it and takes it out of use.

Correcting and retiring hold the trace, as every submit of it does: of two who correct, and of a correction and a submit
that is scored, one comes after the other, and whatever was scored by what is no longer so is scored anew.
"""

import datetime as dt
from collections.abc import Mapping, Sequence

from django.db import transaction
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling import queue
from labeling.models import Gold, GoldRating, Option, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.consensus import ConsensusSource
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from labeling.quality import consensus, gold_scoring, project_stats, resolution_state
from stats import strata
from stats.strata import GoldCandidate

MAX_GOLD_EXPOSURES = 50  # people who saw it
MIN_GOLD_VOTES = 3  # of a consensus that gold is made of
_ARMS = {
    GoldUse.TRAINING.value: SamplingSource.TRAINING,
    GoldUse.SCREENING.value: SamplingSource.SCREENING,
    GoldUse.HIDDEN.value: SamplingSource.GOLD,
}


class InvalidGold(Exception):
    """What is said of the trace cannot be true of it: an error at a step that it does not have, or nothing at all; or
    it has been said already. `str()` of it may be shown to people: steps count from 1 there."""


def make_gold(
    *,
    trace: Trace,
    use: GoldUse,
    accepted_first_errors: Sequence[int | None],
    by: User | None,
    now: dt.datetime,
    explanation: str = "",
    ratings: Mapping[int, int | None] | None = None,
    explanations: Mapping[int, str] | None = None,
) -> Gold:
    """Say where the first error of a trace may be seen: positions of steps, None for "there is no error".

    `ratings` are by option, where more is known than the first error, and so are their `explanations`: after a trace
    of training its rater reads them. The trace is served as gold once it is put into
    a gold or screening lane: `queue.enqueue`.
    """
    _refuse_impossible(trace, accepted_first_errors, ratings or {})
    with transaction.atomic():
        resolution_state.lock_traces(trace_ids=[trace.pk])
        if Gold.objects.active().filter(trace=trace, use=use).exists():
            raise InvalidGold(_("The trace is already gold for this use."))
        gold = Gold.objects.create(
            trace=trace,
            use=use,
            accepted_first_errors=list(accepted_first_errors),
            explanation=explanation,
            made_by=by,
            made_at=now,
        )
        _replace_ratings(gold, ratings or {}, explanations or {})
        audit_log.log_event(what="gold.made", by=by, now=now, project=trace.project_id, subject=f"trace:{trace.pk}")
    return gold


def delete_unopened_gold(*, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Delete what was known of traces that nobody has opened, before the traces themselves go."""
    n_deleted, _ = Gold.objects.filter(trace_id__in=trace_ids, made_at__lte=now).delete()
    return n_deleted


def correct_gold(
    *,
    gold: Gold,
    accepted_first_errors: Sequence[int | None],
    by: User | None,
    now: dt.datetime,
    explanation: str | None = None,
    ratings: Mapping[int, int | None] | None = None,
    explanations: Mapping[int, str] | None = None,
) -> int:
    """What was held for known is not so. Answers given before are judged anew; says how many now stand otherwise.

    `ratings` are by option: those that are named are said anew, None takes one away. Where none are named, those that
    cannot be true any more go.
    """
    _refuse_impossible(gold.trace, accepted_first_errors, ratings or {})
    with transaction.atomic():
        resolution_state.lock_traces(trace_ids=[gold.trace_id])
        gold.refresh_from_db(fields=["accepted_first_errors", "explanation"])
        before = gold.accepted_first_errors
        gold.accepted_first_errors = list(accepted_first_errors)
        gold.explanation = gold.explanation if explanation is None else explanation
        gold.save(update_fields=["accepted_first_errors", "explanation"])
        if ratings is None:
            _delete_contradicted_ratings(gold)
        else:
            _replace_ratings(gold, ratings, explanations or {})
        changed = gold_scoring.rescore_gold_answers(gold=gold, now=now)
        if changed:
            project_stats.mark_stats_stale(project_id=gold.trace.project_id, now=now)
        _log_event("gold.corrected", gold, by, now, before=before, after=gold.accepted_first_errors, changed=changed)
    return changed


def retire_gold(*, gold: Gold, by: User | None, now: dt.datetime) -> bool:
    """Show it to nobody any more. Answers stay, and who has it in hand is still scored."""
    with transaction.atomic():
        resolution_state.lock_traces(trace_ids=[gold.trace_id])
        retired = Gold.objects.active().filter(pk=gold.pk).update(retired_at=now)
        if retired:
            _log_event("gold.retired", gold, by, now, use=gold.use)
            if gold.use in _ARMS:
                queue.close_entries(
                    project_id=gold.trace.project_id, arm=_ARMS[gold.use], trace_ids=[gold.trace_id], now=now
                )
    return bool(retired)


def move_gold(*, gold: Gold, use: GoldUse, by: User | None, now: dt.datetime) -> Gold:
    """What is known of the trace is used for something else from now on, and no longer for what it was. It is served
    once it is handed out anew."""
    with transaction.atomic():
        retire_gold(gold=gold, by=by, now=now)
        gold.refresh_from_db(fields=["accepted_first_errors", "explanation"])
        told = list(GoldRating.objects.filter(gold=gold))
        return make_gold(
            trace=gold.trace,
            use=use,
            accepted_first_errors=gold.accepted_first_errors,
            explanation=gold.explanation,
            ratings={row.option_id: row.rating for row in told},
            explanations={row.option_id: row.explanation for row in told},
            by=by,
            now=now,
        )


def retire_overexposed_gold(*, project_id: int, now: dt.datetime) -> int:
    """Gold that so many have met is known by heart, also where they gave it back. Says how many were retired."""
    hidden = Gold.objects.active().filter(trace__project_id=project_id, use=GoldUse.HIDDEN)
    saw = Q(trace__assignments__purpose=AssignmentPurpose.GOLD, trace__assignments__opened_at__isnull=False)
    met = hidden.annotate(met=Count("trace__assignments__rater", filter=saw, distinct=True))
    worn_out = met.filter(met__gte=MAX_GOLD_EXPOSURES).select_related("trace")
    return sum(retire_gold(gold=gold, by=None, now=now) for gold in worn_out)


def promote_to_gold(*, trace: Trace, use: GoldUse, by: User | None, now: dt.datetime, explanation: str = "") -> Gold:
    """Make gold of what raters agreed on: of a settled trace that three or more named a place for, or a decided one."""
    found = consensus.current_revisions(project_id=trace.project_id).filter(trace=trace).first()
    if found is None or (found.source == ConsensusSource.RATERS and found.n_votes < MIN_GOLD_VOTES):
        raise InvalidGold(
            _("Gold is made of a consensus of %(n)d raters or more, or of a decision.") % {"n": MIN_GOLD_VOTES}
        )
    return make_gold(
        trace=trace, use=use, accepted_first_errors=[found.first_error], by=by, now=now, explanation=explanation
    )


def _log_event(what: str, gold: Gold, by: User | None, now: dt.datetime, **detail: object) -> None:
    subject = f"trace:{gold.trace_id}"
    audit_log.log_event(what=what, by=by, now=now, project=gold.trace.project_id, subject=subject, detail=detail)


def _replace_ratings(gold: Gold, ratings: Mapping[int, int | None], explanations: Mapping[int, str]) -> None:
    GoldRating.objects.filter(gold=gold, option__in=ratings).delete()
    GoldRating.objects.bulk_create(
        GoldRating(gold=gold, option_id=option, rating=rating, explanation=explanations.get(option, ""))
        for option, rating in ratings.items()
        if rating is not None
    )


def _delete_contradicted_ratings(gold: Gold) -> None:
    """A step of the trace that is called negative before the first error, or not negative where the error is."""
    own = GoldRating.objects.filter(gold=gold, option__position=0)
    places = [place for place in gold.accepted_first_errors if place is not None]
    wrong = own.filter(rating=-1).exclude(option__step__position__in=places)
    if len(places) == len(gold.accepted_first_errors):
        wrong = wrong.filter(option__step__position__lt=max(places))
        if len(places) == 1:
            own.filter(option__step__position=places[0]).exclude(rating=-1).delete()
    wrong.delete()


def _refuse_impossible(trace: Trace, first_errors: Sequence[int | None], ratings: Mapping[int, int | None]) -> None:
    if not first_errors:
        raise InvalidGold(_("Say where the first error may be seen, or that there is none."))
    rateable = set(trace.steps.filter(is_rateable=True).values_list("position", flat=True))
    outside = sorted({position for position in first_errors if position is not None} - rateable)
    if outside:
        told = ", ".join(str(position + 1) for position in outside)
        raise InvalidGold(_("This trace has no step %(steps)s that is rated.") % {"steps": told})
    if Option.objects.filter(pk__in=ratings, step__trace=trace).count() != len(ratings):
        raise InvalidGold(_("A rating belongs to an option of another trace."))


# Hands known traces out: on the way in to everybody, hidden among the work to so many that it is not known by heart.


# Every rater gets every trace of a set: no number of raters uses it up.
UNLIMITED_SLOTS = 30_000
_WORK_ARMS = (
    SamplingSource.UNIFORM,
    SamplingSource.POLICY,
    SamplingSource.RESERVE,
    SamplingSource.TOP_UP,
    SamplingSource.OPINION,
)
_LANES = {
    GoldUse.TRAINING.value: (SamplingSource.TRAINING, UNLIMITED_SLOTS),
    GoldUse.SCREENING.value: (SamplingSource.SCREENING, UNLIMITED_SLOTS),
    GoldUse.HIDDEN.value: (SamplingSource.GOLD, MAX_GOLD_EXPOSURES),
}


def enqueue_gold(*, project_id: int, use: str, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Gold of this use is handed out from now on, a set in the order given, and is no longer work itself. A canary is
    handed to nobody. Says how many traces are new in their lane."""
    for arm in _WORK_ARMS:
        queue.close_entries(project_id=project_id, arm=arm, trace_ids=trace_ids, now=now)
    if use not in _LANES:
        return 0
    arm, slots = _LANES[use]
    return queue.enqueue(project_id=project_id, arm=arm, trace_ids=trace_ids, slots=slots, now=now)


def arrange_hidden_gold(*, project_id: int, now: dt.datetime) -> int:
    """Hidden gold is met so that every few traces of it have as many without an error as with one early, in the middle
    and late, and all domains: in the order of the pool, who sees no errors anywhere would be right for long stretches.
    Gold that is made by day is shuffled in and finds its place by night. Says how many traces found another place."""
    rows = Gold.objects.active().filter(trace__project=project_id, use=GoldUse.HIDDEN)
    columns = ("trace_id", "trace__problem_id", "accepted_first_errors", "trace__n_steps", "trace__problem__domain")
    known = [
        GoldCandidate(trace, problem, strata.stratum_of(accepted, n_steps), domain)
        for trace, problem, accepted, n_steps, domain in rows.values_list(*columns)
    ]
    order = [each.trace for each in strata.interleave_strata(known, seed=f"project {project_id} gold")]
    return queue.reorder_lane(project_id=project_id, arm=SamplingSource.GOLD, trace_ids=order, now=now)
