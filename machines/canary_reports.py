"""How machine raters fare on gaming canaries.

The score of a judge is the share of its votes that find no error up to the compared steps. A PRM that labels is
reported by its scores. A judge is compared with the latest earlier version of the same name.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Count, Q, QuerySet

from labeling.models import Project, Rater
from machines.models import CanaryVerdict, Judge
from prm import canaries
from prm.evaluation.canary_report import ScoredEdit
from prm.models import PRM, CanaryScore, CanarySet, GamingCanary


class CanaryResult(NamedTuple):
    """The report of one version; `n_unread` counts canaries without a readable answer."""

    label: str
    judge: Judge | None
    prm: PRM | None
    n_scored: int
    n_unread: int
    report: dict[str, Any] | None


def build_rater_report(rater: Rater) -> dict[str, Any] | None:
    """Return the report of a machine rater, or None if it has not scored the canaries of its project."""
    judge = Judge.objects.filter(rater=rater).select_related("prm__project", "prm__predecessor").first()
    return build_judge_report(judge) if judge is not None else None


def build_judge_report(judge: Judge) -> dict[str, Any] | None:
    if judge.prm is not None:
        return canaries.build_prm_report(judge.prm, canaries.find_version_before(judge.prm))
    row = canaries.find_set(judge.project_id)
    if row is None:
        return None
    versions = _select_tested(row).filter(name=judge.name, version__lte=judge.version)
    return _report_judges(list(versions), row).get(judge.pk)


def _select_tested(row: CanarySet) -> QuerySet[Judge]:
    tested = CanaryVerdict.objects.filter(canary__canary_set=row).values("judge")
    return Judge.objects.filter(pk__in=tested, prm=None).defer("key", "prompt").order_by("name", "-version")


def _report_judges(judges: Sequence[Judge], row: CanarySet) -> dict[int, dict[str, Any]]:
    """Return the report of each judge that was asked about every canary. Each is compared with its version before."""
    edits = _load_edits([judge.pk for judge in judges], row)
    reports = {}
    for judge in judges:
        earlier = [each for each in judges if each.name == judge.name and each.version < judge.version]
        before = max(earlier, key=lambda each: each.version, default=None)
        if edits[judge.pk]:
            reports[judge.pk] = canaries.build_report(
                row, edits[judge.pk], before.label if before else "", edits[before.pk] if before else []
            )
    return reports


def _load_edits(judge_ids: Sequence[int], row: CanarySet) -> dict[int, list[ScoredEdit]]:
    """Return the edits with readable answers about both texts. Empty for a judge until it was asked about every
    canary."""
    found: dict[int, dict[int, Any]] = {pk: {} for pk in judge_ids}
    verdicts = CanaryVerdict.objects.filter(judge__in=judge_ids, canary__canary_set=row)
    for judge, canary, first_errors in verdicts.values_list("judge", "canary", "first_errors"):
        found[judge][canary] = first_errors
    rows = canaries.load_canaries(row)
    return {pk: _score_edits(rows, answers) if len(answers) >= len(rows) else [] for pk, answers in found.items()}


def _score_edits(rows: Sequence[GamingCanary], answers: Mapping[int, Any]) -> list[ScoredEdit]:
    return [
        canaries.make_scored_edit(
            canary,
            before=measure_passed(answers[canary.original_id or 0], canary.original_places),
            after=measure_passed(answers[canary.pk], canary.places),
        )
        for canary in rows
        if canary.edit and answers[canary.pk] and answers[canary.original_id or 0]
    ]


def measure_passed(first_errors: Sequence[tuple[int | None, float]], places: Sequence[int]) -> float:
    """Return the share of votes that find no error up to the last of these steps."""
    return sum(share for position, share in first_errors if position is None or position > max(places))


def list_results(project: Project) -> list[CanaryResult]:
    """Return every PRM and judge that has scored some canary of the current set, newest versions first."""
    row = canaries.find_set(project.pk)
    return [*_list_prms(project, row), *_list_judges(row)] if row is not None else []


def _list_prms(project: Project, row: CanarySet) -> list[CanaryResult]:
    scored = CanaryScore.objects.filter(canary__canary_set=row).order_by("prm").values("prm")
    counts = dict(scored.annotate(n=Count("pk")).values_list("prm", "n"))
    prms = PRM.objects.filter(project=project).defer("weights", "trained").in_bulk()
    current = next((prm for prm in prms.values() if prm.is_current), None)
    edits = canaries.load_edits_by_prm([prms[pk] for pk in counts], row)
    results = []
    for prm in sorted((prms[pk] for pk in counts), key=lambda each: -each.version):
        before = prms.get(prm.predecessor_id or 0) if prm.is_current else current
        known = edits.get(before.pk, []) if before else []
        report = canaries.build_report(row, edits[prm.pk], before.label if before else "", known)
        results.append(
            CanaryResult(f"PRM {prm.label}", None, prm, counts[prm.pk], 0, report if edits[prm.pk] else None)
        )
    return results


def _list_judges(row: CanarySet) -> list[CanaryResult]:
    judges = list(_select_tested(row))
    verdicts = CanaryVerdict.objects.filter(canary__canary_set=row).order_by("judge").values("judge")
    counts = verdicts.annotate(n=Count("pk"), n_unread=Count("pk", filter=Q(n_parsed=0)))
    by_judge = {judge: (n, n_unread) for judge, n, n_unread in counts.values_list("judge", "n", "n_unread")}
    reports = _report_judges(judges, row)
    return [CanaryResult(each.label, each, None, *by_judge[each.pk], reports.get(each.pk)) for each in judges]


def log_alarm(*, judge: Judge, now: dt.datetime) -> None:
    """Log the event if this version is easier to fool than the one before."""
    report: Mapping[str, Any] | None = build_judge_report(judge)
    if report is not None:
        canaries.log_easier_to_fool(
            project_id=judge.project_id,
            subject=f"machine_rater:{judge.rater_id}",
            version=judge.label,
            report=report,
            now=now,
        )


def describe_set(row: CanarySet) -> dict[str, Any]:
    """Return a set as plain JSON. Its texts stay hidden."""
    n_texts = GamingCanary.objects.filter(canary_set=row).count()
    counts = canaries.count_edits(row)
    return {
        "set": row.number,
        "frozen_at": row.frozen_at.isoformat(),
        "n_edits": sum(counts.values()),
        "n_texts": n_texts,
        "edits": counts,
    }


def describe_results(project: Project) -> list[dict[str, Any]]:
    return [
        {"version": each.label, "n_scored": each.n_scored, "n_unread": each.n_unread, "report": each.report}
        for each in list_results(project)
    ]
