"""How machine raters fare on gaming canaries.

The score of a judge is the share of its votes that find no error up to the compared steps. A PRM that labels is
reported by its scores. A judge is compared with the latest earlier version of the same name.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from labeling.models import Project, Rater
from machines.models import CanaryVerdict, Judge
from prm import canaries
from prm.evaluation.canary_report import ScoredEdit
from prm.models import PRM, CanarySet, GamingCanary


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
    edits = _load_edits(judge, row)
    before = _find_version_before(judge, row)
    if not edits:
        return None
    return canaries.build_report(row, edits, before.label if before else "", _load_edits(before, row) if before else [])


def _find_version_before(judge: Judge, row: CanarySet) -> Judge | None:
    earlier = Judge.objects.filter(project=judge.project_id, name=judge.name, version__lt=judge.version)
    scored = CanaryVerdict.objects.filter(canary__canary_set=row).values("judge")
    return earlier.filter(pk__in=scored, prm=None).order_by("-version").first()


def _load_edits(judge: Judge, row: CanarySet) -> list[ScoredEdit]:
    """Return the edits with readable answers about both texts. Empty until every canary was asked about."""
    verdicts = CanaryVerdict.objects.filter(judge=judge, canary__canary_set=row)
    found = dict(verdicts.values_list("canary", "first_errors"))
    rows = canaries.load_canaries(row)
    if len(found) < len(rows):
        return []
    return [
        canaries.make_scored_edit(
            canary,
            before=measure_passed(found[canary.original_id or 0], canary.original_places),
            after=measure_passed(found[canary.pk], canary.places),
        )
        for canary in rows
        if canary.edit and found[canary.pk] and found[canary.original_id or 0]
    ]


def measure_passed(first_errors: Sequence[tuple[int | None, float]], places: Sequence[int]) -> float:
    """Return the share of votes that find no error up to the last of these steps."""
    return sum(share for position, share in first_errors if position is None or position > max(places))


def list_results(project: Project) -> list[CanaryResult]:
    """Return every PRM and judge that has scored some canary of the current set, newest versions first."""
    row = canaries.find_set(project.pk)
    if row is None:
        return []
    prms = PRM.objects.filter(project=project, canary_scores__canary__canary_set=row).distinct()
    rows = prms.defer("weights", "trained").select_related("project", "predecessor").order_by("-version")
    results = [_describe_prm(prm, row) for prm in rows]
    judges = Judge.objects.filter(project=project, canary_verdicts__canary__canary_set=row).distinct()
    return results + [_describe_judge(each, row) for each in judges.defer("key", "prompt").order_by("name", "-version")]


def _describe_prm(prm: PRM, row: CanarySet) -> CanaryResult:
    n = prm.canary_scores.filter(canary__canary_set=row).count()
    report = canaries.build_prm_report(prm, canaries.find_version_before(prm))
    return CanaryResult(f"PRM {prm.label}", None, prm, n, 0, report)


def _describe_judge(judge: Judge, row: CanarySet) -> CanaryResult:
    verdicts = judge.canary_verdicts.filter(canary__canary_set=row)
    n_unread = verdicts.filter(n_parsed=0).count()
    return CanaryResult(judge.label, judge, None, verdicts.count(), n_unread, build_judge_report(judge))


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
