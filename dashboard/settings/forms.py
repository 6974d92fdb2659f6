"""Forms of the settings pages."""

import copy
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from dashboard.project_slugs import clean_new_slug
from labeling.models import Project


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]  # takes no parameter when it runs
    """All settings that need no preview, in groups."""

    GROUPS = (
        (_("Project"), ("name", "description", "protocol")),
        (_("Shown to annotators"), ("shows_reference_answer", "shows_final_verdict", "reveals_one_step_at_a_time")),
        (_("Asked about an error"), ("asks_error_category", "asks_reason", "asks_corrected_step")),
        (_("Limits"), ("skip_limit_per_day", "correction_days")),
        (
            _("Gold and screening"),
            (
                *("gold_share", "proven_gold_share", "gold_bar", "screening_pass_share", "screening_attempts"),
                *("shows_weekly_gold", "uses_probability"),
            ),
        ),
        (_("Sampling"), ("uniform_share", "reserve_share", "reserve_problem_share")),
        (_("Pay"), ("pay_per_hour", "currency")),
        (
            _("Crowd platform"),
            (
                *("takes_worker_ids", "worker_parameter", "study_parameter", "session_parameter"),
                *("completion_url", "completion_code", "screened_out_url", "screened_out_code"),
            ),
        ),
    )

    completion_url = forms.URLField(label=_("Completion URL"), required=False, assume_scheme="https")
    screened_out_url = forms.URLField(label=_("Screen-out URL"), required=False, assume_scheme="https")

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
            "protocol": _("Labeling protocol"),
            "shows_reference_answer": _("Show the reference answer"),
            "shows_final_verdict": _("Show whether the final answer is correct"),
            "reveals_one_step_at_a_time": _("Reveal one step at a time"),
            "asks_error_category": _("Ask for the error category"),
            "asks_reason": _("Ask for a reason"),
            "asks_corrected_step": _("Ask for a corrected step"),
            "skip_limit_per_day": _("Maximum skips per day"),
            "correction_days": _("Correction period (days)"),
            "gold_share": _("Share of hidden gold"),
            "proven_gold_share": _("Share of hidden gold for trusted annotators"),
            "gold_bar": _("Gold threshold"),
            "screening_pass_share": _("Screening pass mark"),
            "screening_attempts": _("Screening attempts"),
            "uses_probability": _("Settle traces by probability"),
            "shows_weekly_gold": _("Show annotators their weekly gold score"),
            "uniform_share": _("Share of uniform samples"),
            "reserve_share": _("Share of work from the held-out set"),
            "reserve_problem_share": _("Share of problems in the held-out set"),
            "pay_per_hour": _("Pay per active hour"),
            "currency": _("Currency"),
            "takes_worker_ids": _("Accept worker IDs"),
            "worker_parameter": _("URL parameter of the worker ID"),
            "study_parameter": _("URL parameter of the study"),
            "session_parameter": _("URL parameter for the session ID"),
            "completion_url": _("Completion URL"),
            "completion_code": _("Completion code"),
            "screened_out_url": _("Screen-out URL"),
            "screened_out_code": _("Screen-out code"),
        }
        help_texts: ClassVar = {
            "protocol": _("Cannot be changed after the first trace is assigned."),
            "proven_gold_share": _("Annotators are trusted after 14 days of work without a pause."),
            "gold_bar": _(
                "Annotators whose accuracy on gold is below this value are paused. Enter 0.2 to 0.99, or leave empty"
                " to derive it from the first 200 answers of at least five annotators."
            ),
            "uses_probability": _(
                "Settles a trace once the rater model is confident enough to be right on 90% of hidden gold."
                " Takes effect when there is enough gold."
            ),
            "shows_weekly_gold": _("Only for weeks with at least five gold traces. The traces are not revealed."),
            "uniform_share": _("Keeps estimates unbiased when active selection is used."),
            "pay_per_hour": _("Leave empty to hide costs."),
            "currency": _("Three letters, for example EUR."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            if name.endswith("_share"):
                field.widget.attrs.update({"min": "0", "max": "1", "step": "0.01"})

    @classmethod
    def for_project(cls, project: Project, data: QueryDict | None = None) -> "SettingsForm":
        """Build the form on a copy, because validation would change the project that the page shows."""
        return cls(data, instance=copy.copy(project))

    def clean_currency(self) -> str:
        currency: str = self.cleaned_data["currency"].upper()
        if len(currency) != 3 or not currency.isascii() or not currency.isalpha():
            raise forms.ValidationError(_("Enter a currency code of three letters, for example EUR."))
        return currency

    def changed(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.changed_data}

    @cached_property
    def groups(self) -> list[tuple[Any, list[forms.BoundField]]]:
        return [(label, [self[name] for name in names]) for label, names in self.GROUPS]


class OverlapForm(forms.Form):
    """Settings that affect open work, so their effect is shown before they change."""

    overlap = forms.IntegerField(label=_("Labels per trace"), min_value=1, max_value=20)
    overlap_limit = forms.IntegerField(
        label=_("Maximum if annotators disagree"),
        min_value=1,
        max_value=20,
        help_text=_("After that, the trace goes to adjudication."),
    )
    lease_minutes = forms.IntegerField(label=_("Lease (minutes)"), min_value=1, max_value=10_080)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if {"overlap", "overlap_limit"} <= data.keys() and data["overlap_limit"] < data["overlap"]:
            self.add_error("overlap_limit", _("Enter at least the number of labels per trace."))
        return data

    @staticmethod
    def get_initial_values(project: Project) -> dict[str, int]:
        return {
            "overlap": project.overlap,
            "overlap_limit": project.overlap_limit,
            "lease_minutes": max(project.lease_seconds // 60, 1),
        }


class GuidelineForm(forms.Form):
    changes = forms.CharField(
        label=_("Summary of changes"),
        max_length=500,
        required=False,
        help_text=_("Shown to annotators above the new version."),
    )
    body = forms.CharField(
        label=_("Guideline (Markdown with $formulas$)"), max_length=200_000, widget=forms.Textarea(attrs={"rows": 24})
    )


class CloneProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)
    slug = forms.SlugField(label=_("Address"), max_length=80)

    def clean_slug(self) -> str:
        return clean_new_slug(self.cleaned_data["slug"])


class ConsentForm(forms.Form):
    body = forms.CharField(
        label=_("Consent text (Markdown)"),
        max_length=100_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=_("Annotators agree to it before they start. Leave empty to ask for no consent."),
    )
