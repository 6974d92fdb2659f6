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

from labeling import benchmarks
from labeling.models import Assignment, BenchmarkProblem, Gold, Problem, Project, Submission, Trace
from labeling.models.assignment import Purpose
from labeling.models.consensus import SettlementState
from labeling.models.quality import GoldUse
from labeling.models.queue import Arm
from labeling.texts.normal import LISTED
from statements import given

Unit = Literal["submissions", "traces"]
Side = Literal["in", "out", "only"]
Moment = Annotated[dt.datetime, Meta(tz=True)]  # without a zone nobody knows when it is
_NOTHING = Cast(Value(None), BigIntegerField())


class Filters(Struct, omit_defaults=True, forbid_unknown_fields=True):
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
    contested: Side = "in"
    gold: Side = "in"
    min_raters: int = 0
    unit: Unit = "submissions"
    is_consensus: bool = False


class Scored(NamedTuple):
    """Whose scores a manifest reads: what the PRM is called, and a query of the traces that it has scored. Given by the
    rooms that know PRMs."""

    version: str
    traces: QuerySet[Any]


class Barred(Struct):
    """What was found by reading texts, which no condition of a database can say."""

    overlapping: Sequence[int] = ()  # problems that share long runs of words with one that judges
    duplicates: Sequence[int] = ()  # traces that say what another one says
    astride: Sequence[str] = ()  # digests of problems that no side of a split is right for
    seated: QuerySet[Any] | None = None  # digests of the problems that have a side; asked where there is a split
    taken_in: Sequence[str] = ()  # reasons that count for nothing here; "benchmark:NAME" for one list
    is_training: bool = True


def chosen(project: Project, filters: Filters, scored: Scored | None = None) -> QuerySet[Any]:
    """Submissions or traces, each with what a row of a manifest holds: `trace_key`, `submission_key`, `consensus_key`,
    `score_key` and `contested_key`."""
    if filters.unit == "traces":
        rows: QuerySet[Any] = Trace.objects.available().filter(project=project)
        named = {"trace_key": F("pk"), "submission_key": _NOTHING}
    else:
        rows = _submissions(project, filters)
        named = {"trace_key": F("assignment__trace_id"), "submission_key": F("pk")}
    path = _path(filters)
    rows = _of_traces(rows, filters, path)
    state = f"{path}settlement__state"
    is_settled = Q(**{f"{state}__in": [SettlementState.SETTLED, SettlementState.DECIDED]})
    standing = is_settled & Q(**{f"{path}settlement__consensus_revision__gt": 0})
    consensus = Case(When(standing, then=F(f"{path}settlement__consensus_revision")), default=None)
    contested = When(Q(**{state: SettlementState.CONTESTED}), then=Value(True))
    found: QuerySet[Any] = rows.annotate(
        **named,
        consensus_key=consensus if filters.is_consensus else _NOTHING,
        score_key=_score_version(path, scored),
        contested_key=Case(
            contested, When(is_settled, then=Value(False)), default=None, output_field=BooleanField(null=True)
        ),
    )
    return found


def _score_version(path: str, scored: Scored | None) -> Any:
    if scored is None:
        return Value("", output_field=CharField())
    is_scored = When(Q(**{f"{_trace(path)}__in": scored.traces}), then=Value(scored.version))
    return Case(is_scored, default=Value(""), output_field=CharField())


def _path(filters: Filters) -> str:
    return "" if filters.unit == "traces" else "assignment__trace__"


def _submissions(project: Project, filters: Filters) -> QuerySet[Submission]:
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


def _of_traces(rows: QuerySet[Any], filters: Filters, path: str) -> QuerySet[Any]:
    rows = rows.filter(_is_among(f"{path}problem__domain", filters.domains))
    contested = Q(**{f"{path}settlement__state": SettlementState.CONTESTED})
    rows = _on_side(rows, filters.contested, contested)
    rows = _on_side(rows, filters.gold, Exists(Gold.objects.filter(trace=OuterRef(_trace(path)))))
    if filters.min_raters:
        rows = rows.annotate(n_raters=_n_raters(path)).filter(n_raters__gte=filters.min_raters)
    return rows


def _trace(path: str) -> str:
    return f"{path}pk" if path else "pk"


def _n_raters(path: str) -> Subquery:
    submitted = Assignment.objects.submitted().filter(trace=OuterRef(_trace(path)), purpose=Purpose.WORK)
    return Subquery(submitted.order_by().values("trace").annotate(n=Count("rater", distinct=True)).values("n"))


def _on_side(rows: QuerySet[Any], side: Side, is_so: Q | Exists) -> QuerySet[Any]:
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


def with_reason(rows: QuerySet[Any], filters: Filters, barred: Barred) -> QuerySet[Any]:
    """Each row with `reason`: the first rule that keeps it away, or null."""
    rules = _rules(_path(filters), barred, has_assignment=filters.unit == "submissions")
    whens = [When(rule, then=Value(name)) for name, rule in rules if name not in barred.taken_in]
    reason = Case(*whens, default=None, output_field=CharField(null=True)) if whens else Cast(Value(None), CharField())
    found: QuerySet[Any] = rows.annotate(reason=reason)
    return found


def _rules(path: str, barred: Barred, *, has_assignment: bool) -> list[tuple[str, Any]]:
    always = [*_rules_of_splits(path, barred), *_rules_of_duplicates(path, barred)]
    if not barred.is_training:
        return always
    return [
        *(_rules_of_assignments() if has_assignment else ()),
        *_rules_of_traces(path, barred),
        *_rules_of_problems(path, barred),
        *always,
    ]


def _rules_of_splits(path: str, barred: Barred) -> list[tuple[str, Any]]:
    """`late` is what came in between the look at the problems and this moment."""
    if barred.seated is None:
        return []
    astride = [("astride", Q(**{f"{path}problem__digest__in": given(barred.astride)}))] if barred.astride else []
    return [*astride, ("late", ~Q(**{f"{path}problem__digest__in": barred.seated}))]


def _rules_of_duplicates(path: str, barred: Barred) -> list[tuple[str, Any]]:
    return [("duplicate", Q(**{f"{_trace(path)}__in": given(barred.duplicates)}))] if barred.duplicates else []


def _rules_of_assignments() -> list[tuple[str, Any]]:
    purposes = (Purpose.SCREENING, Purpose.GOLD, Purpose.TRAINING)
    reserve = Q(assignment__lane__arm=Arm.RESERVE) | Q(assignment__draw__arm=Arm.RESERVE)
    return [*((str(each.value), Q(assignment__purpose=each)) for each in purposes), ("reserve", reserve)]


def _rules_of_traces(path: str, barred: Barred) -> list[tuple[str, Any]]:
    gold = Gold.objects.filter(trace=OuterRef(_trace(path)))
    return [
        ("screening", Exists(gold.filter(use=GoldUse.SCREENING))),
        ("training", Exists(gold.filter(use=GoldUse.TRAINING))),
        ("gold", Exists(gold.exclude(use=GoldUse.CANARY))),
    ]


def _rules_of_problems(path: str, barred: Barred) -> list[tuple[str, Any]]:
    digest = OuterRef(f"{path}problem__normal_digest")
    reserves = Problem.objects.filter(normal_digest=digest, is_reserve=True)
    canaries = Gold.objects.filter(trace__problem__normal_digest=digest, use=GoldUse.CANARY)
    return [
        ("canary", Exists(canaries)),
        ("benchmark", _is_on_a_list(path, barred)),
        ("reserve", Exists(reserves)),
        *((("overlap", Q(**{f"{path}problem__in": given(barred.overlapping)})),) if barred.overlapping else ()),
    ]


def _is_on_a_list(path: str, barred: Barred) -> Any:
    """Lists that ship with the code, and those that leads brought in; without the lists that are taken in by name."""
    taken_in = {each.removeprefix("benchmark:") for each in barred.taken_in if each.startswith("benchmark:")}
    own = BenchmarkProblem.objects.filter(normal_digest=OuterRef(f"{path}problem__normal_digest"))
    shipped = sorted(set().union(*(ones for name, ones in benchmarks.shipped().items() if name not in taken_in)))
    known = Problem.objects.annotate(listed=Substr("normal_digest", 1, LISTED)).filter(
        pk=OuterRef(f"{path}problem_id"), listed__in=given(shipped)
    )
    return Q(Exists(own.exclude(source__name__in=taken_in))) | Q(Exists(known))
