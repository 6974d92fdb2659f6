"""Stored scores of traces: save, load, delete, and count how fresh they are. Only this module changes Score rows."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.core.cache import cache
from django.db.models import Exists, OuterRef, QuerySet

from labeling.models import Project, Trace, TraceDraw
from labeling.models.trace import TraceKind
from prm import registry, score_encoding
from prm.models import PRM, Generation, Score
from prm.models.generation import RUNNING
from prm.trace_texts import TraceText
from stats.arrays import Floats

RETENTION = dt.timedelta(days=14)  # after a later version became current
_TRACES_PER_DELETE = 500
_MANY = 50_000  # counting more than this takes over 50 ms


@dataclass(frozen=True)
class ScoreFreshness:
    """How many scorable traces the current PRM has scored; the others have older scores or none."""

    prm: PRM | None
    n_traces: int
    n_fresh: int

    @property
    def n_stale(self) -> int:
        return self.n_traces - self.n_fresh

    @property
    def share(self) -> float:
        return self.n_fresh / self.n_traces if self.n_traces else 1.0


def save_scores(*, prm: PRM, texts: Sequence[TraceText], scores: Sequence[Floats], now: dt.datetime) -> int:
    """Save new scores and return their number. Scores of the same version are never overwritten."""
    rows = [
        Score(
            prm=prm,
            trace_id=text.trace,
            numbers=score_encoding.encode_scores(each, text.steps, text.is_rateable),
            scored_at=now,
        )
        for text, each in zip(texts, scores, strict=True)
    ]
    return len(Score.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500))


def delete_old_scores(*, now: dt.datetime) -> int:
    """Delete the scores of replaced versions after the retention time, and return their number.

    Scores by which a trace was drawn are kept to explain the draw, and so are those of the version for a rollback.
    """
    n_deleted = 0
    for prm in _outdated_prms(now):
        last = 0
        while traces := list(_next_scored_traces(prm, last)):
            last = traces[-1]
            drawn = TraceDraw.objects.filter(trace=OuterRef("trace"), prm=prm.label)
            n_deleted += Score.objects.filter(~Exists(drawn), prm=prm, trace__in=traces).delete()[0]
    return n_deleted


def _outdated_prms(now: dt.datetime) -> list[PRM]:
    later = PRM.objects.filter(project=OuterRef("project"), is_current=True, version__gt=OuterRef("version"))
    is_replaced = Exists(later.filter(made_current_at__lt=now - RETENTION).exclude(predecessor=OuterRef("pk")))
    running = Generation.objects.filter(stage__in=RUNNING)
    is_used = Exists(running.filter(candidate=OuterRef("pk"))) | Exists(running.filter(scored_with=OuterRef("pk")))
    has_scores = Exists(Score.objects.filter(prm=OuterRef("pk")))
    return list(PRM.objects.filter(is_replaced, ~is_used, has_scores).defer("weights", "trained").order_by("pk"))


def _next_scored_traces(prm: PRM, after: int) -> QuerySet[Score, int]:
    rows = Score.objects.filter(prm=prm, trace__gt=after).order_by("trace_id")
    return rows.values_list("trace_id", flat=True)[:_TRACES_PER_DELETE]


def scorable_traces(project: Project | int) -> QuerySet[Trace]:
    """Return the traces that are not withdrawn, have steps and were not generated during rating."""
    return Trace.objects.available().filter(project=project, kind=TraceKind.PREGENERATED, n_steps__gt=0)


def unscored_traces(prm: PRM) -> QuerySet[Trace]:
    return scorable_traces(prm.project_id).filter(~Exists(Score.objects.filter(prm=prm, trace=OuterRef("pk"))))


def count_fresh_scores(project: Project) -> ScoreFreshness:
    prm, n_traces = registry.current_prm(project.pk), scorable_traces(project).count()
    return ScoreFreshness(prm, n_traces, n_traces - unscored_traces(prm).count() if prm else 0)


def cached_freshness(project: Project) -> ScoreFreshness:
    """Count for a page; in a large project the result may be up to a minute old."""
    prm = registry.current_prm(project.pk)
    key = f"prm.freshness.{project.pk}.{prm.pk if prm else 0}"
    if (counts := cache.get(key)) is not None:
        return ScoreFreshness(prm, *counts)
    freshness = count_fresh_scores(project)
    if freshness.n_traces > _MANY:
        cache.set(key, (freshness.n_traces, freshness.n_fresh), timeout=60)
    return freshness


def load_step_scores(prm_id: int, trace_ids: Sequence[int]) -> dict[int, list[float | None]]:
    """Return the scores of each of these traces that this PRM has scored, None for context."""
    rows = Score.objects.filter(prm=prm_id, trace__in=trace_ids).values_list("trace", "numbers")
    return {trace: _decode_step_scores(bytes(encoded)) for trace, encoded in rows}


def _decode_step_scores(encoded: bytes) -> list[float | None]:
    numbers, _ = score_encoding.decode_scores([encoded])
    return [None if np.isnan(score) else float(score) for score in numbers[:, 0]]


def traces_scored_by(prm: PRM) -> QuerySet[Any]:
    """Return the scored traces, for use in a subquery."""
    return Score.objects.filter(prm=prm).values("trace")
