"""Which rows a manifest has: the submissions or traces that its filters select. Reads only."""

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from django.db import models
from django.db.models import Case, Count, Exists, F, Min, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Cast, Coalesce
from msgspec import Meta, Struct

from labeling.models import Assignment, FirstErrorReport, Gold, Judgment, Project, Submission, Trace, TraceTag
from labeling.models.assignment import AssignmentPurpose
from labeling.models.consensus import SettlementState
from labeling.models.rater import RaterKind
from labeling.quality.chosen_raters import RaterChoice
from labeling.quality.settlements import RESOLVED_STATES
from labeling.quality.submitted_reports import CENSORING_REASONS
from rawsql import values_subquery

Unit = Literal["submissions", "traces"]
Inclusion = Literal["in", "out", "only"]
Moment = Annotated[dt.datetime, Meta(tz=True)]  # ambiguous without a time zone
_INTEGER = models.BigIntegerField()
_NULL = Cast(Value(None), _INTEGER)


class ManifestFilters(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Which rows to select. An absent filter selects everything; an unknown one is an error. Only the latest revision
    of a submission is selected."""

    finish_reasons: list[str | None] | None = None
    generations: list[int | None] | None = None
    purposes: list[str] | None = None
    populations: list[str] | None = None
    origins: list[str] | None = None
    # A consensus is inferred again from the labels of the raters who are not left out: `chosen_raters`.
    labelers: list[str | None] | None = None
    without_labelers: list[str] | None = None
    set_aside: Inclusion = "out"  # submissions that a lead has set aside
    rater_kinds: list[str] | None = None
    domains: list[str] | None = None
    tags: list[str] | None = None  # traces with one of these tags
    without_tags: list[str] | None = None
    arms: list[str] | None = None
    submitted_from: Moment | None = None
    submitted_until: Moment | None = None  # exclusive
    is_blind: bool | None = None  # by people who saw no scores
    guideline_from: int | None = None
    contested: Inclusion = "in"
    gold: Inclusion = "in"
    min_raters: int = 0
    unit: Unit = "submissions"
    is_consensus: bool = False
    # Traces for which these machines, by name or pseudonym, all name the same first error: the consensus filter of Z.
    # Zhang et al. (2025), "The lessons of developing process reward models", arXiv:2501.07301.
    agreeing_machines: list[str] | None = None

    @property
    def choice(self) -> RaterChoice:
        return RaterChoice(self.labelers, self.without_labelers or ())


class ScoreSource(NamedTuple):
    """The PRM whose scores a manifest refers to, and a query of the traces that it has scored."""

    version: str
    traces: QuerySet[Any]


ExclusionRule = tuple[str, Q | Exists]  # a reason code, and the rows that are left out for it


def select_rows(
    project: Project,
    filters: ManifestFilters,
    score_source: ScoreSource | None = None,
    chosen_revisions: Mapping[int, int] | None = None,
) -> QuerySet[Any]:
    """Return the selected submissions or traces, annotated with the columns of `ManifestRow`: `trace_key`,
    `submission_key`, `consensus_key`, `score_key`, and `contested_key`. `chosen_revisions` replace the current
    consensus of their traces."""
    prefix = trace_prefix(filters)
    if filters.unit == "traces":
        rows: QuerySet[Any] = Trace.objects.available().filter(project=project)
        keys = {"trace_key": F("pk"), "submission_key": _NULL}
    else:
        rows = _select_submissions(project, filters)
        keys = {"trace_key": F("assignment__trace_id"), "submission_key": F("pk")}
    state = f"{prefix}settlement__state"
    revision = f"{prefix}settlement__consensus_revision"
    is_settled = Q(**{f"{state}__in": RESOLVED_STATES})
    replaced = [
        When(is_settled & Q(**{f"{prefix}pk__in": values_subquery(traces)}), then=Cast(Value(number), _INTEGER))
        for number, traces in _group_by_revision(chosen_revisions or {}).items()
    ]
    current = When(is_settled & Q(**{f"{revision}__gt": 0}), then=Cast(F(revision), _INTEGER))
    consensus = Case(*replaced, current, default=None)
    selected: QuerySet[Any] = _filter_by_trace(rows, filters, prefix).annotate(
        **keys,
        consensus_key=consensus if filters.is_consensus else _NULL,
        score_key=_score_version(prefix, score_source),
        contested_key=Case(
            When(Q(**{state: SettlementState.CONTESTED}), then=Value(True)),
            When(is_settled, then=Value(False)),
            default=None,
            output_field=models.BooleanField(null=True),
        ),
    )
    return selected


def annotate_exclusion_reason(rows: QuerySet[Any], rules: Sequence[ExclusionRule]) -> QuerySet[Any]:
    """Annotate each row with `reason`: the code of the first rule that applies, or null."""
    whens = [When(condition, then=Value(reason)) for reason, condition in rules]
    output = models.CharField(null=True)
    annotated: QuerySet[Any] = rows.annotate(
        reason=Case(*whens, default=None, output_field=output) if whens else Cast(Value(None), output)
    )
    return annotated


def _group_by_revision(revisions: Mapping[int, int]) -> dict[int, list[int]]:
    """Return the traces of each revision number: there are few numbers, and many traces."""
    traces = defaultdict(list)
    for trace, number in revisions.items():
        traces[number].append(trace)
    return traces


def choice_rules(filters: ManifestFilters, chosen_revisions: Mapping[int, int] | None = None) -> list[ExclusionRule]:
    """Return the exclusion rules for what a person chose to leave out, so that these rows are counted by reason. A
    consensus with votes of raters who are left out is itself left out, unless one of `chosen_revisions` replaces it."""
    rules: list[ExclusionRule] = []
    prefix = trace_prefix(filters)
    if filters.unit == "submissions" and filters.set_aside == "out":
        rules.append(("set_aside", Q(assignment__set_aside__isnull=False)))
    if filters.without_labelers and filters.unit == "submissions":
        rules.append(("rater", Q(assignment__rater__labeler__in=filters.without_labelers)))
    if filters.is_consensus and not filters.choice.is_everybody:
        votes = FirstErrorReport.objects.filter(trace=OuterRef(f"{prefix}pk"), assignment__set_aside=None)
        has_votes = Q(Exists(votes.filter(filters.choice.match_left_out("rater__"))))
        has_votes &= Q(**{f"{prefix}settlement__state__in": RESOLVED_STATES})
        if chosen_revisions:
            has_votes &= ~Q(**{f"{prefix}pk__in": values_subquery(list(chosen_revisions))})
        rules.append(("rater", has_votes))
    if filters.agreeing_machines:
        rules.append(("machines", ~Q(do_machines_agree(filters.agreeing_machines, OuterRef(f"{prefix}pk")))))
    return rules


def do_machines_agree(machines: Sequence[str], trace: Any) -> Exists:
    """Return the condition that each of these machines named a first error, or none, and all of them the same."""
    rated = Judgment.objects.filter(
        turn__assignment=OuterRef("pk"),
        turn__revision=OuterRef("submitted_revision"),
        turn__step__is_rateable=True,
        option__position=0,
        rating__isnull=False,
    )
    errors = rated.filter(rating=-1).order_by().values("turn__assignment")
    labels = (
        Assignment.objects.counted()
        .filter(Exists(rated), rater__kind=RaterKind.MACHINE, purpose=AssignmentPurpose.WORK)
        .filter(Q(finish_reason=None) | ~Q(finish_reason__in=CENSORING_REASONS))
        .annotate(error=Coalesce(Subquery(errors.annotate(at=Min("turn__step__position")).values("at")), Value(-1)))
    )
    first, *others = (Q(rater__machine=name) | Q(rater__labeler=name) for name in machines)
    found = labels.filter(first, trace=trace)
    for other in others:
        found = found.filter(Exists(labels.filter(other, trace=OuterRef("trace"), error=OuterRef("error"))))
    return Exists(found)


def trace_prefix(filters: ManifestFilters) -> str:
    """Return the lookup prefix that leads from a selected row to its trace."""
    return "" if filters.unit == "traces" else "assignment__trace__"


def _score_version(prefix: str, score_source: ScoreSource | None) -> Any:
    if score_source is None:
        return Value("", output_field=models.CharField())
    is_scored = When(Q(**{f"{prefix}pk__in": score_source.traces}), then=Value(score_source.version))
    return Case(is_scored, default=Value(""), output_field=models.CharField())


def _select_submissions(project: Project, filters: ManifestFilters) -> QuerySet[Submission]:
    latest = Submission.objects.filter(project=project, revision=F("assignment__submitted_revision"))
    if filters.set_aside == "only":
        latest = latest.filter(assignment__set_aside__isnull=False)
    if filters.submitted_from:
        latest = latest.filter(submitted_at__gte=filters.submitted_from)
    if filters.submitted_until:
        latest = latest.filter(submitted_at__lt=filters.submitted_until)
    if filters.is_blind is not None:
        is_assisted = Q(assignment__is_assisted=True) | Q(assignment__rater__kind=RaterKind.MACHINE)
        latest = latest.filter(~is_assisted if filters.is_blind else is_assisted)
    if filters.guideline_from is not None:
        latest = latest.filter(assignment__guideline__version__gte=filters.guideline_from)
    if filters.generations is not None:
        # Submissions made on the platform have no generation of their own: their lane has it.
        latest = latest.annotate(
            round=Coalesce("generation", "assignment__lane__generation", output_field=models.IntegerField())
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


def _filter_by_trace(rows: QuerySet[Any], filters: ManifestFilters, prefix: str) -> QuerySet[Any]:
    trace = OuterRef(f"{prefix}pk")
    rows = rows.filter(_is_among(f"{prefix}problem__domain", filters.domains))
    tags = TraceTag.objects.filter(trace=trace)
    if filters.tags is not None:
        rows = rows.filter(Exists(tags.filter(name__in=filters.tags)))
    if filters.without_tags:
        rows = rows.exclude(Exists(tags.filter(name__in=filters.without_tags)))
    is_contested = Q(**{f"{prefix}settlement__state": SettlementState.CONTESTED})
    rows = _filter_by_inclusion(rows, filters.contested, is_contested)
    rows = _filter_by_inclusion(rows, filters.gold, Exists(Gold.objects.filter(trace=trace)))
    if filters.min_raters:
        submitted = Assignment.objects.counted().filter(trace=trace, purpose=AssignmentPurpose.WORK)
        if filters.is_consensus:
            submitted = submitted.exclude(filters.choice.match_left_out("rater__"))
        counts = submitted.order_by().values("trace").annotate(n=Count("rater", distinct=True)).values("n")
        rows = rows.annotate(n_raters=Subquery(counts)).filter(n_raters__gte=filters.min_raters)
    return rows


def _filter_by_inclusion(rows: QuerySet[Any], inclusion: Inclusion, condition: Q | Exists) -> QuerySet[Any]:
    if inclusion == "in":
        return rows
    return rows.filter(condition) if inclusion == "only" else rows.exclude(condition)


def _is_among(field: str, values: Sequence[Any] | None) -> Q:
    """Match these values; None matches null, since submissions of phase 1 have no generation."""
    if values is None:
        return Q()
    given = [value for value in values if value is not None]
    return Q(**{f"{field}__in": given}) | (Q(**{field: None}) if None in values else Q(pk__in=[]))
