"""The known answer of a gold trace: where its first error is, and the ratings of its steps."""

from typing import Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError
from django.forms.boundfield import BoundField
from django.utils.translation import gettext_lazy as _

from labeling.models import Consensus, Gold, GoldRating, Option, Trace
from labeling.models.consensus import ConsensusSource
from labeling.models.gold import GoldUse
from labeling.quality.gold import MIN_GOLD_VOTES

NEGATIVE_RATING = -1
_RATING_CHOICES = (("", _("not set")), ("-1", _("negative")), ("0", _("neutral")), ("1", _("positive")))


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
        label=_("First error"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Select every answer that counts as correct."),
    )
    explanation = forms.CharField(
        label=_("Explanation"),
        required=False,
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Shown in training after the annotator answers."),
    )

    def __init__(self, *args: Any, trace: Trace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._trace, self._steps = trace, _load_step_fields(trace)
        self.fields["accepted_first_errors"].choices = [  # type: ignore[attr-defined]  # it is a MultipleChoiceField
            ("none", _("no error")),
            *((str(step.position), _("step %(n)d") % {"n": step.number}) for step in self._steps),
        ]
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
        choices: list[str] = self.cleaned_data["accepted_first_errors"]
        return [None if choice == "none" else int(choice) for choice in choices]

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
        return str(_("Choose a rating for this step, or delete its explanation.")) if why else ""
    is_after_error = None not in accepted and step.position > max(each for each in accepted if each is not None)
    if rating == NEGATIVE_RATING and step.position not in accepted and not is_after_error:
        return str(_("This step is rated negative but is not an accepted first error. Change one of the two."))
    if rating != NEGATIVE_RATING and accepted == [step.position]:
        return str(_("This step is the first error, so its rating must be negative."))
    return ""


class MakeGoldForm(KnownAnswerForm):
    use = forms.ChoiceField(label=_("Use"), choices=GoldUse.choices, initial=GoldUse.HIDDEN)

    def clean_use(self) -> GoldUse:
        use = GoldUse(self.cleaned_data["use"])
        if self._trace.gold.active().filter(use=use).exists():
            raise ValidationError(_("This trace is already gold for this use."), code="already_gold")
        return use
