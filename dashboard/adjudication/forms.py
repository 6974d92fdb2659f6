"""Forms of the adjudication page."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from labeling.models import Trace


class SendBackForm(forms.Form):
    note = forms.CharField(label=_("Note"), required=False, max_length=2000, strip=True)
    seen = forms.DateTimeField(required=False)  # `Settlement.changed_at` when the page was rendered


class DecisionForm(SendBackForm):
    first_error = forms.ChoiceField(
        label=_("First error"), error_messages={"required": _("Choose the step with the first error, or “No error”.")}
    )
    becomes_gold = forms.BooleanField(label=_("Use as hidden gold"), required=False)

    def __init__(self, *args: Any, trace: Trace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["first_error"].choices = _first_error_choices(trace)  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean_first_error(self) -> int | None:
        choice: str = self.cleaned_data["first_error"]
        return None if choice == "none" else int(choice)

    def describe_decision(self) -> str:
        position: int | None = self.cleaned_data["first_error"]
        labels = dict(self.fields["first_error"].choices)  # type: ignore[attr-defined]  # it is a ChoiceField
        if position is None:
            return str(labels["none"])
        return str(_("first error at %(step)s") % {"step": labels[str(position)]})


def _first_error_choices(trace: Trace) -> list[tuple[str, Any]]:
    positions = trace.steps.filter(is_rateable=True).order_by("position").values_list("position", flat=True)
    return [
        ("none", _("no error")),
        *((str(position), _("step %(n)d") % {"n": n}) for n, position in enumerate(positions, start=1)),
    ]
