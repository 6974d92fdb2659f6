"""What is known of a trace, as a form takes it: where the first error is, and what is said of each step."""

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
_RATING_CHOICES = (("", _("not said")), ("-1", _("negative")), ("0", _("neutral")), ("1", _("positive")))


class GoldStepField(NamedTuple):
    number: int  # as raters see it
    position: int
    option: int  # its own text


def get_initial_answer(gold: Gold) -> dict[str, Any]:
    """What is known now."""
    told: dict[str, Any] = {
        "accepted_first_errors": ["none" if place is None else str(place) for place in gold.accepted_first_errors],
        "explanation": gold.explanation,
    }
    for row in GoldRating.objects.filter(gold=gold):
        told |= {f"rating_{row.option_id}": str(row.rating), f"why_{row.option_id}": row.explanation}
    return told


def get_consensus_answer(consensus: Consensus | None) -> dict[str, Any]:
    """What a person decided, or three raters or more settled, as the beginning of what is known: it is promoted."""
    if consensus is None or (consensus.source == ConsensusSource.RATERS and consensus.n_votes < MIN_GOLD_VOTES):
        return {}
    place = consensus.first_error
    return {"accepted_first_errors": ["none" if place is None else str(place)]}


class KnownAnswerForm(forms.Form):
    """What is known of a trace. More than one place may be right where readers could see it either way."""

    accepted_first_errors = forms.MultipleChoiceField(
        label=_("First error"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Every place that counts as right."),
    )
    explanation = forms.CharField(
        label=_("Explanation"),
        required=False,
        max_length=5000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Shown in training, after the answer."),
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
        """The number of each step, with what may be said of it."""
        return [(each.number, self[f"rating_{each.option}"], self[f"why_{each.option}"]) for each in self._steps]

    @property
    def says_steps(self) -> bool:
        """Whether anything is said of single steps, or wrong with it."""
        return any(rating.value() not in (None, "") or why.value() or why.errors for _n, rating, why in self.by_step)

    def clean_accepted_first_errors(self) -> list[int | None]:
        chosen: list[str] = self.cleaned_data["accepted_first_errors"]
        return [None if each == "none" else int(each) for each in chosen]

    def clean(self) -> dict[str, Any]:
        """What is said of single steps goes together, by their options, as the verbs take it."""
        told = super().clean() or {}
        accepted = told.get("accepted_first_errors")
        ratings: dict[int, int | None] = {}
        explanations: dict[int, str] = {}
        for step in self._steps:
            rating, why = told.pop(f"rating_{step.option}", None), told.pop(f"why_{step.option}", "")
            if rating is None and accepted == [step.position] and why:
                rating = NEGATIVE_RATING  # what else could be explained of the first error
            if accepted and (wrong := _find_contradiction(step, rating, why, accepted)):
                self.add_error(f"why_{step.option}", wrong)
            ratings[step.option], explanations[step.option] = rating, why
        return told | {"ratings": ratings, "explanations": explanations}


def _load_step_fields(trace: Trace) -> list[GoldStepField]:
    options = Option.objects.filter(step__trace=trace, step__is_rateable=True, position=0).order_by("step__position")
    rows = options.values_list("pk", "step__position")
    return [GoldStepField(number, position, option) for number, (option, position) in enumerate(rows, start=1)]


def _find_contradiction(step: GoldStepField, rating: int | None, why: str, accepted: list[int | None]) -> str:
    """What cannot be true of a step together with where the first error may be."""
    if rating is None:
        return str(_("Say how the step is rated, to explain it.")) if why else ""
    behind = None not in accepted and step.position > max(place for place in accepted if place is not None)
    if rating == NEGATIVE_RATING and step.position not in accepted and not behind:
        return str(_("It is rated negative, but the first error is not accepted here."))
    if rating != NEGATIVE_RATING and accepted == [step.position]:
        return str(_("It is the first error, so it is negative."))
    return ""


class MakeGoldForm(KnownAnswerForm):
    """What is known, and what it is used for."""

    use = forms.ChoiceField(label=_("Use"), choices=GoldUse.choices, initial=GoldUse.HIDDEN)

    def clean_use(self) -> GoldUse:
        use = GoldUse(self.cleaned_data["use"])
        if self._trace.gold.active().filter(use=use).exists():
            raise ValidationError(_("The trace is already gold for this use."))
        return use
