"""Pause raters whose work is worthless by overwhelming evidence, before a project has its own gold threshold.

Runs with the project's statistics, soon after submissions, never in a submit. The evidence is described in
`stats.rater_protection`: hidden gold, agreement with others on the same traces, identical results in a row, and
impossible speed, with a joint bound on the share of ordinary raters who are paused. The pause takes effect a random
number of traces later, so that its timing does not reveal which trace was gold. A lead resumes a paused rater; only
later work counts then. Labels that were set aside are no evidence, about their rater or about others.
"""

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from labeling import raters
from labeling.models import FirstErrorReport, GoldAnswer, Project, Rater
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.models.project import Protocol
from labeling.quality import gold_monitor, posteriors
from labeling.quality.posteriors import TraceShape
from labeling.quality.signals import SubmissionRow
from labeling.quality.submitted_reports import RevisionReport
from stats import rater_protection
from stats.arrays import Bools
from stats.rater_protection import FALSE_PAUSES, N_SIMULATED, PAUSED_ALONE, ObservedWork, RaterEvidence, SignalEvidence

MAX_REPORTS = 10_000  # the latest reports of a project
WINDOW = 400  # the latest reports of a rater: the error rate holds for this many

# The name and description of each signal.
SIGNALS = {
    "gold": (
        _lazy("hidden gold"),
        _lazy(
            "The answers look like those of someone who marks everything positive, or a random step, rather"
            " than someone who is correct on 40% of hidden gold."
        ),
    ),
    "agreement": (
        _lazy("other annotators and gold"),
        _lazy("Finds far fewer errors than other annotators on the same traces, or marks random steps."),
    ),
    "repeats": (
        _lazy("identical results"),
        _lazy("Repeats the result of the previous trace where other annotators have a different result."),
    ),
    "speed": (
        _lazy("impossible speed"),
        _lazy(
            "Rates whole traces at more than 40 words per second, or at more than ten with most steps rated in"
            " less than 0.4 seconds."
        ),
    ),
}


class ProtectionSignal(NamedTuple):
    """One signal of a rater, as shown on a page. `rate` is the share of ordinary raters with at least this evidence;
    `n_false` is how many of the simulated honest raters the signal alone would have paused."""

    key: str
    name: str
    what: str
    n: int
    rate: float
    n_false: int


class ProtectionStatus(NamedTuple):
    """The evidence on one rater. `rate` is the rate of all signals together; at `limit` a rater is paused."""

    signals: Sequence[ProtectionSignal]
    rate: float
    limit: float
    n: int
    is_overwhelming: bool
    detection: float
    false_alarm: float
    simulated: str = f"{N_SIMULATED:,}"


def describe_protection(rater_stats: Mapping[str, Any]) -> ProtectionStatus | None:
    """Describe the stored evidence on one rater, or return None without any."""
    stored = rater_stats.get("protection")
    if not stored or not stored["n"]:
        return None
    signals = [
        ProtectionSignal(
            key, str(name), str(what), row["n"], SignalEvidence(row["log_e"]).false_alarm_rate, PAUSED_ALONE[key]
        )
        for key, (name, what) in SIGNALS.items()
        if (row := stored["signals"].get(key))
    ]
    rate = SignalEvidence(stored["joint"]).false_alarm_rate
    shown = (stored["n"], stored["is_overwhelming"], stored["detection"], stored["false_alarm"])
    return ProtectionStatus(signals, rate, FALSE_PAUSES, *shown)


class _CountedReport(NamedTuple):
    report: RevisionReport
    at: dt.datetime | None


def weigh_raters(*, project_id: int, submissions: Sequence[SubmissionRow]) -> dict[int, dict[str, Any]]:
    """Return the evidence on each member, as the statistics store it. `submissions` are the latest with their times."""
    project = Project.objects.get(pk=project_id)
    if project.protocol == Protocol.LIVE:
        return {}
    work, people = _observe(project, {row.assignment_id: row for row in submissions})
    members = set(Rater.objects.members().filter(project=project, pk__in=people).values_list("pk", flat=True))
    evidence = zip(people, rater_protection.weigh_evidence(work), strict=True) if people else ()
    return {rater: _as_json(each) for rater, each in evidence if rater in members}


def pause_raters(*, project_id: int, figures: Mapping[str, Mapping[str, Any]], now: dt.datetime) -> int:
    """Pause the raters with overwhelming evidence, unless the project has switched it off. Return how many
    pauses were decided."""
    evidence = {int(rater): row["protection"] for rater, row in figures.items() if "protection" in row}
    overwhelming = [rater for rater, row in evidence.items() if row["is_overwhelming"]]
    if not overwhelming or not Project.objects.filter(pk=project_id, uses_protection=True).exists():
        return 0
    active = Rater.objects.members().active().filter(project=project_id, pk__in=overwhelming, paused_at=None)
    return sum(_pause(rater, evidence[rater.pk], now) for rater in active.order_by("pk"))


def _pause(rater: Rater, evidence: Mapping[str, Any], now: dt.datetime) -> bool:
    strongest = max(evidence["signals"], key=lambda name: evidence["signals"][name]["log_e"])
    note = _(
        "Evidence from %(n)d traces, mainly from this signal: %(signal)s. No more than %(share)s in 100"
        " ordinary annotators would have as much evidence against them."
    )
    rate = SignalEvidence(evidence["joint"]).false_alarm_rate
    values = {"n": evidence["n"], "signal": SIGNALS[strongest][0], "share": f"{100 * rate:.2g}"}
    return raters.schedule_pause(
        rater=rater, reason=gold_monitor.explain_pause(), note=note % values, now=now, evidence=evidence
    )


def _as_json(evidence: RaterEvidence) -> dict[str, Any]:
    return {
        "signals": {name: {"log_e": round(each.log_e, 3), "n": each.n} for name, each in evidence.signals.items()},
        "joint": round(evidence.joint.log_e, 3),
        "n": evidence.joint.n,
        "is_overwhelming": bool(evidence.is_overwhelming),
        "detection": None if evidence.detection is None else round(evidence.detection, 3),
        "false_alarm": None if evidence.false_alarm is None else round(evidence.false_alarm, 4),
    }


# Loading


def _observe(project: Project, timed: Mapping[int, SubmissionRow]) -> tuple[ObservedWork, list[int]]:
    """Return the latest reports in the order of their assignments, and the rater of each number."""
    work, answers, accepted = _load_work(project), *_load_gold(project)
    shapes = posteriors.load_trace_shapes({each.report.trace_id for each in (*work, *answers)})
    counted = [each for each in (*work, *answers) if _has_place(shapes, each.report)]
    counted.sort(key=lambda each: each.report.assignment_id)
    arrays, traces, people = posteriors.build_report_arrays(shapes, [each.report for each in counted])
    times = [timed.get(each.report.assignment_id) for each in counted]
    known = {
        number: {shapes[trace].place_of(error) for error in accepted[trace]}
        for number, trace in enumerate(traces)
        if trace in accepted
    }
    observed = ObservedWork(
        reports=arrays,
        known=known,
        is_impossible=np.array([row is not None and row.is_impossible for row in times], dtype=np.bool_),
        is_timed=np.array([row is not None and row.is_timed for row in times], dtype=np.bool_),
        is_counted=_find_counted(project, counted),
    )
    return observed, people


def _load_work(project: Project) -> list[_CountedReport]:
    latest = FirstErrorReport.objects.filter(project=project, assignment__set_aside=None).order_by("-assignment_id")
    columns = ("assignment_id", "revision", "trace_id", "rater_id", "first_error", "n_passed", "is_censored")
    rows = latest.values_list("assignment__submitted_at", *columns)[:MAX_REPORTS]
    return [_CountedReport(RevisionReport(*row), at) for at, *row in rows]


def _load_gold(project: Project) -> tuple[list[_CountedReport], dict[int, list[int | None]]]:
    answers = GoldAnswer.objects.counted().filter(project=project, use=GoldUse.HIDDEN, assignment__is_assisted=False)
    latest = answers.exclude(verdict=GoldVerdict.GAVE_UP).order_by("-answered_at", "-pk")
    gold = ("gold__accepted_first_errors", "gold__trace_id")
    rows = latest.values_list("answered_at", *gold, "assignment_id", "rater_id", "first_error")[:MAX_REPORTS]
    reports, accepted = [], {}
    for at, ends, trace, assignment, rater, first_error in rows:
        reports.append(_CountedReport(RevisionReport(assignment, 1, trace, rater, first_error, 0), at))
        accepted[trace] = ends
    return reports, accepted


def _has_place(shapes: Mapping[int, TraceShape], report: RevisionReport) -> bool:
    """Imported files can rate steps that the trace does not have."""
    shape = shapes.get(report.trace_id)
    return shape is not None and (report.position is None or report.position in shape.positions)


def _find_counted(project: Project, reports: Sequence[_CountedReport]) -> Bools:
    """Return which reports count against their raters: the latest ones, since the rater was last resumed."""
    since = dict(Rater.objects.filter(project=project).values_list("pk", "watched_since_at"))
    n_later: Counter[int] = Counter()
    counted = []
    for report, at in reversed(reports):
        n_later[report.rater_id] += 1
        resumed_at = since[report.rater_id]
        is_later = resumed_at is None or (at is not None and at > resumed_at)
        counted.append(is_later and n_later[report.rater_id] <= WINDOW)
    return np.array(counted[::-1], dtype=np.bool_)
