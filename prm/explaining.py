"""Why a trace is read, in words, and where the PRM is unsure. For leads: who rates it must not see this first."""

from dataclasses import dataclass

import numpy as np
from django.utils.translation import gettext as _

from labeling.models import Draw, Trace
from labeling.models.queue import Arm
from prm import pools, registry
from prm.models import PRM, Score
from prm.selection import acquisitions, survival

_UNSURE = 0.25  # of what is not known about the first error; the step with the most of it always counts


@dataclass(frozen=True)
class Doubt:
    """One step: P(right | all before right), and which share of the uncertainty lies there."""

    position: int
    p_right: float | None  # None for context
    share: float
    is_unsure: bool

    @property
    def number(self) -> int:
        return self.position + 1


@dataclass(frozen=True)
class Why:
    words: str
    by: str  # the PRM that the steps' figures are of; empty where there is none
    steps: list[Doubt]

    @property
    def unsure(self) -> list[Doubt]:
        return [step for step in self.steps if step.is_unsure]


def why(trace: Trace) -> Why:
    draw = Draw.objects.filter(trace=trace).order_by("-pk").first()
    prm = _prm(trace, draw)
    return Why(_words(trace, draw), prm.label if prm else "", _doubts(prm, trace) if prm else [])


def _words(trace: Trace, draw: Draw | None) -> str:
    if trace.problem.is_reserve:
        return _("Its problem is set aside: readings of it judge PRMs, and train none.")
    if draw is None:
        return _("No batch has drawn it: it stands in the random order of the uniform lane.")
    told = {"rank": draw.rank, "batch": draw.batch, "left": draw.n_left, "percent": f"{draw.q * 100:.3g}"}
    if draw.arm == Arm.UNIFORM:
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


def _prm(trace: Trace, draw: Draw | None) -> PRM | None:
    """The one that drew it, as long as its scores are there; else the current one."""
    if draw is not None and draw.prm:
        version = draw.prm.partition(" ")[0]
        found = PRM.objects.filter(project=trace.project_id, version=int(version)) if version.isdigit() else None
        if found is not None and (prm := found.defer("weights").first()):
            return prm
    return registry.current(trace.project_id)


def _doubts(prm: PRM, trace: Trace) -> list[Doubt]:
    kept = Score.objects.filter(prm=prm, trace=trace).values_list("numbers", flat=True).first()
    if kept is None:
        return []
    pool, scores = pools.of_one(prm, bytes(kept))
    shares = survival.still_right_before(pool) * acquisitions.step_entropy(pool.hazards)
    shares = shares / max(float(shares.sum()), 1e-12)
    least = min(_UNSURE, float(shares.max(initial=1e-12)))
    return [
        Doubt(position, None if np.isnan(score) else 1 - float(hazard), float(share), bool(share >= least))
        for position, (score, hazard, share) in enumerate(zip(scores, pool.hazards, shares, strict=True))
    ]
