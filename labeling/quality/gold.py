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
from events import log
from labeling import queue
from labeling.models import Gold, GoldRating, Option, Trace
from labeling.models.assignment import Purpose
from labeling.models.consensus import ConsensusSource
from labeling.models.quality import GoldUse
from labeling.models.queue import Arm
from labeling.quality import consensus, figures, scoring, settlements

WORN_OUT_AFTER = 50  # people who saw it
LEAST_VOTES = 3  # of a consensus that gold is made of
_ARMS = {
    GoldUse.TRAINING.value: Arm.TRAINING,
    GoldUse.SCREENING.value: Arm.SCREENING,
    GoldUse.HIDDEN.value: Arm.GOLD,
}


class NotKnowable(Exception):
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
        settlements.hold(trace_ids=[trace.pk])
        if Gold.objects.active().filter(trace=trace, use=use).exists():
            raise NotKnowable(_("The trace is already gold for this use."))
        gold = Gold.objects.create(
            trace=trace,
            use=use,
            accepted_first_errors=list(accepted_first_errors),
            explanation=explanation,
            made_by=by,
            made_at=now,
        )
        _rate_anew(gold, ratings or {}, explanations or {})
        log.append(what="gold.made", by=by, now=now, project=trace.project_id, subject=f"trace:{trace.pk}")
    return gold


def forget(*, trace_ids: Sequence[int], now: dt.datetime) -> int:
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
        settlements.hold(trace_ids=[gold.trace_id])
        gold.refresh_from_db(fields=["accepted_first_errors", "explanation"])
        before = gold.accepted_first_errors
        gold.accepted_first_errors = list(accepted_first_errors)
        gold.explanation = gold.explanation if explanation is None else explanation
        gold.save(update_fields=["accepted_first_errors", "explanation"])
        if ratings is None:
            _forget_contradicted(gold)
        else:
            _rate_anew(gold, ratings, explanations or {})
        changed = scoring.judge_anew(gold=gold, now=now)
        if changed:
            figures.mark_stale(project_id=gold.trace.project_id, now=now)
        _say("gold.corrected", gold, by, now, before=before, after=gold.accepted_first_errors, changed=changed)
    return changed


def retire_gold(*, gold: Gold, by: User | None, now: dt.datetime) -> bool:
    """Show it to nobody any more. Answers stay, and who has it in hand is still scored."""
    with transaction.atomic():
        settlements.hold(trace_ids=[gold.trace_id])
        retired = Gold.objects.active().filter(pk=gold.pk).update(retired_at=now)
        if retired:
            _say("gold.retired", gold, by, now, use=gold.use)
            if gold.use in _ARMS:
                queue.take_out(
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


def retire_worn_out(*, project_id: int, now: dt.datetime) -> int:
    """Gold that so many have met is known by heart, also where they gave it back. Says how many were retired."""
    hidden = Gold.objects.active().filter(trace__project_id=project_id, use=GoldUse.HIDDEN)
    saw = Q(trace__assignments__purpose=Purpose.GOLD, trace__assignments__opened_at__isnull=False)
    met = hidden.annotate(met=Count("trace__assignments__rater", filter=saw, distinct=True))
    worn_out = met.filter(met__gte=WORN_OUT_AFTER).select_related("trace")
    return sum(retire_gold(gold=gold, by=None, now=now) for gold in worn_out)


def promote(*, trace: Trace, use: GoldUse, by: User | None, now: dt.datetime, explanation: str = "") -> Gold:
    """Make gold of what raters agreed on: of a settled trace that three or more named a place for, or a decided one."""
    found = consensus.current(project_id=trace.project_id).filter(trace=trace).first()
    if found is None or (found.source == ConsensusSource.RATERS and found.n_votes < LEAST_VOTES):
        raise NotKnowable(
            _("Gold is made of a consensus of %(n)d raters or more, or of a decision.") % {"n": LEAST_VOTES}
        )
    return make_gold(
        trace=trace, use=use, accepted_first_errors=[found.first_error], by=by, now=now, explanation=explanation
    )


def _say(what: str, gold: Gold, by: User | None, now: dt.datetime, **detail: object) -> None:
    subject = f"trace:{gold.trace_id}"
    log.append(what=what, by=by, now=now, project=gold.trace.project_id, subject=subject, detail=detail)


def _rate_anew(gold: Gold, ratings: Mapping[int, int | None], explanations: Mapping[int, str]) -> None:
    GoldRating.objects.filter(gold=gold, option__in=ratings).delete()
    GoldRating.objects.bulk_create(
        GoldRating(gold=gold, option_id=option, rating=rating, explanation=explanations.get(option, ""))
        for option, rating in ratings.items()
        if rating is not None
    )


def _forget_contradicted(gold: Gold) -> None:
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
        raise NotKnowable(_("Say where the first error may be seen, or that there is none."))
    rateable = set(trace.steps.filter(is_rateable=True).values_list("position", flat=True))
    outside = sorted({position for position in first_errors if position is not None} - rateable)
    if outside:
        told = ", ".join(str(position + 1) for position in outside)
        raise NotKnowable(_("This trace has no step %(steps)s that is rated.") % {"steps": told})
    if Option.objects.filter(pk__in=ratings, step__trace=trace).count() != len(ratings):
        raise NotKnowable(_("A rating belongs to an option of another trace."))
