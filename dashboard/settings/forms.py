"""What leads set in a project, checked."""

import copy
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from dashboard.project_slugs import clean_new_slug
from labeling.models import Project


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]  # takes no parameter when it runs
    """One form for all plain options; the page shows it in groups."""

    GROUPS = (
        (_("The project"), ("name", "description", "protocol")),
        (_("What raters see"), ("shows_reference_answer", "shows_final_verdict", "reveals_one_step_at_a_time")),
        (_("What raters are asked"), ("asks_error_category", "asks_reason", "asks_corrected_step")),
        (_("Rules"), ("skip_limit_per_day", "correction_days")),
        (
            _("Gold and screening"),
            (
                *("gold_share", "proven_gold_share", "gold_bar", "screening_pass_share", "screening_attempts"),
                *("shows_weekly_gold", "uses_probability"),
            ),
        ),
        (_("Which traces are read"), ("uniform_share", "reserve_share", "reserve_problem_share")),
        (_("Money"), ("pay_per_hour", "currency")),
        (
            _("Raters from a crowd platform"),
            (
                *("takes_worker_ids", "worker_parameter", "study_parameter", "session_parameter"),
                *("completion_url", "completion_code", "screened_out_url", "screened_out_code"),
            ),
        ),
    )

    completion_url = forms.URLField(label=_("Address at the end"), required=False, assume_scheme="https")
    screened_out_url = forms.URLField(label=_("Address when screened out"), required=False, assume_scheme="https")

    class Meta:
        model = Project
        fields: ClassVar = [
            *("name", "description", "protocol", "shows_reference_answer", "shows_final_verdict"),
            *("reveals_one_step_at_a_time", "asks_error_category", "asks_reason", "asks_corrected_step"),
            *("skip_limit_per_day", "correction_days", "gold_share", "gold_bar", "screening_pass_share"),
            *("proven_gold_share", "screening_attempts", "uniform_share", "reserve_share", "reserve_problem_share"),
            *("pay_per_hour", "currency", "takes_worker_ids", "worker_parameter", "study_parameter"),
            *("session_parameter", "completion_url", "completion_code", "screened_out_url", "screened_out_code"),
            *("shows_weekly_gold", "uses_probability"),
        ]
        widgets: ClassVar = {"description": forms.Textarea(attrs={"rows": 2})}
        labels: ClassVar = {
            "name": _("Name"),
            "description": _("Description"),
            "protocol": _("Raters rate"),
            "shows_reference_answer": _("Show the reference answer"),
            "shows_final_verdict": _("Show whether the final answer is right"),
            "reveals_one_step_at_a_time": _("Reveal one step at a time"),
            "asks_error_category": _("Ask for the kind of error"),
            "asks_reason": _("Ask for a short reason"),
            "asks_corrected_step": _("Ask for a corrected step"),
            "skip_limit_per_day": _("Skips a day"),
            "correction_days": _("Days in which a submission can be corrected"),
            "gold_share": _("Share of hidden gold"),
            "proven_gold_share": _("Share of hidden gold of proven raters"),
            "gold_bar": _("Share of gold that a rater gets right who may go on"),
            "screening_pass_share": _("Share of the screening that must be right"),
            "screening_attempts": _("Attempts at the screening"),
            "uses_probability": _("Settle traces by probability"),
            "shows_weekly_gold": _("Tell raters each week how they met hidden gold"),
            "uniform_share": _("Share chosen uniformly"),
            "reserve_share": _("Share of work from the reserve"),
            "reserve_problem_share": _("Share of problems kept in the reserve"),
            "pay_per_hour": _("Pay for an hour of active time"),
            "currency": _("Currency"),
            "takes_worker_ids": _("Let people in by their id there"),
            "worker_parameter": _("Parameter with the person"),
            "study_parameter": _("Parameter with the study"),
            "session_parameter": _("Parameter with the session"),
            "completion_url": _("Address at the end"),
            "completion_code": _("Code at the end"),
            "screened_out_url": _("Address when screened out"),
            "screened_out_code": _("Code when screened out"),
        }
        help_texts: ClassVar = {
            "protocol": _("Stays once traces have been given out."),
            "proven_gold_share": _("Of those who have worked for fourteen days without a pause."),
            "gold_bar": _(
                "From 0.2 to 0.99. Empty: measured from the first 200 answers of the project’s own raters, five at"
                " least; of those who passed the screening, where there is one."
            ),
            "uses_probability": _(
                "From the threshold on that keeps .90 right on hidden gold; below it even agreement is asked again."
                " Nothing changes until there is enough gold."
            ),
            "shows_weekly_gold": _("At home, whole weeks of five checks or more. Never of which trace."),
            "uniform_share": _("The fixed part that keeps every estimate honest, whatever a policy chooses."),
            "pay_per_hour": _("Empty: no cost is shown."),
            "currency": _("Three letters, as EUR."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            if name.endswith("_share"):
                field.widget.attrs.update({"min": "0", "max": "1", "step": "0.01"})

    @classmethod
    def of(cls, project: Project, sent: QueryDict | None = None) -> "SettingsForm":
        """A form on a copy: checking what was sent changes nothing of the project that the page shows."""
        return cls(sent, instance=copy.copy(project))

    def clean_currency(self) -> str:
        currency: str = self.cleaned_data["currency"].upper()
        if len(currency) != 3 or not currency.isascii() or not currency.isalpha():
            raise forms.ValidationError(_("A currency has three letters, as EUR."))
        return currency

    def changed(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.changed_data}

    @cached_property
    def groups(self) -> list[tuple[Any, list[forms.BoundField]]]:
        return [(label, [self[name] for name in names]) for label, names in self.GROUPS]


class OverlapForm(forms.Form):
    """How often and how long: what is under way is concerned, so it is said before."""

    overlap = forms.IntegerField(label=_("Readings of each trace"), min_value=1, max_value=20)
    overlap_limit = forms.IntegerField(
        label=_("At most, where they differ"), min_value=1, max_value=20, help_text=_("Then a person decides.")
    )
    lease_minutes = forms.IntegerField(label=_("Minutes a trace is kept for its rater"), min_value=1, max_value=10_080)

    def clean(self) -> dict[str, Any]:
        told = super().clean() or {}
        if {"overlap", "overlap_limit"} <= told.keys() and told["overlap_limit"] < told["overlap"]:
            self.add_error("overlap_limit", _("At least as many as every trace gets."))
        return told

    @staticmethod
    def of(project: Project) -> dict[str, int]:
        return {
            "overlap": project.overlap,
            "overlap_limit": project.overlap_limit,
            "lease_minutes": max(project.lease_seconds // 60, 1),
        }


class GuidelineForm(forms.Form):
    changes = forms.CharField(
        label=_("What is new"), max_length=500, required=False, help_text=_("In a line or two: raters read it first.")
    )
    body = forms.CharField(
        label=_("Text, in Markdown with $formulas$"), max_length=200_000, widget=forms.Textarea(attrs={"rows": 24})
    )


class CloneProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)
    slug = forms.SlugField(label=_("Address"), max_length=80)

    def clean_slug(self) -> str:
        return clean_new_slug(self.cleaned_data["slug"])


class ConsentForm(forms.Form):
    body = forms.CharField(
        label=_("What raters agree to before anything else, in Markdown"),
        max_length=100_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=_("Empty: nothing is asked."),
    )
