"""The gold of a project with the answers of its annotators: list, correct and retire it."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.forms.boundfield import BoundField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from charts import number_format
from dashboard import paging, pair_access, render, trace_steps
from dashboard.access import post_view, safe_view
from dashboard.views.screening_set import count_hidden_gold
from labeling import gold_sets, step_numbers
from labeling.models import Consensus, Gold, GoldAnswer, GoldRating, Option, Project, Trace
from labeling.models.consensus import ConsensusSource
from labeling.models.gold import GoldUse, GoldVerdict
from labeling.quality.gold import MIN_GOLD_VOTES, InvalidGold, correct_gold, retire_gold
from labeling.quality.gold_monitor import GoldAccuracy
from people.models import Membership
from people.roles import Action

NEGATIVE_RATING = -1
_RATING_CHOICES = (
    ("", gettext_lazy("not set")),
    ("-1", gettext_lazy("negative")),
    ("0", gettext_lazy("neutral")),
    ("1", gettext_lazy("positive")),
)


class GoldStepField(NamedTuple):
    number: int  # as annotators see it
    position: int
    option: int  # the step's own text


def get_initial_answer(gold: Gold) -> dict[str, Any]:
    initial: dict[str, Any] = {
        "accepted_first_errors": _error_choices(gold.accepted_first_errors),
        "explanation": gold.explanation,
    }
    for row in GoldRating.objects.filter(gold=gold):
        initial |= {f"rating_{row.option_id}": str(row.rating), f"why_{row.option_id}": row.explanation}
    return initial


def get_consensus_answer(consensus: Consensus | None) -> dict[str, Any]:
    """Return the consensus as a first answer, if a person decided it or enough raters agreed."""
    if consensus is None or (consensus.source == ConsensusSource.RATERS and consensus.n_votes < MIN_GOLD_VOTES):
        return {}
    return {"accepted_first_errors": _error_choices([consensus.first_error])}


def _error_choices(positions: list[int | None]) -> list[str]:
    return ["none" if position is None else str(position) for position in positions]


class KnownAnswerForm(forms.Form):
    """More than one first error can be accepted where the guideline allows either."""

    accepted_first_errors = forms.MultipleChoiceField(
        label=gettext_lazy("First error"),
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Select every answer that counts as correct."),
    )
    explanation = forms.CharField(
        label=gettext_lazy("Explanation"),
        required=False,
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("Shown in training after the annotator answers."),
    )

    def __init__(self, *args: Any, trace: Trace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._trace, self._steps = trace, _load_step_fields(trace)
        positions = (step.position for step in self._steps)
        self.fields["accepted_first_errors"].choices = trace_steps.build_error_choices(positions)  # type: ignore[attr-defined]  # it is a MultipleChoiceField
        for step in self._steps:
            self.fields[f"rating_{step.option}"] = forms.TypedChoiceField(
                label=_("Rating of step %(n)d") % {"n": step.number},
                choices=_RATING_CHOICES,
                coerce=int,
                empty_value=None,
                required=False,
            )
            self.fields[f"why_{step.option}"] = forms.CharField(
                label=_("Explanation of step %(n)d") % {"n": step.number}, max_length=1000, required=False
            )

    @property
    def by_step(self) -> list[tuple[int, BoundField, BoundField]]:
        """Return the number, the rating field and the explanation field of each step."""
        return [(step.number, self[f"rating_{step.option}"], self[f"why_{step.option}"]) for step in self._steps]

    @property
    def has_step_ratings(self) -> bool:
        """Return whether any single step is rated, explained, or wrong."""
        return any(rating.value() not in (None, "") or why.value() or why.errors for _n, rating, why in self.by_step)

    def clean_accepted_first_errors(self) -> list[int | None]:
        return [trace_steps.parse_error_choice(choice) for choice in self.cleaned_data["accepted_first_errors"]]

    def clean(self) -> dict[str, Any]:
        """Collect ratings and explanations by option, as `make_gold` and `correct_gold` take them."""
        data = super().clean() or {}
        accepted = data.get("accepted_first_errors")
        ratings: dict[int, int | None] = {}
        explanations: dict[int, str] = {}
        for step in self._steps:
            rating, why = data.pop(f"rating_{step.option}", None), data.pop(f"why_{step.option}", "")
            if rating is None and accepted == [step.position] and why:
                rating = NEGATIVE_RATING  # the only accepted first error is negative by definition
            if accepted and (error := _find_contradiction(step, rating, why, accepted)):
                self.add_error(f"why_{step.option}", error)
            ratings[step.option], explanations[step.option] = rating, why
        return data | {"ratings": ratings, "explanations": explanations}


def _load_step_fields(trace: Trace) -> list[GoldStepField]:
    options = Option.objects.filter(step__trace=trace, step__is_rateable=True, position=0).order_by("step__position")
    rows = options.values_list("pk", "step__position")
    return [GoldStepField(number, position, option) for number, (option, position) in enumerate(rows, start=1)]


def _find_contradiction(step: GoldStepField, rating: int | None, why: str, accepted: list[int | None]) -> str:
    """Return an error if a step's rating contradicts the accepted first errors, else ""."""
    if rating is None:
        return _("Choose a rating for this step, or delete its explanation.") if why else ""
    is_after_error = None not in accepted and step.position > max(each for each in accepted if each is not None)
    if rating == NEGATIVE_RATING and step.position not in accepted and not is_after_error:
        return _("This step is rated negative but is not an accepted first error. Change one of the two.")
    if rating != NEGATIVE_RATING and accepted == [step.position]:
        return _("This step is the first error, so its rating must be negative.")
    return ""


class MakeGoldForm(KnownAnswerForm):
    use = forms.ChoiceField(label=gettext_lazy("Use"), choices=GoldUse.choices, initial=GoldUse.HIDDEN)

    def clean_use(self) -> GoldUse:
        use = GoldUse(self.cleaned_data["use"])
        if self._trace.gold.active().filter(use=use).exists():
            raise ValidationError(
                _("This trace is already gold for this use. Choose another use."), code="already_gold"
            )
        return use


@dataclass(frozen=True)
class GoldRow:
    """A gold trace with its accuracy over all answers, training and screening included."""

    gold: Gold
    accuracy: GoldAccuracy
    accepted: str

    @property
    def share(self) -> str:
        return number_format.format_share(self.accuracy.share)

    @property
    def interval(self) -> str:
        interval = self.accuracy.interval
        return number_format.format_interval(interval.low, interval.high) if self.accuracy.n else ""


def select_gold(project: Project) -> QuerySet[Gold]:
    return Gold.objects.filter(trace__project=project).select_related("trace__problem", "trace__project", "made_by")


def build_gold_rows(golds: Sequence[Gold]) -> list[GoldRow]:
    answers = GoldAnswer.objects.counted().filter(gold__in=[gold.pk for gold in golds]).order_by()
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for gold_id, verdict, n in answers.values_list("gold", "verdict").annotate(Count("pk")):
        counts[gold_id][verdict] = n
    numbers = step_numbers.load_step_numbers(trace_ids={gold.trace_id for gold in golds})
    return [
        GoldRow(gold, _build_accuracy(counts[gold.pk]), trace_steps.describe_accepted_errors(gold, numbers))
        for gold in golds
    ]


def _build_accuracy(counts: Counter[str]) -> GoldAccuracy:
    return GoldAccuracy(
        n=counts.total(),
        right=counts[GoldVerdict.RIGHT],
        missed=counts[GoldVerdict.MISSED],
        blamed=counts[GoldVerdict.BLAMED],
        gave_up=counts[GoldVerdict.GAVE_UP],
    )


@safe_view(Action.MAKE_GOLD)
def show_gold(request: HttpRequest, actor: Membership) -> HttpResponse:
    rows = paging.paginate(select_gold(actor.project), request.GET)
    return render.project_page(
        request,
        actor,
        "dashboard/gold.html",
        here="gold",
        golds=build_gold_rows(rows.rows),
        rows=rows,
        mix=gold_sets.load_screening_mix(actor.project),
        hidden=count_hidden_gold(actor.project),
    )


@safe_view(Action.MAKE_GOLD)
def show_gold_trace(request: HttpRequest, actor: Membership, gold: int) -> HttpResponse:
    row = _get_gold(actor, gold)
    form = KnownAnswerForm(trace=row.trace, initial=get_initial_answer(row))
    return _render_gold_trace(request, actor, row, form=form)


@post_view(Action.MAKE_GOLD)
def correct_gold_trace(request: HttpRequest, actor: Membership, gold: int) -> HttpResponse:
    row = _get_gold(actor, gold)
    form = KnownAnswerForm(request.POST, trace=row.trace)
    if not form.is_valid():
        return _render_gold_trace(request, actor, row, form=form, status=422)
    try:
        n = correct_gold(gold=row, by=actor.user, now=timezone.now(), **form.cleaned_data)
    except InvalidGold as error:
        return _render_gold_trace(request, actor, row, form=form, problem=str(error), status=422)
    text = ngettext("Saved. The verdict on %(n)d answer changed.", "Saved. The verdicts on %(n)d answers changed.", n)
    messages.success(request, text % {"n": n})
    return redirect("dashboard:gold_trace", actor.project.slug, row.pk)


@post_view(Action.MAKE_GOLD)
def retire_gold_trace(request: HttpRequest, actor: Membership, gold: int) -> HttpResponse:
    row = _get_gold(actor, gold)
    if retire_gold(gold=row, by=actor.user, now=timezone.now()):
        messages.success(
            request, _("Retired. The trace will no longer be assigned as gold. Existing answers are kept.")
        )
    else:
        messages.warning(request, _("This gold trace was already retired."))
    return redirect("dashboard:gold_trace", actor.project.slug, row.pk)


def _get_gold(actor: Membership, gold: int) -> Gold:
    row = get_object_or_404(select_gold(actor.project), pk=gold)
    pair_access.reserve_half_or_403(actor, row.trace)
    return row


def _render_gold_trace(request: HttpRequest, actor: Membership, gold: Gold, **context: Any) -> HttpResponse:
    return render.project_page(
        request,
        actor,
        "dashboard/gold_trace.html",
        here="gold",
        row=build_gold_rows([gold])[0],
        steps=trace_steps.load_steps(gold.trace),
        **context,
    )
