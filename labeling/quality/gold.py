"""Gold: traces with a known first error. The only module that creates, corrects, retires and serves gold.

Corrections and retirements lock the trace, as submits do. So corrections and submits are serialized, and a correction
rescores every earlier answer.
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
from labeling.quality import consensus, gold_monitor, project_stats, settlements
from stats import strata
from stats.strata import GoldCandidate

MAX_GOLD_EXPOSURES = 50  # raters who opened it
MIN_GOLD_VOTES = 3  # a consensus with fewer votes cannot become gold
UNLIMITED_SLOTS = 30_000  # more than there are raters: each rater gets every trace of a training or screening set
_LANES = {
    GoldUse.TRAINING.value: (SamplingSource.TRAINING, UNLIMITED_SLOTS),
    GoldUse.SCREENING.value: (SamplingSource.SCREENING, UNLIMITED_SLOTS),
    GoldUse.HIDDEN.value: (SamplingSource.GOLD, MAX_GOLD_EXPOSURES),
}
_WORK_SOURCES = (
    SamplingSource.UNIFORM,
    SamplingSource.POLICY,
    SamplingSource.RESERVE,
    SamplingSource.CHOSEN,
    SamplingSource.TOP_UP,
    SamplingSource.OPINION,
)


class InvalidGold(Exception):
    """The known answer is impossible for the trace, or the trace is already gold. The message is meant for users."""

    def __init__(self, message: str, code: str = "") -> None:
        self.code = code
        super().__init__(message)


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
    """Create gold from the accepted first errors: positions of steps, None for "no error".

    `ratings` and `explanations` are by option, for steps with a known rating; raters see them as training feedback.
    `enqueue_gold` puts the trace into a lane.
    """
    _refuse_impossible(trace, accepted_first_errors, ratings or {})
    with transaction.atomic():
        settlements.lock_traces(trace_ids=[trace.pk])
        if Gold.objects.active().filter(trace=trace, use=use).exists():
            raise InvalidGold(_("This trace is already gold for this use. Choose another use."), "already_gold")
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
    """Delete the gold of traces that no one has opened, before the traces are deleted."""
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
    """Change the accepted first errors and rescore earlier answers. Return how many verdicts changed.

    `ratings` by option replace the stored ones; None removes one. Without `ratings`, stored ratings that contradict the
    new answer are deleted.
    """
    _refuse_impossible(gold.trace, accepted_first_errors, ratings or {})
    with transaction.atomic():
        settlements.lock_traces(trace_ids=[gold.trace_id])
        gold.refresh_from_db(fields=["accepted_first_errors", "explanation"])
        before = gold.accepted_first_errors
        gold.accepted_first_errors = list(accepted_first_errors)
        gold.explanation = gold.explanation if explanation is None else explanation
        gold.save(update_fields=["accepted_first_errors", "explanation"])
        if ratings is None:
            _delete_contradicted_ratings(gold)
        else:
            _replace_ratings(gold, ratings, explanations or {})
        changed = gold_monitor.rescore_gold_answers(gold=gold, now=now)
        if changed:
            project_stats.mark_stats_stale(project_id=gold.trace.project_id, now=now)
        _log_event("gold.corrected", gold, by, now, before=before, after=gold.accepted_first_errors, changed=changed)
    return changed


def retire_gold(*, gold: Gold, by: User | None, now: dt.datetime) -> bool:
    """Stop serving this gold. Answers are kept, and open assignments are still scored."""
    with transaction.atomic():
        settlements.lock_traces(trace_ids=[gold.trace_id])
        retired = Gold.objects.active().filter(pk=gold.pk).update(retired_at=now)
        if retired:
            _log_event("gold.retired", gold, by, now, use=gold.use)
            if gold.use in _LANES:
                arm, _slots = _LANES[gold.use]
                queue.close_entries(project_id=gold.trace.project_id, arm=arm, trace_ids=[gold.trace_id], now=now)
    return bool(retired)


def move_gold(*, gold: Gold, use: GoldUse, by: User | None, now: dt.datetime) -> Gold:
    """Retire gold for its current use, and create it for another one. `enqueue_gold` serves it."""
    with transaction.atomic():
        retire_gold(gold=gold, by=by, now=now)
        gold.refresh_from_db(fields=["accepted_first_errors", "explanation"])
        ratings = list(GoldRating.objects.filter(gold=gold))
        return make_gold(
            trace=gold.trace,
            use=use,
            accepted_first_errors=gold.accepted_first_errors,
            explanation=gold.explanation,
            ratings={row.option_id: row.rating for row in ratings},
            explanations={row.option_id: row.explanation for row in ratings},
            by=by,
            now=now,
        )


def retire_overexposed_gold(*, project_id: int, now: dt.datetime) -> int:
    """Retire gold that 50 raters have opened, because raters may know it by heart. Return how many were retired."""
    hidden = Gold.objects.active().filter(trace__project_id=project_id, use=GoldUse.HIDDEN)
    is_opened = Q(trace__assignments__purpose=AssignmentPurpose.GOLD, trace__assignments__opened_at__isnull=False)
    exposed = hidden.annotate(n_raters=Count("trace__assignments__rater", filter=is_opened, distinct=True))
    overexposed = exposed.filter(n_raters__gte=MAX_GOLD_EXPOSURES).select_related("trace")
    return sum(retire_gold(gold=gold, by=None, now=now) for gold in overexposed)


def promote_to_gold(*, trace: Trace, use: GoldUse, by: User | None, now: dt.datetime, explanation: str = "") -> Gold:
    """Make gold from a decided trace, or from a settled one with at least three votes."""
    revision = consensus.current_revisions(project_id=trace.project_id).filter(trace=trace).first()
    if revision is None or (revision.source == ConsensusSource.RATERS and revision.n_votes < MIN_GOLD_VOTES):
        raise InvalidGold(
            _("This trace cannot become gold yet. Adjudicate it, or wait for a consensus of at least %(n)d annotators.")
            % {"n": MIN_GOLD_VOTES},
            "few_votes",
        )
    return make_gold(
        trace=trace, use=use, accepted_first_errors=[revision.first_error], by=by, now=now, explanation=explanation
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
    """Delete negative ratings of steps before the first error, and other ratings of the error itself."""
    own = GoldRating.objects.filter(gold=gold, option__position=0)
    errors = [position for position in gold.accepted_first_errors if position is not None]
    contradicted = own.filter(rating=-1).exclude(option__step__position__in=errors)
    if len(errors) == len(gold.accepted_first_errors):
        contradicted = contradicted.filter(option__step__position__lt=max(errors))
        if len(errors) == 1:
            own.filter(option__step__position=errors[0]).exclude(rating=-1).delete()
    contradicted.delete()


def _refuse_impossible(trace: Trace, first_errors: Sequence[int | None], ratings: Mapping[int, int | None]) -> None:
    if not first_errors:
        raise InvalidGold(_("Choose the first error, or “no error”."), "no_answer")
    rateable = set(trace.steps.filter(is_rateable=True).values_list("position", flat=True))
    outside = sorted({position for position in first_errors if position is not None} - rateable)
    if outside:
        steps = ", ".join(str(position + 1) for position in outside)
        raise InvalidGold(
            _("These steps of this trace cannot be rated: %(steps)s. Choose different steps.") % {"steps": steps},
            "no_such_step",
        )
    if Option.objects.filter(pk__in=ratings, step__trace=trace).count() != len(ratings):
        raise InvalidGold(_("Not saved: one of the ratings belongs to another trace. Reload the page."), "other_trace")


# Serving


def enqueue_gold(*, project_id: int, use: str, trace_ids: Sequence[int], now: dt.datetime) -> int:
    """Serve gold of this use in the given order, and stop serving the traces as work. Canaries are never served.

    Return how many traces are new in their lane.
    """
    for arm in _WORK_SOURCES:
        queue.close_entries(project_id=project_id, arm=arm, trace_ids=trace_ids, now=now)
    if use not in _LANES:
        return 0
    arm, slots = _LANES[use]
    return queue.enqueue(project_id=project_id, arm=arm, trace_ids=trace_ids, slots=slots, now=now)


def arrange_hidden_gold(*, project_id: int, now: dt.datetime) -> int:
    """Reorder the hidden gold lane so that every few traces cover all strata and domains. Return how many moved.

    In import order, a rater who never reports an error would be right for long stretches. Runs nightly; gold made
    during the day is shuffled in first.
    """
    rows = Gold.objects.active().filter(trace__project=project_id, use=GoldUse.HIDDEN)
    columns = ("trace_id", "trace__problem_id", "accepted_first_errors", "trace__n_steps", "trace__problem__domain")
    candidates = [
        GoldCandidate(trace, problem, strata.stratum_of(accepted, n_steps), domain)
        for trace, problem, accepted, n_steps, domain in rows.values_list(*columns)
    ]
    seed = f"project {project_id} gold"
    order = [candidate.trace for candidate in strata.interleave_strata(candidates, seed=seed)]
    return queue.reorder_lane(project_id=project_id, arm=SamplingSource.GOLD, trace_ids=order, now=now)
