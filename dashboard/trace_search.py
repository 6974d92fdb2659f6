"""The filters of the trace list. Each keeps the search bounded: see `paging.paginate`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from dashboard import rater_names
from formats import integers
from labeling.models import (
    Assignment,
    FirstErrorReport,
    Judgment,
    Project,
    QueueEntry,
    Rater,
    Source,
    TraceAnswer,
    TraceTag,
)
from labeling.models.assignment import OPEN_STATES, AssignmentPurpose, FinishReason
from labeling.models.consensus import SettlementState
from labeling.models.queue import SamplingSource
from labeling.models.rater import RaterKind
from labeling.models.trace import TraceQuerySet
from labeling.projects import rating_rules, taxonomies
from labeling.projects.clauses import Clause
from labeling.projects.taxonomies import Taxonomy
from labeling.quality import consensus
from labeling.traces import tags
from people.models import Membership

MAX_CHOICES = 500
STATE_CHOICES = (
    ("", _("any state")),
    ("unread", _("not labeled yet")),
    ("in_hand", _("assigned now")),
    *((state.value, state.label) for state in SettlementState if state is not SettlementState.LIVE),
    ("chosen", _("moved to the front")),
    ("bad_problem", _("problem reported as bad")),
    ("gold", _("gold")),
    ("withdrawn", _("withdrawn")),
)
LABEL_CHOICES = (
    ("", _("any label")),
    ("error", _("error found by at least one annotator")),
    ("no_error", _("rated error-free by at least one annotator")),
    ("gave_up", _("given up by at least one annotator")),
    ("settled_error", _("consensus: error")),
    ("settled_no_error", _("consensus: no error")),
)


class TraceSearchForm(forms.Form):
    q = forms.CharField(label=_("Number, reference or words in the problem"), max_length=200, required=False)
    state = forms.ChoiceField(label=_("State"), choices=STATE_CHOICES, required=False)
    rater = forms.ChoiceField(label=_("Annotator"), required=False)
    label = forms.ChoiceField(label=_("Label"), choices=LABEL_CHOICES, required=False)
    kind = forms.ChoiceField(label=_("Kind of error"), required=False)
    severity = forms.ChoiceField(label=_("Severity"), required=False)
    clause = forms.ChoiceField(label=_("Clause"), required=False)
    answer = forms.ChoiceField(label=_("Answer"), required=False)
    tag = forms.ChoiceField(label=_("Tag"), required=False)
    source = forms.ChoiceField(label=_("Source"), required=False)
    domain = forms.CharField(label=_("Domain"), max_length=100, required=False)

    def __init__(self, *args: Any, actor: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.actor = actor
        project = actor.project
        sources = Source.objects.filter(project=project).order_by("-pk").values_list("pk", "name")
        raters = Rater.objects.filter(project=project).select_related("user").order_by("pk").only(*rater_names.COLUMNS)
        names = sorted((rater_names.get_display_name(each, actor), each.pk) for each in raters[:MAX_CHOICES])
        choices: dict[str, Sequence[tuple[Any, Any]]] = {
            "rater": [("", _("any annotator")), *((str(pk), name) for name, pk in names)],
            "tag": [("", _("any tag")), *((name, name) for name in tags.list_tags(project_id=project.pk))],
            "source": [("", _("any source")), *((str(pk), name) for pk, name in sources[:MAX_CHOICES])],
        }
        for name, values in {**choices, **_list_taxonomy_choices(project)}.items():
            if values:
                self.fields[name].choices = values  # type: ignore[attr-defined]  # it is a ChoiceField
            else:  # the project does not ask
                del self.fields[name]

    def select(self, traces: TraceQuerySet) -> tuple[TraceQuerySet, bool]:
        """Return the matching traces, and whether any filter is set. An invalid search selects all."""
        filters = {name: value for name, value in self.cleaned_data.items() if value} if self.is_valid() else {}
        sought = SoughtSubmission(*(filters.pop(name, "") for name in SoughtSubmission._fields))
        for name, value in filters.items():
            traces = _FILTERS[name](traces, value)
        if any(sought):
            traces = traces.filter(_matches_submission(self.actor.project_id, sought))
        return traces, bool(filters) or any(sought)


def _list_taxonomy_choices(project: Project) -> dict[str, list[tuple[Any, Any]]]:
    """Return the choices for what the project asks, or has asked under a version of its guideline."""
    stored = project.guidelines.order_by("version").values_list("version", "taxonomy")
    earlier = {version: taxonomies.parse_taxonomy(taxonomy) for version, taxonomy in stored if taxonomy}
    current = taxonomies.load_taxonomy(project)
    asked = [*earlier.values(), current]
    clauses = _list_clause_choices(earlier, current)
    kinds = {kind.code: kind.name for each in asked for kind in each.kinds}
    severities = rating_rules.name_severities(project) if any(each.severities for each in asked) else {}
    questions = {question.code: question for each in asked for question in each.questions if question.choices}
    answers = [
        (question.title, [(f"{code}={choice.code}", choice.name) for choice in question.choices])
        for code, question in questions.items()
    ]
    return {
        "kind": [("", _("any kind")), *kinds.items()] if kinds else [],
        "severity": [("", _("any severity")), *((str(key), name) for key, name in severities.items())]
        if severities
        else [],
        "clause": [("", _("any clause")), *clauses[:MAX_CHOICES]] if clauses else [],
        "answer": [("", _("any answer")), *answers] if answers else [],
    }


def _list_clause_choices(earlier: Mapping[int, Taxonomy], current: Taxonomy) -> list[tuple[str, str]]:
    """Return the clauses of the current guideline, then others with the last version that had them. A number may have
    another clause in another version, so a choice also has the digest."""
    names = {_choose_clause(clause): f"{clause.code} {clause.title}" for clause in current.clauses}
    for version, taxonomy in sorted(earlier.items(), reverse=True):
        for clause in taxonomy.clauses:
            details = {"clause": f"{clause.code} {clause.title}", "n": version}
            names.setdefault(_choose_clause(clause), _("%(clause)s (version %(n)d)") % details)
    return list(names.items())


def _choose_clause(clause: Clause) -> str:
    return f"{clause.code}={clause.digest}"


def _cite_clause(choice: str) -> Q:
    """Return the condition that a rating cites a clause. Imported citations may have only its number."""
    code, _equals, digest = choice.rpartition("=")
    is_named = Q(citations__contains=[{"clause": code, "digest": ""}])
    return is_named | Q(citations__contains=[{"clause": code, "digest": digest}])


class SoughtSubmission(NamedTuple):
    """The filters that one submission must match. Kind, severity and clause must be those of one rating."""

    label: str
    rater: str
    kind: str
    severity: str
    clause: str
    answer: str


def _matches_submission(project_id: int, sought: SoughtSubmission) -> Q:
    """Return the condition. A consensus label is a condition of its own."""
    label, rater, *asked = sought
    found = Q()
    if label.startswith("settled"):
        revisions = consensus.current_revisions(project_id=project_id).filter(trace=OuterRef("pk"))
        found = Q(Exists(revisions.filter(first_error__isnull=label == "settled_no_error")))
        label = ""
    # The filter by annotator finds labels that were set aside; the others do not.
    submitted = Assignment.objects.counted() if label or any(asked) else Assignment.objects.submitted()
    work = submitted.filter(trace=OuterRef("pk"))
    work = work.filter(rater=int(rater)) if rater else work
    if label == "gave_up":
        work = work.filter(finish_reason=FinishReason.GIVE_UP)
    elif label:
        work = work.filter(report__first_error__isnull=label == "no_error", report__is_censored=False)
    for condition in _match_explanations(sought):
        work = work.filter(condition)
    return found & Q(Exists(work)) if label or rater or any(asked) else found


def _match_explanations(sought: SoughtSubmission) -> Iterator[Exists]:
    """Yield conditions on what a submission says besides ratings."""
    if sought.kind or sought.severity or sought.clause:
        own = Judgment.objects.filter(turn__assignment=OuterRef("pk"), turn__revision=OuterRef("submitted_revision"))
        if sought.kind:
            code = sought.kind  # one of several, separated by spaces
            several = Q(category__startswith=f"{code} ") | Q(category__endswith=f" {code}")
            own = own.filter(Q(category=code) | several | Q(category__contains=f" {code} "), rating=-1)
        if sought.severity:
            own = own.filter(severity=int(sought.severity), rating=-1)
        yield Exists(own.filter(_cite_clause(sought.clause)) if sought.clause else own)
    if sought.answer:
        question, _equals, value = sought.answer.partition("=")
        answers = TraceAnswer.objects.filter(assignment=OuterRef("pk"), revision=OuterRef("submitted_revision"))
        yield Exists(answers.filter(question=question, value=value))


def filter_unresolved_bad_reports(reports: QuerySet[FirstErrorReport]) -> QuerySet[FirstErrorReport]:
    """Keep reports of a bad problem whose trace is neither withdrawn nor settled."""
    settled = (SettlementState.SETTLED, SettlementState.DECIDED)
    rows = reports.filter(has_bad_problem=True, trace__withdrawn_at=None)
    return rows.exclude(trace__settlement__state__in=settled)


def _filter_by_words(rows: TraceQuerySet, words: str) -> TraceQuerySet:
    words = words.strip()
    by_number = Q(pk=integers.parse_integer(words.removeprefix("#")))
    return rows.filter(by_number | Q(ref=words) | Q(problem__text__icontains=words))


def _filter_by_state(rows: TraceQuerySet, state: str) -> TraceQuerySet:
    if state == "unread":
        work = Assignment.objects.submitted().filter(trace=OuterRef("pk"), purpose=AssignmentPurpose.WORK)
        work = work.exclude(rater__kind=RaterKind.MACHINE)
        return rows.available().filter(~Exists(work), settlement=None)
    if state == "in_hand":
        return rows.filter(assignments__state__in=OPEN_STATES).distinct()
    if state == "chosen":
        chosen = QueueEntry.objects.open().filter(trace=OuterRef("pk"), lane__arm=SamplingSource.CHOSEN)
        return rows.filter(Exists(chosen))
    if state == "bad_problem":
        return rows.filter(pk__in=filter_unresolved_bad_reports(FirstErrorReport.objects.all()).values("trace"))
    if state == "gold":
        return rows.filter(gold__retired_at=None, gold__isnull=False).distinct()
    if state == "withdrawn":
        return rows.filter(withdrawn_at__isnull=False)
    if state == SettlementState.CONTESTED:  # as the overview counts them
        rows = rows.available()
    return rows.filter(settlement__state=state)


_FILTERS: dict[str, Callable[[TraceQuerySet, Any], TraceQuerySet]] = {
    "q": _filter_by_words,
    "state": _filter_by_state,
    "tag": lambda rows, tag: rows.filter(Exists(TraceTag.objects.filter(trace=OuterRef("pk"), name=tag))),
    "source": lambda rows, source: rows.filter(source=source),
    "domain": lambda rows, domain: rows.filter(problem__domain__iexact=domain.strip()),
}
