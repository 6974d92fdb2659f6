"""What PRMs say of traces. Alone changes Score rows."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from labeling.agreement.arrays import Floats
from labeling.models import Project, Trace
from labeling.models.trace import TraceKind
from prm import packing, registry
from prm.models import PRM, Score
from prm.texts import Text


@dataclass(frozen=True)
class Freshness:
    """How many of the traces that can be scored the current PRM has scored; the rest have older scores or none."""

    prm: PRM | None
    n_traces: int
    n_fresh: int

    @property
    def n_stale(self) -> int:
        return self.n_traces - self.n_fresh

    @property
    def share(self) -> float:
        return self.n_fresh / self.n_traces if self.n_traces else 1.0


def write(*, prm: PRM, texts: Sequence[Text], scores: Sequence[Floats], now: dt.datetime) -> int:
    """Traces that this PRM has scored already stay as they are: the same version says the same."""
    rows = [
        Score(prm=prm, trace_id=text.trace, numbers=packing.pack(each, text.steps, text.is_rateable), scored_at=now)
        for text, each in zip(texts, scores, strict=True)
    ]
    return len(Score.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500))


def scorable(project: Project | int) -> QuerySet[Trace]:
    """Every trace that is there to be read or has been: not withdrawn, with steps, not made while rating."""
    return Trace.objects.filter(project=project, withdrawn_at=None, kind=TraceKind.PREGENERATED, n_steps__gt=0)


def unscored(prm: PRM) -> QuerySet[Trace]:
    return scorable(prm.project_id).filter(~Exists(Score.objects.filter(prm=prm, trace=OuterRef("pk"))))


def freshness(project: Project) -> Freshness:
    prm, n_traces = registry.current(project.pk), scorable(project).count()
    return Freshness(prm, n_traces, n_traces - unscored(prm).count() if prm else 0)


def of_trace(prm: PRM, trace_id: int) -> list[float | None] | None:
    """One number a step, None for context; None altogether where this PRM has not scored the trace."""
    kept = Score.objects.filter(prm=prm, trace=trace_id).values_list("numbers", flat=True).first()
    if kept is None:
        return None
    numbers, _ = packing.unpack([bytes(kept)])
    return [None if np.isnan(score) else float(score) for score in numbers[:, 0]]
