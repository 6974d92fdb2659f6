"""Why a trace is read, in words, and where the PRM is unsure. For leads: who rates it must not see this first.

Every arm has its sentence. A known answer goes before everything else: such a trace is no work, however it came here.
What came back, and what was asked for since, is told behind the reason for which the trace is read at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from formats import integers
from labeling.models import Gold, QueueEntry, Trace, TraceDraw
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from prm import drawable_pool, registry
from prm.models import PRM, Score
from prm.selection import acquisitions, survival

_UNSURE = 0.25  # of what is not known about the first error; the step with the most of it always counts


@dataclass(frozen=True)
class StepUncertainty:
    """One step: P(right | all before right), and which share of the uncertainty lies there."""

    number: int  # as raters see it: context is not counted
    p_right: float | None  # None for context
    share: float
    is_unsure: bool


@dataclass(frozen=True)
class SelectionExplanation:
    words: str
    by: str  # the PRM that the steps' figures are of; empty where there is none
    steps: list[StepUncertainty]

    @property
    def unsure(self) -> list[StepUncertainty]:
        return [step for step in self.steps if step.is_unsure]


def explain_selection(trace: Trace, *, gold: Sequence[Gold], entries: Sequence[QueueEntry]) -> SelectionExplanation:
    """`gold` that is in use and the `entries` of the trace with their lanes: whoever asks has them at hand."""
    draw = TraceDraw.objects.filter(trace=trace).order_by("-pk").first()
    prm = _find_prm(trace, draw)
    return SelectionExplanation(
        _explanation_text(trace, draw, gold, entries),
        prm.label if prm else "",
        _step_uncertainties(prm, trace) if prm else [],
    )


_KNOWN_ANSWER_TEXTS = {
    GoldUse.TRAINING: gettext_lazy(
        "Its answer is known: everybody on the way in rates it in training and then reads why. It is no work, and"
        " counts in no figure."
    ),
    GoldUse.SCREENING: gettext_lazy(
        "Its answer is known: it is in the screening set, by which newcomers are let in. It counts in no figure of"
        " agreement."
    ),
    GoldUse.HIDDEN: gettext_lazy(
        "Its answer is known: it is handed out hidden among the work, and how raters meet it says how good they are. It"
        " counts in no figure of agreement."
    ),
}
_FOLLOW_UP_TEXTS = {
    SamplingSource.TOP_UP: gettext_lazy(
        "A reading of it was given back: whoever asks next is given that before anything new."
    ),
    SamplingSource.OPINION: gettext_lazy(
        "A further opinion was asked for since, because its readings differ or were cut off; it does not count in the"
        " headline."
    ),
}


def _explanation_text(trace: Trace, draw: TraceDraw | None, gold: Sequence[Gold], entries: Sequence[QueueEntry]) -> str:
    uses = {each.use for each in gold}
    if uses:
        return " ".join(str(sentence) for use, sentence in _KNOWN_ANSWER_TEXTS.items() if use in uses)
    served = [(entry.lane.arm, entry.slots_left > 0) for entry in entries if entry.lane.closed_at is None]
    arms = {
        arm for arm, is_open in served if is_open or arm != SamplingSource.TOP_UP
    }  # a slot that came back is given again
    since = [str(sentence) for arm, sentence in _FOLLOW_UP_TEXTS.items() if arm in arms]
    return " ".join([_main_reason(trace, draw, arms), *since])


def _main_reason(trace: Trace, draw: TraceDraw | None, arms: set[str]) -> str:
    """For what it is read at all."""
    if trace.withdrawn_at is not None:
        return _("It was withdrawn: nobody is given it.")
    if trace.problem.is_reserve:
        return _("Its problem is set aside: readings of it judge PRMs, and train none.")
    if draw is not None:
        return _describe_draw(draw)
    if arms:
        return _("No batch has drawn it: it stands in the random order of the uniform lane.")
    return _("It stands in no lane: nobody is given it.")


def _describe_draw(draw: TraceDraw) -> str:
    told = {"rank": draw.rank, "batch": draw.batch, "left": draw.n_left, "percent": f"{draw.q * 100:.3g}"}
    if draw.arm == SamplingSource.UNIFORM:
        return (
            _(
                "Drawn as number %(rank)d of batch %(batch)d by the uniform arm: any of the %(left)d traces left had"
                " the same chance there. Such readings are the control."
            )
            % told
        )
    return (
        _(
            "Drawn as number %(rank)d of batch %(batch)d by the policy, which goes for what the PRM is unsure of and is"
            " quick to read. Its chance among %(left)d traces was %(percent)s %%."
        )
        % told
    )


def _find_prm(trace: Trace, draw: TraceDraw | None) -> PRM | None:
    """The one that drew it, as long as its scores are there; else the current one."""
    if draw is not None and draw.prm:
        version = integers.parse_integer(draw.prm.partition(" ")[0])
        found = PRM.objects.filter(project=trace.project_id, version=version or 0)
        if prm := found.defer("weights").first():
            return prm
    return registry.current_prm(trace.project_id)


def _step_uncertainties(prm: PRM, trace: Trace) -> list[StepUncertainty]:
    kept = Score.objects.filter(prm=prm, trace=trace).values_list("numbers", flat=True).first()
    if kept is None:
        return []
    pool, scores = drawable_pool.load_pool_of_trace(prm, bytes(kept))
    shares = survival.still_right_before(pool) * acquisitions.step_entropy(pool.hazards)
    shares = shares / max(float(shares.sum()), 1e-12)
    least = min(_UNSURE, float(shares.max(initial=1e-12)))
    numbers = np.cumsum(~np.isnan(scores))
    return [
        StepUncertainty(int(number), None if np.isnan(score) else 1 - float(hazard), float(share), bool(share >= least))
        for number, score, hazard, share in zip(numbers, scores, pool.hazards, shares, strict=True)
    ]
