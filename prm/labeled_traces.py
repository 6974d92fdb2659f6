"""Traces as PRMs see them: their texts, and their labels in a manifest.

The label of a trace is the first error that most of its raters report. Under any protocol a rater's first negative step
is a first error. A submission that ended before the last step without reporting one is censored: it never counts as "no
error". Ratings by machines, and by people who saw a machine's, are not labels. Traces without a majority are contested
and left out.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from django.db.models import F, Max, Min, Q

from jobs import paging
from labeling.models import Manifest, ManifestRow, Option, Trace
from labeling.models.rater import RaterKind
from prm.backends.base import ScorerInput
from prm.evaluation.labeled_steps import NO_ERROR, JudgedTraces
from stats import first_error_reports
from stats.arrays import Bools, Floats, Ints, number_values
from stats.first_error_reports import ReportArrays

_TEXTS_PER_QUERY = 500
_TURNS = "submission__assignment__turns"


@dataclass(frozen=True)
class TraceText(ScorerInput):
    """A trace's own steps in order. Context steps are scored with the others but cannot be rated."""

    is_rateable: list[bool]
    trace: int
    problem_id: int
    source: int
    domain: str
    is_right: bool | None


def load_trace_texts(trace_ids: Sequence[int]) -> list[TraceText]:
    """Load the texts in the order of the ids, with two queries per chunk."""
    return [text for part in paging.split(trace_ids, _TEXTS_PER_QUERY) for text in _load_texts(part)]


def _load_texts(trace_ids: Sequence[int]) -> Iterator[TraceText]:
    steps: defaultdict[int, list[tuple[int, bool, str]]] = defaultdict(list)
    options = Option.objects.filter(step__trace__in=trace_ids, position=0)
    columns = ("step__trace_id", "step__position", "step__is_rateable", "text")
    for trace, position, is_rateable, text in options.values_list(*columns):
        steps[trace].append((position, is_rateable, text))
    fields = ("pk", "problem_id", "source_id", "problem__domain", "problem__text", "is_right", "n_steps")
    rows = {row[0]: row for row in Trace.objects.filter(pk__in=trace_ids).values_list(*fields)}
    for trace_id in trace_ids:
        pk, problem_id, source, domain, problem, is_right, n_steps = rows[trace_id]
        own = sorted(step for step in steps[pk] if step[0] < n_steps)
        yield TraceText(
            trace=pk,
            problem_id=problem_id,
            source=source or 0,
            domain=domain,
            problem=problem,
            is_right=is_right,
            steps=[text for _, _, text in own],
            is_rateable=[is_rateable for _, is_rateable, _ in own],
        )


# --- labels -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TraceLabels:
    """Settled traces with their first errors (or NO_ERROR)."""

    traces: list[int]
    first_errors: Ints
    is_reserve: Bools

    def keep(self, is_kept: Bools) -> "TraceLabels":
        traces = [trace for trace, kept in zip(self.traces, is_kept, strict=True) if kept]
        return TraceLabels(traces, self.first_errors[is_kept], self.is_reserve[is_kept])


class _TraceShape(NamedTuple):
    n_steps: int
    last_rateable: int
    is_reserve: bool


class _Report(NamedTuple):
    """One submission: the positions of its first negative and of its last rated step, and its active time."""

    trace: int
    rater: int
    negative: int | None
    last: int | None
    ms: int | None

    def is_censored(self, shape: _TraceShape) -> bool:
        return self.negative is None and (self.last or 0) < shape.last_rateable

    def end(self, shape: _TraceShape) -> int:
        """Return the first error, the first unrated step of a censored report, or the length of the trace."""
        if self.negative is not None and self.negative < shape.n_steps:
            return self.negative
        return min((self.last or 0) + 1, shape.n_steps) if self.is_censored(shape) else shape.n_steps


def load_trace_labels(manifest: Manifest) -> TraceLabels:
    reports, shapes = _load_rated_reports(manifest)
    if not reports:
        return TraceLabels([], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_))
    ids = sorted({report.trace for report in reports})
    lengths = np.array([shapes[trace].n_steps for trace in ids], dtype=np.int64)
    traces = np.searchsorted(ids, [report.trace for report in reports])
    is_censored = np.array([report.is_censored(shapes[report.trace]) for report in reports], dtype=np.bool_)
    arrays = ReportArrays(
        traces=traces,
        raters=number_values([report.rater for report in reports]),
        ends=np.array([report.end(shapes[report.trace]) for report in reports], dtype=np.int64),
        is_censored=is_censored,
        lengths=lengths,
        problems=np.arange(len(lengths)),
        domains=np.zeros(len(lengths), dtype=np.int64),
    )
    ends, share = first_error_reports.majority_by_place(arrays)
    is_reserve = np.array([shapes[trace].is_reserve for trace in ids])
    has_complete_report = np.bincount(traces, weights=~is_censored, minlength=len(ids)) > 0
    labels = TraceLabels(ids, np.where(ends < lengths, ends, NO_ERROR), is_reserve)
    return labels.keep((share > 0.5) & has_complete_report)


def load_error_shares(manifest: Manifest) -> dict[int, float]:
    """Return each trace's share of raters who reported an error, contested or not, without censored reports."""
    reports, shapes = _load_rated_reports(manifest)
    has_error: dict[int, list[bool]] = {}
    for report in reports:
        if not report.is_censored(shapes[report.trace]):
            has_error.setdefault(report.trace, []).append(report.negative is not None)
    return {trace: sum(votes) / len(votes) for trace, votes in has_error.items()}


def load_reading_times(manifest: Manifest) -> list[tuple[int, int, float]]:
    """Return trace, number of rated steps and seconds of each timed submission."""
    return [
        (report.trace, report.last + 1, report.ms / 1000)
        for report in _load_reports(manifest)
        if report.last is not None and report.ms
    ]


def _load_rated_reports(manifest: Manifest) -> tuple[list[_Report], dict[int, _TraceShape]]:
    """Return the reports with a rating on traces that still count, and the shapes of these traces."""
    reports = _load_reports(manifest)
    shapes = _load_trace_shapes(sorted({report.trace for report in reports}))
    return [report for report in reports if report.trace in shapes and report.last is not None], shapes


def _load_reports(manifest: Manifest) -> list[_Report]:
    is_own = Q(**{f"{_TURNS}__revision": F("submission__revision"), f"{_TURNS}__judgments__option__position": 0})
    is_own &= Q(**{f"{_TURNS}__step__is_rateable": True})
    rating = f"{_TURNS}__judgments__rating"
    rows = (
        ManifestRow.objects.filter(manifest=manifest, submission__assignment__is_assisted=False)
        .exclude(submission__assignment__rater__kind=RaterKind.MACHINE)
        .annotate(
            negative=Min(f"{_TURNS}__step__position", filter=is_own & Q(**{rating: -1})),
            last=Max(f"{_TURNS}__step__position", filter=is_own & Q(**{f"{rating}__isnull": False})),
        )
    )
    assignment = "submission__assignment"
    columns = (f"{assignment}__trace_id", f"{assignment}__rater_id", "negative", "last", "submission__total_ms")
    return [_Report(*row) for row in rows.values_list(*columns)]


def _load_trace_shapes(ids: Sequence[int]) -> dict[int, _TraceShape]:
    shapes: dict[int, _TraceShape] = {}
    for part in paging.split(ids):
        rows = (
            Trace.objects.available()
            .filter(pk__in=part, n_steps__gt=0)
            .annotate(last=Max("steps__position", filter=Q(steps__is_rateable=True, steps__position__lt=F("n_steps"))))
        )
        for pk, n_steps, last, is_reserve in rows.values_list("pk", "n_steps", "last", "problem__is_reserve"):
            if last is not None:
                shapes[pk] = _TraceShape(n_steps, last, is_reserve)
    return shapes


# --- labels and texts -----------------------------------------------------------------------------------------------


def mask_labeled_steps(texts: Sequence[TraceText], first_errors: Ints) -> tuple[Bools, Bools]:
    """Return which of all steps carry a label, and which of the labeled ones are wrong. Context carries none."""
    is_labeled: list[bool] = []
    is_wrong: list[bool] = []
    for text, error in zip(texts, first_errors.tolist(), strict=True):
        end = len(text.steps) - 1 if error == NO_ERROR else error
        is_labeled += [n <= end and is_rateable for n, is_rateable in enumerate(text.is_rateable)]
        is_wrong += [n == error for n in range(len(text.steps))]
    mask = np.array(is_labeled, dtype=np.bool_)
    return mask, np.array(is_wrong, dtype=np.bool_)[mask]


def build_judged_traces(texts: Sequence[TraceText], first_errors: Ints, p_wrong: Floats) -> JudgedTraces:
    """Combine texts, labels and scores. Context steps are dropped, so first errors are counted without them."""
    is_rateable = np.array([each for text in texts for each in text.is_rateable], dtype=np.bool_)
    characters = np.array([len(step) for text in texts for step in text.steps], dtype=np.int64)
    truth = [
        NO_ERROR if error == NO_ERROR else sum(text.is_rateable[: error + 1]) - 1
        for text, error in zip(texts, first_errors.tolist(), strict=True)
    ]
    return JudgedTraces(
        p_wrong=p_wrong[is_rateable],
        characters=characters[is_rateable],
        lengths=np.array([sum(text.is_rateable) for text in texts], dtype=np.int64),
        truth=np.array(truth, dtype=np.int64),
        problems=number_values([text.problem_id for text in texts]),
        sources=number_values([text.source for text in texts]),
    )
