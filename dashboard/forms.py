"""What leads type, checked."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from labeling.models import Trace


class WithdrawTraceForm(forms.Form):
    reason = forms.CharField(label=_("Why"), max_length=200)


def _first_error_choices(trace: Trace) -> list[tuple[str, Any]]:
    """Where a first error may be: at no step, or at one of those that are rated."""
    steps = trace.steps.filter(is_rateable=True).order_by("position").values_list("position", flat=True)
    return [
        ("none", _("no error")),
        *((str(step), _("step %(n)d") % {"n": n}) for n, step in enumerate(steps, start=1)),
    ]


class SendBackForm(forms.Form):
    note = forms.CharField(label=_("Note"), required=False, max_length=2000, strip=True)
    seen = forms.DateTimeField(required=False)  # since when the trace stood where it was when the page was made


class DecisionForm(SendBackForm):
    """Where the first error is, as a person decides."""

    first_error = forms.ChoiceField(
        label=_("First error"), error_messages={"required": _("Say where the first error is, or that there is none.")}
    )
    becomes_gold = forms.BooleanField(label=_("It is known from now on: use it as gold"), required=False)

    def __init__(self, *args: Any, trace: Trace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["first_error"].choices = _first_error_choices(trace)  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean_first_error(self) -> int | None:
        chosen: str = self.cleaned_data["first_error"]
        return None if chosen == "none" else int(chosen)

    def told(self) -> str:
        """The decision in words."""
        place: int | None = self.cleaned_data["first_error"]
        words = dict(self.fields["first_error"].choices)  # type: ignore[attr-defined]  # it is a ChoiceField
        if place is None:
            return str(words["none"])
        return str(_("first error at %(step)s") % {"step": words[str(place)]})


class PauseAnnotatorForm(forms.Form):
    reason = forms.CharField(max_length=300)


class CorrectionRequestForm(forms.Form):
    note = forms.CharField(max_length=1000)
