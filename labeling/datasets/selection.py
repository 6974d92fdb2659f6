"""Which rows a manifest takes: what its filters name, and why some of that is left out. Reads only.

A training set leaves out what judges a model or a rater: reserve, screening, gold, training and canary traces, and each
trace whose problem is in a reserve of any project, is that of a canary, or is on the list of a benchmark. What may be
taken in nevertheless is named, reason by reason.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from django.db.models import (
    BigIntegerField,
    BooleanField,
    Case,
    CharField,
    Count,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce, Substr
from msgspec import Meta, Struct

from formats.normalization import LISTED_DIGITS
from labeling import benchmarks
from labeling.models import Assignment, BenchmarkProblem, Gold, Problem, Project, Submission, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.consensus import SettlementState
from labeling.models.gold import GoldUse
from labeling.models.queue import SamplingSource
from rawsql import values_subquery

Unit = Literal["submissions", "traces"]
Inclusion = Literal["in", "out", "only"]
Moment = Annotated[dt.datetime, Meta(tz=True)]  # without a zone nobody knows when it is
_NULL = Cast(Value(None), BigIntegerField())


class ManifestFilters(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Which submissions are wanted; what is absent asks for nothing, and a word that is none of these is refused. The
    latest revision of each counts."""

    finish_reasons: list[str | None] | None = None
    generations: list[int | None] | None = None
    purposes: list[str] | None = None
    populations: list[str] | None = None
    origins: list[str] | None = None
    labelers: list[str | None] | None = None
    rater_kinds: list[str] | None = None
    domains: list[str] | None = None
    arms: list[str] | None = None
    submitted_from: Moment | None = None
    submitted_until: Moment | None = None  # not included itself
    is_blind: bool | None = None
    guideline_from: int | None = None
    contested: Inclusion = "in"
    gold: Inclusion = "in"
    min_raters: int = 0
    unit: Unit = "submissions"
    is_consensus: bool = False


class ScoreSource(NamedTuple):
    """Whose scores a manifest reads: what the PRM is called, and a query of the traces that it has scored. Given by the
    rooms that know PRMs."""

    version: str
    traces: QuerySet[Any]


class Exclusions(Struct):
    """What was found by reading texts, which no condition of a database can say."""

    overlapping: Sequence[int] = ()  # problems that share long runs of words with one that judges
    duplicates: Sequence[int] = ()  # traces that say what another one says
    spans_splits: Sequence[str] = ()  # digests of problems that no side of a split is right for
    seated: QuerySet[Any] | None = None  # digests of the problems that have a side; asked where there is a split
    taken_in: Sequence[str] = ()  # reasons that count for nothing here; "benchmark:NAME" for one list
    is_training: bool = True


def select_rows(project: Project, filters: ManifestFilters, scored: ScoreSource | None = None) -> QuerySet[Any]:
    """Submissions or traces, each with what a row of a manifest holds: `trace_key`, `submission_key`, `consensus_key`,
    `score_key` and `contested_key`."""
    if filters.unit == "traces":
        rows: QuerySet[Any] = Trace.objects.available().filter(project=project)
        named = {"trace_key": F("pk"), "submission_key": _NULL}
    else:
        rows = _submissions(project, filters)
        named = {"trace_key": F("assignment__trace_id"), "submission_key": F("pk")}
    path = _path(filters)
    rows = _filter_by_trace(rows, filters, path)
    state = f"{path}settlement__state"
    is_settled = Q(**{f"{state}__in": [SettlementState.SETTLED, SettlementState.DECIDED]})
    standing = is_settled & Q(**{f"{path}settlement__consensus_revision__gt": 0})
    consensus = Case(When(standing, then=F(f"{path}settlement__consensus_revision")), default=None)
    contested = When(Q(**{state: SettlementState.CONTESTED}), then=Value(True))
    found: QuerySet[Any] = rows.annotate(
        **named,
        consensus_key=consensus if filters.is_consensus else _NULL,
        score_key=_score_version(path, scored),
        contested_key=Case(
            contested, When(is_settled, then=Value(False)), default=None, output_field=BooleanField(null=True)
        ),
    )
    return found


def _score_version(path: str, scored: ScoreSource | None) -> Any:
    if scored is None:
        return Value("", output_field=CharField())
    is_scored = When(Q(**{f"{_trace_path(path)}__in": scored.traces}), then=Value(scored.version))
    return Case(is_scored, default=Value(""), output_field=CharField())


def _path(filters: ManifestFilters) -> str:
    return "" if filters.unit == "traces" else "assignment__trace__"


def _submissions(project: Project, filters: ManifestFilters) -> QuerySet[Submission]:
    latest = Submission.objects.filter(project=project, revision=F("assignment__submitted_revision"))
    if filters.submitted_from:
        latest = latest.filter(submitted_at__gte=filters.submitted_from)
    if filters.submitted_until:
        latest = latest.filter(submitted_at__lt=filters.submitted_until)
    if filters.is_blind is not None:
        latest = latest.filter(assignment__is_assisted=not filters.is_blind)
    if filters.guideline_from is not None:
        latest = latest.filter(assignment__guideline__version__gte=filters.guideline_from)
    if filters.generations is not None:
        # What is made here carries no round of its own: that of the lane which gave it out.
        latest = latest.annotate(
            round=Coalesce("generation", "assignment__lane__generation", output_field=IntegerField())
        )
        latest = latest.filter(_is_among("round", filters.generations))
    return latest.filter(
        _is_among("finish_reason", filters.finish_reasons),
        _is_among("assignment__purpose", filters.purposes),
        _is_among("assignment__population", filters.populations),
        _is_among("assignment__origin", filters.origins),
        _is_among("assignment__rater__labeler", filters.labelers),
        _is_among("assignment__rater__kind", filters.rater_kinds),
        _is_among("assignment__lane__arm", filters.arms),
    )


def _filter_by_trace(rows: QuerySet[Any], filters: ManifestFilters, path: str) -> QuerySet[Any]:
    rows = rows.filter(_is_among(f"{path}problem__domain", filters.domains))
    contested = Q(**{f"{path}settlement__state": SettlementState.CONTESTED})
    rows = _filter_by_inclusion(rows, filters.contested, contested)
    rows = _filter_by_inclusion(rows, filters.gold, Exists(Gold.objects.filter(trace=OuterRef(_trace_path(path)))))
    if filters.min_raters:
        rows = rows.annotate(n_raters=_count_raters(path)).filter(n_raters__gte=filters.min_raters)
    return rows


def _trace_path(path: str) -> str:
    return f"{path}pk" if path else "pk"


def _count_raters(path: str) -> Subquery:
    submitted = Assignment.objects.submitted().filter(trace=OuterRef(_trace_path(path)), purpose=AssignmentPurpose.WORK)
    return Subquery(submitted.order_by().values("trace").annotate(n=Count("rater", distinct=True)).values("n"))


def _filter_by_inclusion(rows: QuerySet[Any], side: Inclusion, is_so: Q | Exists) -> QuerySet[Any]:
    if side == "in":
        return rows
    return rows.filter(is_so) if side == "only" else rows.exclude(is_so)


def _is_among(field: str, wanted: Sequence[Any] | None) -> Q:
    """Null is a value like any other here: phase 1 has no generation."""
    if wanted is None:
        return Q()
    given = [value for value in wanted if value is not None]
    return Q(**{f"{field}__in": given}) | (Q(**{field: None}) if None in wanted else Q(pk__in=[]))


# --- what is left out ------------------------------------------------------------------------------------------------


def annotate_exclusion_reason(rows: QuerySet[Any], filters: ManifestFilters, excluded: Exclusions) -> QuerySet[Any]:
    """Each row with `reason`: the first rule that keeps it away, or null."""
    rules = _exclusion_rules(_path(filters), excluded, has_assignment=filters.unit == "submissions")
    whens = [When(rule, then=Value(name)) for name, rule in rules if name not in excluded.taken_in]
    reason = Case(*whens, default=None, output_field=CharField(null=True)) if whens else Cast(Value(None), CharField())
    found: QuerySet[Any] = rows.annotate(reason=reason)
    return found


def _exclusion_rules(path: str, excluded: Exclusions, *, has_assignment: bool) -> list[tuple[str, Any]]:
    always = [*_split_rules(path, excluded), *_duplicate_rules(path, excluded)]
    if not excluded.is_training:
        return always
    return [
        *(_assignment_rules() if has_assignment else ()),
        *_trace_rules(path, excluded),
        *_problem_rules(path, excluded),
        *always,
    ]


def _split_rules(path: str, excluded: Exclusions) -> list[tuple[str, Any]]:
    """`late` is what came in between the look at the problems and this moment."""
    if excluded.seated is None:
        return []
    spans_splits = (
        [("astride", Q(**{f"{path}problem__digest__in": values_subquery(excluded.spans_splits)}))]
        if excluded.spans_splits
        else []
    )
    return [*spans_splits, ("late", ~Q(**{f"{path}problem__digest__in": excluded.seated}))]


def _duplicate_rules(path: str, excluded: Exclusions) -> list[tuple[str, Any]]:
    return (
        [("duplicate", Q(**{f"{_trace_path(path)}__in": values_subquery(excluded.duplicates)}))]
        if excluded.duplicates
        else []
    )


def _assignment_rules() -> list[tuple[str, Any]]:
    purposes = (AssignmentPurpose.SCREENING, AssignmentPurpose.GOLD, AssignmentPurpose.TRAINING)
    reserve = Q(assignment__lane__arm=SamplingSource.RESERVE) | Q(assignment__draw__arm=SamplingSource.RESERVE)
    return [*((str(each.value), Q(assignment__purpose=each)) for each in purposes), ("reserve", reserve)]


def _trace_rules(path: str, excluded: Exclusions) -> list[tuple[str, Any]]:
    gold = Gold.objects.filter(trace=OuterRef(_trace_path(path)))
    return [
        ("screening", Exists(gold.filter(use=GoldUse.SCREENING))),
        ("training", Exists(gold.filter(use=GoldUse.TRAINING))),
        ("gold", Exists(gold.exclude(use=GoldUse.CANARY))),
    ]


def _problem_rules(path: str, excluded: Exclusions) -> list[tuple[str, Any]]:
    digest = OuterRef(f"{path}problem__normal_digest")
    reserves = Problem.objects.filter(normal_digest=digest, is_reserve=True)
    canaries = Gold.objects.filter(trace__problem__normal_digest=digest, use=GoldUse.CANARY)
    return [
        ("canary", Exists(canaries)),
        ("benchmark", _is_on_benchmark_list(path, excluded)),
        ("reserve", Exists(reserves)),
        *(
            (("overlap", Q(**{f"{path}problem__in": values_subquery(excluded.overlapping)})),)
            if excluded.overlapping
            else ()
        ),
    ]


def _is_on_benchmark_list(path: str, excluded: Exclusions) -> Any:
    """Lists that ship with the code, and those that leads brought in; without the lists that are taken in by name."""
    taken_in = {each.removeprefix("benchmark:") for each in excluded.taken_in if each.startswith("benchmark:")}
    own = BenchmarkProblem.objects.filter(normal_digest=OuterRef(f"{path}problem__normal_digest"))
    shipped = sorted(
        set().union(*(ones for name, ones in benchmarks.load_shipped_lists().items() if name not in taken_in))
    )
    known = Problem.objects.annotate(listed=Substr("normal_digest", 1, LISTED_DIGITS)).filter(
        pk=OuterRef(f"{path}problem_id"), listed__in=values_subquery(shipped)
    )
    return Q(Exists(own.exclude(source__name__in=taken_in))) | Q(Exists(known))
