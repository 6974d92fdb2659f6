"""Why a trace was selected, and which steps the PRM is unsure about. For leads: annotators must not see this first.

Each reason has a code and a sentence. A known answer replaces every other reason, because such a trace is not ordinary
work. A returned trace and a request for an additional label are reported after the reason for the first selection.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.utils.translation import gettext_lazy as _

from formats import integers
from labeling.models import Gold, QueueEntry, Trace, TraceDraw
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from prm import drawable_pool, scores
from prm.models import PRM
from prm.selection import acquisitions

_UNSURE_SHARE = 0.25


class SelectionReason(enum.StrEnum):
    TRAINING_GOLD = "training_gold"
    SCREENING_GOLD = "screening_gold"
    HIDDEN_GOLD = "hidden_gold"
    CANARY = "canary"
    WITHDRAWN = "withdrawn"
    HELD_OUT = "held_out"
    RANDOM_DRAW = "random_draw"
    ACTIVE_DRAW = "active_draw"
    RANDOM_QUEUE = "random_queue"
    NOT_QUEUED = "not_queued"
    CHOSEN = "chosen"
    RETURNED = "returned"
    FURTHER_LABEL = "further_label"


_TEXTS = {
    SelectionReason.TRAINING_GOLD: _(
        "The answer is known: this trace is in the training set for new annotators, who see an explanation."
        " It is not counted in any statistic."
    ),
    SelectionReason.SCREENING_GOLD: _(
        "The answer is known: this trace is in the screening set for new annotators. It is not counted in agreement."
    ),
    SelectionReason.HIDDEN_GOLD: _(
        "The answer is known: this trace is hidden gold and measures the annotators’ accuracy. It is not "
        "counted in agreement."
    ),
    SelectionReason.CANARY: _(
        "The answer is known: this trace is a canary, which evaluates PRMs. It is never assigned."
    ),
    SelectionReason.WITHDRAWN: _("This trace was withdrawn and will not be assigned again."),
    SelectionReason.HELD_OUT: _(
        "The problem is in the held-out set: labels for this trace are used to evaluate PRMs, never to train them."
    ),
    SelectionReason.RANDOM_DRAW: _(
        "This trace was drawn at random, as number %(rank)d in batch %(batch)d: each of the %(left)d remaining"
        " traces was equally likely. Random draws are the control for active selection."
    ),
    SelectionReason.ACTIVE_DRAW: _(
        "This trace was drawn by active selection, as number %(rank)d in batch %(batch)d. Active selection "
        "prefers traces that the PRM is unsure about and that are quick to label. This trace’s chance of being "
        "drawn from the %(left)d remaining traces was %(percent)s%%."
    ),
    SelectionReason.RANDOM_QUEUE: _("This trace is queued in random order. It has not been selected for a batch."),
    SelectionReason.NOT_QUEUED: _("This trace is not in the queue and will not be assigned."),
    SelectionReason.RETURNED: _("An annotator returned this trace, so it is assigned before any new one."),
    SelectionReason.CHOSEN: _(
        "Someone moved this trace to the front of the queue. Labels submitted since then are not "
        "counted in the headline figures."
    ),
    SelectionReason.FURTHER_LABEL: _(
        "An additional label was requested because the existing labels differ or are incomplete. It is not"
        " counted in the headline figures."
    ),
}
_GOLD_REASONS = {
    GoldUse.TRAINING: SelectionReason.TRAINING_GOLD,
    GoldUse.SCREENING: SelectionReason.SCREENING_GOLD,
    GoldUse.HIDDEN: SelectionReason.HIDDEN_GOLD,
    GoldUse.CANARY: SelectionReason.CANARY,
}
_FOLLOW_UP_REASONS = {
    SamplingSource.CHOSEN: SelectionReason.CHOSEN,
    SamplingSource.TOP_UP: SelectionReason.RETURNED,
    SamplingSource.OPINION: SelectionReason.FURTHER_LABEL,
}


@dataclass(frozen=True)
class StepUncertainty:
    """One step: P(right | all before right), and its share of the trace's uncertainty about the first error."""

    number: int  # as annotators see it: context steps are not counted
    p_right: float | None  # None for context
    share: float
    is_unsure: bool


@dataclass(frozen=True)
class SelectionExplanation:
    """`by` is the label of the PRM whose scores `steps` shows, empty without scores."""

    reasons: list[SelectionReason]
    words: str
    by: str
    steps: list[StepUncertainty]


def explain_selection(trace: Trace, *, gold: Sequence[Gold], entries: Sequence[QueueEntry]) -> SelectionExplanation:
    """Explain a trace from its active gold and its queue entries with their lanes."""
    draw = TraceDraw.objects.filter(trace=trace).order_by("-pk").first()
    reasons = _find_reasons(trace, draw, gold, entries)
    values = (
        {"rank": draw.rank, "batch": draw.batch, "left": draw.n_left, "percent": f"{draw.q * 100:.3g}"} if draw else {}
    )
    prm = _find_prm(trace, draw)
    return SelectionExplanation(
        reasons=reasons,
        words=" ".join(str(_TEXTS[reason]) % values for reason in reasons),
        by=prm.label if prm else "",
        steps=_step_uncertainties(prm, trace) if prm else [],
    )


def _find_reasons(
    trace: Trace, draw: TraceDraw | None, gold: Sequence[Gold], entries: Sequence[QueueEntry]
) -> list[SelectionReason]:
    uses = {each.use for each in gold}
    if uses:
        return [reason for use, reason in _GOLD_REASONS.items() if use in uses]
    # An entry in the top-up lane matters only until it is assigned again.
    sources = {
        entry.lane.arm
        for entry in entries
        if entry.lane.closed_at is None and (entry.slots_left > 0 or entry.lane.arm != SamplingSource.TOP_UP)
    }
    follow_ups = [reason for source, reason in _FOLLOW_UP_REASONS.items() if source in sources]
    return [_find_main_reason(trace, draw, is_queued=bool(sources)), *follow_ups]


def _find_main_reason(trace: Trace, draw: TraceDraw | None, *, is_queued: bool) -> SelectionReason:
    if trace.withdrawn_at is not None:
        return SelectionReason.WITHDRAWN
    if trace.problem.is_reserve:
        return SelectionReason.HELD_OUT
    if draw is not None:
        return SelectionReason.RANDOM_DRAW if draw.arm == SamplingSource.UNIFORM else SelectionReason.ACTIVE_DRAW
    return SelectionReason.RANDOM_QUEUE if is_queued else SelectionReason.NOT_QUEUED


def _find_prm(trace: Trace, draw: TraceDraw | None) -> PRM | None:
    """Return the PRM by which the trace was drawn if it still exists, else the current one."""
    if draw is not None and draw.prm:
        version = integers.parse_integer(draw.prm.partition(" ")[0])
        prms = PRM.objects.filter(project=trace.project_id, version=version or 0)
        if prm := prms.defer("weights").first():
            return prm
    return PRM.objects.filter(project=trace.project_id, is_current=True).defer("weights", "trained").first()


def _step_uncertainties(prm: PRM, trace: Trace) -> list[StepUncertainty]:
    """Divide the entropy of the first error among the steps. The step with the largest share always counts as
    unsure."""
    columns = scores.load_scores(prm, [trace.pk]).get(trace.pk)
    if columns is None:
        return []
    trace_pool, step_scores = drawable_pool.make_pool_of_trace(prm, columns), columns[:, 0]
    shares = acquisitions.still_right_before(trace_pool) * acquisitions.step_entropy(trace_pool.hazards)
    shares = shares / max(float(shares.sum()), 1e-12)
    threshold = min(_UNSURE_SHARE, float(shares.max(initial=1e-12)))
    numbers = np.cumsum(~np.isnan(step_scores))
    return [
        StepUncertainty(
            int(number), None if np.isnan(score) else 1 - float(hazard), float(share), bool(share >= threshold)
        )
        for number, score, hazard, share in zip(numbers, step_scores, trace_pool.hazards, shares, strict=True)
    ]
