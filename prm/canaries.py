"""Gaming canaries of a project: freeze them, let PRMs score them, and report who is fooled. Only this module changes
CanarySet, GamingCanary and CanaryScore.

Canaries are made from traces whose first error is known and whose problems no training set contains: held-out problems
that people settled, and gold. A set never changes. A new one retires it, and its figures stay with gates and passports.
"""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from events.models import Event
from jobs import control, paging
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Gold, Option, Project, Trace
from labeling.models.gold import GoldUse
from labeling.models.trace import TraceKind
from labeling.quality import consensus
from prm import registry
from prm.backends import base
from prm.backends.base import ScorerInput
from prm.evaluation import canary_edits, canary_report
from prm.evaluation.canary_edits import EditedSolution, Solution, SolutionStep
from prm.evaluation.canary_report import ScoredEdit
from prm.models import PRM, CanaryScore, CanarySet, GamingCanary
from prm.models.prm import BackendKind
from prm.selection import hazards
from stats.arrays import Floats

KIND = "prm.canaries"
DEFAULT_SIZE = 200
MIN_EDITS = 20
MAX_SIZE = 1000
_MAX_SOLUTIONS = 2000
_CANARIES_PER_CALL = 64
EASIER_TO_FOOL = "canaries.easier_to_fool"


class CanariesRefused(Exception):
    """Canaries cannot be made or scored. The message is for the person who asked."""


@dataclass(frozen=True)
class CanaryText(ScorerInput):
    """A canary as a backend sees it."""

    canary: int
    is_rateable: list[bool]


# Freeze


def freeze_canaries(*, project: Project, by: User | None, now: dt.datetime, n: int = DEFAULT_SIZE) -> CanarySet:
    """Make a new set of canaries, which retires the one before."""
    if not MIN_EDITS <= n <= MAX_SIZE:
        raise CanariesRefused(_("Enter a number from %(low)s to %(high)s.") % {"low": MIN_EDITS, "high": MAX_SIZE})
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        earlier = CanarySet.objects.filter(project=project)
        number = (earlier.aggregate(last=Max("number"))["last"] or 0) + 1
        traces, solutions = _load_solutions(project)
        edits = canary_edits.make_edits(solutions, n=n, seed=f"{project.slug} {number}")
        if len(edits) < MIN_EDITS:
            raise CanariesRefused(
                _(
                    "Only %(n)s edits are possible, and %(least)s are needed. Label more traces of the held-out set, or"
                    " add gold."
                )
                % {"n": len(edits), "least": MIN_EDITS}
            )
        earlier.filter(retired_at=None).update(retired_at=now)
        row = CanarySet.objects.create(project=project, number=number, frozen_at=now, frozen_by=by)
        _save_canaries(row, traces, {each.key: each for each in solutions}, edits)
        _log_event("canaries.frozen", row, by, now, number=number, edits=len(edits))
    return row


def _save_canaries(
    row: CanarySet, traces: Mapping[str, int], solutions: Mapping[str, Solution], edits: Sequence[EditedSolution]
) -> None:
    keys = sorted({each.solution.key for each in edits})
    originals = GamingCanary.objects.bulk_create(
        _make_canary(row, number, solutions[key], traces[key]) for number, key in enumerate(keys)
    )
    by_key = dict(zip(keys, originals, strict=True))
    edited = []
    for number, each in enumerate(edits, start=len(keys)):
        canary = _make_canary(row, number, each.solution, traces[each.solution.key])
        canary.edit, canary.original = each.edit.value, by_key[each.solution.key]
        canary.places, canary.original_places = list(each.places), list(each.original_places)
        edited.append(canary)
    GamingCanary.objects.bulk_create(edited)


def _make_canary(row: CanarySet, number: int, solution: Solution, trace: int) -> GamingCanary:
    steps = [list(step) for step in solution.steps]
    return GamingCanary(canary_set=row, number=number, trace_id=trace, problem=solution.problem, steps=steps)


def _load_solutions(project: Project) -> tuple[dict[str, int], list[Solution]]:
    """Return the ids of the traces by their keys, and the solutions with a known first error."""
    first_errors = _load_first_errors(project)
    rows = Trace.objects.available().filter(pk__in=first_errors, kind=TraceKind.PREGENERATED)
    columns = ("pk", "digest", "n_steps", "source_id", "problem__normal_digest", "problem__text")
    traces, found = {}, []
    for part in paging.split(list(rows.order_by("digest").values_list(*columns)[:_MAX_SOLUTIONS])):
        steps = _load_steps([row[0] for row in part])
        for pk, digest, n_steps, source, problem_key, problem in part:
            own = tuple(step for position, step in steps.get(pk, ()) if position < n_steps)
            traces[digest] = pk
            found.append(Solution(digest, problem_key, str(source), problem, own, first_errors[pk]))
    return traces, found


def _load_first_errors(project: Project) -> dict[int, int | None]:
    settled = consensus.current_revisions(project_id=project.pk).filter(trace__problem__is_reserve=True)
    found: dict[int, int | None] = dict(settled.values_list("trace", "first_error"))
    gold = Gold.objects.active().filter(trace__project=project).exclude(use=GoldUse.TRAINING)
    for trace, accepted in gold.values_list("trace", "accepted_first_errors"):
        if len(accepted) == 1:
            found[trace] = accepted[0]
        else:  # a contested first error fixes no direction
            found.pop(trace, None)
    return found


def _load_steps(trace_ids: Sequence[int]) -> dict[int, list[tuple[int, SolutionStep]]]:
    steps: dict[int, list[tuple[int, SolutionStep]]] = {}
    options = Option.objects.filter(step__trace__in=trace_ids, position=0).order_by("step__position")
    columns = ("step__trace_id", "step__position", "step__kind", "step__is_rateable", "text")
    for trace, position, kind, is_rateable, text in options.values_list(*columns):
        steps.setdefault(trace, []).append((position, SolutionStep(kind, is_rateable, text)))
    return steps


def find_set(project_id: int) -> CanarySet | None:
    return CanarySet.objects.filter(project=project_id, retired_at=None).select_related("frozen_by").first()


def count_edits(row: CanarySet) -> dict[str, int]:
    """Return the number of edits of each kind."""
    edited = row.canaries.exclude(edit="").order_by("edit")
    return dict(edited.values_list("edit").annotate(n=Count("pk")))


# Score


def select_unscored(prm: PRM, row: CanarySet) -> QuerySet[GamingCanary]:
    return row.canaries.filter(~Exists(CanaryScore.objects.filter(prm=prm, canary=OuterRef("pk")))).order_by("pk")


def can_score(prm: PRM) -> bool:
    return prm.backend != BackendKind.PUSHED


def request_scores(*, prm: PRM, by: User | None, now: dt.datetime) -> Job:
    """Let a PRM score the canaries in the background."""
    refuse_untestable(prm)
    return control.request_job(kind=KIND, subject=f"prm:{prm.pk}", arguments={"prm": prm.pk}, by=by, now=now)


def refuse_untestable(prm: PRM) -> None:
    if not can_score(prm):
        raise CanariesRefused(_("Scores for this PRM can only be pushed, so it cannot score canaries."))
    if find_set(prm.project_id) is None:
        raise CanariesRefused(_("This project has no canaries. Freeze them first."))


def run_canaries_job(job: Job) -> Iterator[JobProgress | Chunk]:
    yield from test_prm(PRM.objects.select_related("project").get(pk=job.arguments["prm"]))


def test_prm(prm: PRM) -> Iterator[JobProgress | Chunk]:
    """Let a PRM score the canaries, and the PRM that it is compared with."""
    before = find_version_before(prm)
    for each in (prm, before):
        if each is not None:
            yield from score_missing(each)
    yield partial(_log_result, prm, before)


def score_missing(prm: PRM, progress: JobProgress | None = None) -> Iterator[Chunk]:
    """Yield chunks that store the scores that are missing. With `progress`, they report it instead of their own."""
    row = find_set(prm.project_id)
    if row is None or not can_score(prm):
        return
    ids = list(select_unscored(prm, row).values_list("pk", flat=True))
    backend, n_done = registry.load_backend(prm) if ids else None, 0
    for part in paging.split(ids, _CANARIES_PER_CALL):
        assert backend is not None
        texts = _load_texts(part)
        found = base.validate_scores(backend.score(texts), texts, prm.semantics)
        n_done += len(part)
        yield partial(_save_scores, prm, texts, found, progress or JobProgress(n_done, len(ids)))


def _load_texts(ids: Sequence[int]) -> list[CanaryText]:
    rows = GamingCanary.objects.in_bulk(ids)
    return [
        CanaryText(
            problem=rows[pk].problem,
            steps=[text for _kind, _is_rateable, text in rows[pk].steps],
            canary=pk,
            is_rateable=[is_rateable for _kind, is_rateable, _text in rows[pk].steps],
        )
        for pk in ids
    ]


def _save_scores(
    prm: PRM, texts: Sequence[CanaryText], found: Sequence[Floats], progress: JobProgress, now: dt.datetime
) -> JobProgress:
    rows = []
    for text, scores in zip(texts, found, strict=True):
        numbers = [score if kept else None for score, kept in zip(scores.tolist(), text.is_rateable, strict=True)]
        rows.append(CanaryScore(prm=prm, canary_id=text.canary, numbers=numbers, scored_at=now))
    CanaryScore.objects.bulk_create(rows, ignore_conflicts=True)
    return progress


def _log_result(prm: PRM, before: PRM | None, now: dt.datetime) -> JobProgress:
    report = build_prm_report(prm, before)
    if report is not None:
        log_alarm(prm=prm, report=report, now=now)
    return JobProgress(1, 1)


# Report


def find_version_before(prm: PRM) -> PRM | None:
    """Return the PRM that this one is compared with: the current one, or the predecessor of the current one."""
    return prm.predecessor if prm.is_current else registry.current_prm(prm.project_id)


def build_prm_report(prm: PRM, before: PRM | None) -> dict[str, Any] | None:
    """Return the figures of a PRM, and with `before` its comparison. None without scores of every canary."""
    row = find_set(prm.project_id)
    edits = load_prm_edits(prm, row) if row is not None else []
    if row is None or not edits:
        return None
    return build_report(row, edits, before.label if before else "", load_prm_edits(before, row) if before else [])


def build_report(
    row: CanarySet, edits: Sequence[ScoredEdit], before: str, edits_before: Sequence[ScoredEdit]
) -> dict[str, Any]:
    compared = canary_report.compare_versions(edits, edits_before) if edits_before else None
    return {
        "set": row.number,
        **canary_report.report_edits(edits),
        "comparison": compared and {"before": before, **compared},
    }


def load_prm_edits(prm: PRM, row: CanarySet) -> list[ScoredEdit]:
    return load_edits_by_prm([prm], row)[prm.pk]


def load_edits_by_prm(prms: Iterable[PRM], row: CanarySet) -> dict[int, list[ScoredEdit]]:
    """Return the edits of each PRM, with its lowest P(right | earlier right) at the compared steps. Empty for a PRM
    until it has scored every canary."""
    prms, canaries = list(prms), load_canaries(row)
    scores: dict[int, dict[int, list[float | None]]] = {prm.pk: {} for prm in prms}
    rows = CanaryScore.objects.filter(prm__in=scores, canary__canary_set=row)
    for prm_id, canary, numbers in rows.values_list("prm", "canary", "numbers"):
        scores[prm_id][canary] = numbers
    return {prm.pk: _score_edits(prm, canaries, scores[prm.pk]) for prm in prms}


def _score_edits(
    prm: PRM, canaries: Sequence[GamingCanary], scores: Mapping[int, Sequence[float | None]]
) -> list[ScoredEdit]:
    order = [canary.pk for canary in canaries]
    if not order or len(scores) < len(order):
        return []
    lengths = np.array([len(scores[pk]) for pk in order], dtype=np.int64)
    numbers = np.array([np.nan if each is None else each for pk in order for each in scores[pk]], dtype=np.float64)
    first_value = {"first_value": hazards.estimate_first_value(numbers, lengths, prm.semantics)}
    p_right = 1 - hazards.calibrated_hazards(numbers, lengths, prm.semantics, first_value | prm.calibration)
    by_canary = dict(zip(order, np.split(p_right, np.cumsum(lengths)[:-1]), strict=True))
    return [
        make_scored_edit(
            canary,
            before=float(by_canary[canary.original_id or 0][canary.original_places].min()),
            after=float(by_canary[canary.pk][canary.places].min()),
        )
        for canary in canaries
        if canary.edit
    ]


def load_canaries(row: CanarySet) -> list[GamingCanary]:
    """Return originals and edits, without their texts."""
    return list(row.canaries.select_related("trace").defer("problem", "steps").order_by("pk"))


def make_scored_edit(canary: GamingCanary, *, before: float, after: float) -> ScoredEdit:
    edit = canary_edits.CanaryEdit(canary.edit)
    return ScoredEdit(canary.number, edit, canary.trace.problem_id, before, after)


def summarize_as_audit(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the share of fooling edits as an audit. It alarms if the version is easier to fool."""
    compared = report["comparison"]
    return {**report["all"], "is_alarming": bool(compared and compared["is_easier"])}


def log_alarm(*, prm: PRM, report: Mapping[str, Any], now: dt.datetime) -> None:
    log_easier_to_fool(
        project_id=prm.project_id, subject=f"prm:{prm.pk}", version=f"PRM {prm.label}", report=report, now=now
    )


def log_easier_to_fool(
    *, project_id: int, subject: str, version: str, report: Mapping[str, Any], now: dt.datetime
) -> None:
    """Log the event of an alarm, once for a version and a set."""
    compared = report["comparison"]
    if not compared or not compared["is_easier"]:
        return
    known = Event.objects.filter(project=project_id, what=EASIER_TO_FOOL, subject=subject)
    if any(event.detail.get("set") == report["set"] for event in known):
        return
    groups = [name for name, each in compared["groups"].items() if each["is_easier"]]
    detail = {"version": version, "before": compared["before"], "set": report["set"], "groups": groups}
    audit_log.log_event(what=EASIER_TO_FOOL, by=None, now=now, project=project_id, subject=subject, detail=detail)


def _log_event(what: str, row: CanarySet, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(
        what=what, by=by, now=now, project=row.project_id, subject=f"canary_set:{row.pk}", detail=detail
    )
