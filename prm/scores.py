"""What PRMs say of traces. Alone changes Score rows."""

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
_PART = 500
_MANY = 50_000  # to count them takes a twentieth of a second


@dataclass(frozen=True)
class ScoreFreshness:
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


def save_scores(*, prm: PRM, texts: Sequence[TraceText], scores: Sequence[Floats], now: dt.datetime) -> int:
    """Traces that this PRM has scored already stay as they are: the same version says the same."""
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
    """Scores of versions that a later one took over from long ago. What a draw was made by stays, so that it can be
    explained; so do those of the version that a rollback goes to. Says how many were forgotten."""
    forgotten = 0
    for prm in _outdated_prms(now):
        last = 0
        while part := list(_by_trace(prm, last)):
            last = part[-1]
            forgotten += _delete_scores(prm, part)
    return forgotten


def _delete_scores(prm: PRM, traces: Sequence[int]) -> int:
    drawn = TraceDraw.objects.filter(trace=OuterRef("trace"), prm=prm.label)
    return Score.objects.filter(~Exists(drawn), prm=prm, trace__in=traces).delete()[0]


def _outdated_prms(now: dt.datetime) -> list[PRM]:
    later = PRM.objects.filter(project=OuterRef("project"), is_current=True, version__gt=OuterRef("version"))
    is_settled = Exists(later.filter(made_current_at__lt=now - RETENTION).exclude(predecessor=OuterRef("pk")))
    busy = Generation.objects.filter(stage__in=RUNNING)
    used = Exists(busy.filter(candidate=OuterRef("pk"))) | Exists(busy.filter(scored_with=OuterRef("pk")))
    found = PRM.objects.filter(is_settled, ~used, Exists(Score.objects.filter(prm=OuterRef("pk"))))
    return list(found.defer("weights", "trained").order_by("pk"))


def _by_trace(prm: PRM, after: int) -> QuerySet[Score, int]:
    mine = Score.objects.filter(prm=prm, trace__gt=after).order_by("trace_id")
    return mine.values_list("trace_id", flat=True)[:_PART]


def scorable_traces(project: Project | int) -> QuerySet[Trace]:
    """Every trace that is there to be read or has been: not withdrawn, with steps, not made while rating."""
    return Trace.objects.available().filter(project=project, kind=TraceKind.PREGENERATED, n_steps__gt=0)


def unscored_traces(prm: PRM) -> QuerySet[Trace]:
    return scorable_traces(prm.project_id).filter(~Exists(Score.objects.filter(prm=prm, trace=OuterRef("pk"))))


def count_fresh_scores(project: Project) -> ScoreFreshness:
    prm, n_traces = registry.current_prm(project.pk), scorable_traces(project).count()
    return ScoreFreshness(prm, n_traces, n_traces - unscored_traces(prm).count() if prm else 0)


def cached_freshness(project: Project) -> ScoreFreshness:
    """For pages: where there are so many traces that counting them takes its time, as it was a minute ago at most."""
    prm = registry.current_prm(project.pk)
    key = f"prm.freshness.{project.pk}.{prm.pk if prm else 0}"
    if (kept := cache.get(key)) is not None:
        return ScoreFreshness(prm, *kept)
    found = count_fresh_scores(project)
    if found.n_traces > _MANY:
        cache.set(key, (found.n_traces, found.n_fresh), timeout=60)
    return found


def load_step_scores_of_trace(prm: PRM, trace_id: int) -> list[float | None] | None:
    """One number a step, None for context; None altogether where this PRM has not scored the trace."""
    return load_step_scores(prm.pk, [trace_id]).get(trace_id)


def load_step_scores(prm_id: int, trace_ids: Sequence[int]) -> dict[int, list[float | None]]:
    """The same of those of these traces that this PRM has scored."""
    kept = Score.objects.filter(prm=prm_id, trace__in=trace_ids).values_list("trace", "numbers")
    return {trace: _decode_step_scores(bytes(numbers)) for trace, numbers in kept}


def _decode_step_scores(kept: bytes) -> list[float | None]:
    numbers, _ = score_encoding.decode_scores([kept])
    return [None if np.isnan(score) else float(score) for score in numbers[:, 0]]


def traces_scored_by(prm: PRM) -> QuerySet[Any]:
    """The traces that this PRM has scored, to be looked for in a statement."""
    return Score.objects.filter(prm=prm).values("trace")
