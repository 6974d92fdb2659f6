"""What the submissions of a manifest say of traces: the first error that most of their raters name. Reads alone.

Under any protocol a rater's first negative step is a first error. A report that ended without one before the last step
is censored: it never counts as "no error". Machines' ratings are no labels; traces on which raters differ evenly are
contested and left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db.models import F, Max, Min, Q

from labeling.models import Manifest, ManifestRow, Trace
from labeling.models.rater import RaterKind
from prm import trace_texts
from prm.evaluation.labeled_steps import NO_ERROR
from prm.evaluation.report import JudgedTraces
from prm.trace_texts import TraceText
from stats import first_error_votes
from stats.arrays import Bools, Floats, Ints
from stats.first_error_reports import ReportArrays

_CHUNK = 2000
_TURNS = "submission__assignment__turns"


@dataclass(frozen=True)
class TraceLabels:
    """Settled traces with their first errors, NONE for none."""

    traces: list[int]
    first_errors: Ints
    is_reserve: Bools

    def keep(self, is_kept: Bools) -> "TraceLabels":
        traces = [trace for trace, kept in zip(self.traces, is_kept, strict=True) if kept]
        return TraceLabels(traces, self.first_errors[is_kept], self.is_reserve[is_kept])


@dataclass(frozen=True)
class _Report:
    trace: int
    rater: int
    negative: int | None
    last: int | None
    ms: int | None  # active time


def load_trace_labels(manifest: Manifest) -> TraceLabels:
    reports = list(_load_reports(manifest))
    known = _load_trace_shapes(sorted({report.trace for report in reports}))
    told = [report for report in reports if report.trace in known and report.last is not None]
    if not told:
        return TraceLabels([], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_))
    ids = sorted({report.trace for report in told})
    place = {trace: n for n, trace in enumerate(ids)}
    lengths = np.array([known[trace][0] for trace in ids], dtype=np.int64)
    found, share = first_error_votes.majority_by_place(_build_reports(told, place, lengths, known))
    settled = TraceLabels(ids, np.where(found < lengths, found, NO_ERROR), np.array([known[trace][2] for trace in ids]))
    return settled.keep((share > 0.5) & _has_uncensored_report(told, place, known))


def load_error_shares(manifest: Manifest) -> dict[int, float]:
    """Of each trace the share of its raters who saw an error, contested or not; whoever broke off says nothing."""
    reports = list(_load_reports(manifest))
    known = _load_trace_shapes(sorted({report.trace for report in reports}))
    said: dict[int, list[bool]] = {}
    for report in reports:
        if report.trace in known and report.last is not None and not _is_censored(report, known[report.trace]):
            said.setdefault(report.trace, []).append(report.negative is not None)
    return {trace: sum(each) / len(each) for trace, each in said.items()}


def load_reading_times(manifest: Manifest) -> list[tuple[int, int, float]]:
    """Of each timed submission its trace, how many steps were read, and in how many seconds."""
    reports = _load_reports(manifest)
    return [(each.trace, each.last + 1, each.ms / 1000) for each in reports if each.last is not None and each.ms]


def _load_reports(manifest: Manifest) -> list[_Report]:
    of_this = Q(**{f"{_TURNS}__revision": F("submission__revision"), f"{_TURNS}__judgments__option__position": 0})
    of_this &= Q(**{f"{_TURNS}__step__is_rateable": True})
    rating = f"{_TURNS}__judgments__rating"
    rows = (
        ManifestRow.objects.filter(manifest=manifest)
        .exclude(submission__assignment__rater__kind=RaterKind.MACHINE)
        .annotate(
            negative=Min(f"{_TURNS}__step__position", filter=of_this & Q(**{rating: -1})),
            last=Max(f"{_TURNS}__step__position", filter=of_this & Q(**{f"{rating}__isnull": False})),
        )
    )
    columns = (
        "submission__assignment__trace_id",
        "submission__assignment__rater_id",
        "negative",
        "last",
        "submission__total_ms",
    )
    return [_Report(*row) for row in rows.values_list(*columns)]


def _load_trace_shapes(ids: Sequence[int]) -> dict[int, tuple[int, int, bool]]:
    """Of each trace its length, its last rateable step, and whether its problem is in the reserve."""
    found: dict[int, tuple[int, int, bool]] = {}
    for start in range(0, len(ids), _CHUNK):
        rows = (
            Trace.objects.available()
            .filter(pk__in=ids[start : start + _CHUNK], n_steps__gt=0)
            .annotate(last=Max("steps__position", filter=Q(steps__is_rateable=True, steps__position__lt=F("n_steps"))))
        )
        for pk, n_steps, last, is_reserve in rows.values_list("pk", "n_steps", "last", "problem__is_reserve"):
            if last is not None:
                found[pk] = (n_steps, last, is_reserve)
    return found


def _build_reports(
    told: Sequence[_Report], place: dict[int, int], lengths: Ints, known: dict[int, tuple[int, int, bool]]
) -> ReportArrays:
    traces = np.array([place[report.trace] for report in told], dtype=np.int64)
    raters = np.unique([report.rater for report in told], return_inverse=True)[1]
    return ReportArrays(
        traces=traces,
        raters=raters,
        ends=np.array([_last_judged_step(report, known[report.trace]) for report in told], dtype=np.int64),
        is_censored=np.array([_is_censored(report, known[report.trace]) for report in told]),
        lengths=lengths,
        problems=np.arange(len(lengths)),
        domains=np.zeros(len(lengths), dtype=np.int64),
    )


def _last_judged_step(report: _Report, trace: tuple[int, int, bool]) -> int:
    if report.negative is not None and report.negative < trace[0]:
        return report.negative
    return min((report.last or 0) + 1, trace[0]) if _is_censored(report, trace) else trace[0]


def _is_censored(report: _Report, trace: tuple[int, int, bool]) -> bool:
    return report.negative is None and (report.last or 0) < trace[1]


def _has_uncensored_report(
    told: Sequence[_Report], place: dict[int, int], known: dict[int, tuple[int, int, bool]]
) -> Bools:
    """Traces with a report that is not censored: of the others nothing is known."""
    found = np.zeros(len(place), dtype=np.bool_)
    for report in told:
        found[place[report.trace]] |= not _is_censored(report, known[report.trace])
    return found


def mask_labeled_steps(read: Sequence[TraceText], first_errors: Ints) -> tuple[Bools, Bools]:
    """Of all steps end to end: which carry a label, and which of those are wrong. Context carries none."""
    kept: list[bool] = []
    wrong: list[bool] = []
    for text, error in zip(read, first_errors.tolist(), strict=True):
        end = len(text.steps) - 1 if error == NO_ERROR else error
        kept += [n <= end and is_rateable for n, is_rateable in enumerate(text.is_rateable)]
        wrong += [n == error for n in range(len(text.steps))]
    is_kept = np.array(kept, dtype=np.bool_)
    return is_kept, np.array(wrong, dtype=np.bool_)[is_kept]


def build_judged_traces(read: Sequence[TraceText], first_errors: Ints, p_wrong: Floats) -> JudgedTraces:
    """Traces as they are judged. Context steps are left out, and later steps move up."""
    rateable = np.array([each for text in read for each in text.is_rateable], dtype=np.bool_)
    characters = np.array([len(step) for text in read for step in text.steps], dtype=np.int64)
    before = [int(sum(text.is_rateable[: error + 1])) - 1 for text, error in zip(read, first_errors, strict=True)]
    truth = (
        np.where(first_errors == NO_ERROR, NO_ERROR, np.array(before, dtype=np.int64)) if len(read) else first_errors
    )
    return JudgedTraces(
        p_wrong=p_wrong[rateable],
        characters=characters[rateable],
        lengths=np.array([sum(text.is_rateable) for text in read], dtype=np.int64),
        truth=truth,
        problems=_number_values([text.problem_id for text in read]),
        sources=_number_values([text.source for text in read]),
    )


def _number_values(values: Sequence[int]) -> Ints:
    return np.asarray(np.unique(np.array(values, dtype=np.int64), return_inverse=True)[1], dtype=np.int64)


def load_texts_of_labels(labels: TraceLabels) -> list[TraceText]:
    return trace_texts.load_trace_texts(labels.traces)
