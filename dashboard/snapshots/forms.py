"""Forms to order a snapshot and to edit the disclosures of dataset cards."""

from typing import Any

from django import forms
from django.core.validators import validate_slug
from django.utils.translation import gettext_lazy as _

from exports import destinations, disclosures, orders
from exports.models import SnapshotPurpose
from exports.orders import ENDINGS, SnapshotOrder
from formats import integers
from formats.catalog import OUTPUT_FORMATS
from formats.labeled_paths import LabelRule
from labeling.datasets.selection import ManifestFilters
from labeling.models import Problem, Project
from labeling.models.assignment import FinishReason
from labeling.models.queue import SamplingSource

_SIDE_CHOICES = [("in", _("include")), ("out", _("exclude")), ("only", _("only these"))]


class SnapshotOrderForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100, validators=[validate_slug])
    purpose = forms.ChoiceField(label=_("Purpose"), choices=SnapshotPurpose.choices, initial=SnapshotPurpose.TRAINING)
    formats = forms.MultipleChoiceField(
        label=_("Formats"),
        choices=[(name, each.label) for name, each in OUTPUT_FORMATS.items()],
        initial=["trl"],
        widget=forms.CheckboxSelectMultiple,
    )
    ratings = forms.ChoiceField(
        label=_("Ratings"),
        choices=[("raters", _("Every annotator, by pseudonym")), ("consensus", _("Consensus, one rating per step"))],
        initial="raters",
        widget=forms.RadioSelect,
    )
    ending = forms.ChoiceField(label=_("File type"), choices=[(each, each) for each in ENDINGS])
    neutral = forms.ChoiceField(
        label=_("Neutral steps, in formats without a neutral rating"),
        choices=[
            ("positive", _("count as correct")),
            ("negative", _("count as incorrect")),
            ("drop", _("end the row before the step")),
        ],
    )
    human_steps = forms.ChoiceField(
        label=_("Steps written by an annotator"),
        choices=[("omit", _("end the row before the step")), ("positive", _("count as correct"))],
        required=False,
    )
    has_no_alternatives = forms.BooleanField(label=_("Exclude alternatives"), required=False)
    generations = forms.CharField(
        label=_("Generations"),
        required=False,
        max_length=200,
        help_text=_("Numbers separated by commas; “none” for traces outside any generation."),
    )
    finish_reasons = forms.MultipleChoiceField(
        label=_("Finish reasons"), required=False, choices=FinishReason.choices, widget=forms.CheckboxSelectMultiple
    )
    domains = forms.MultipleChoiceField(label=_("Domains"), required=False, widget=forms.CheckboxSelectMultiple)
    arms = forms.MultipleChoiceField(
        label=_("Sampling sources"), required=False, choices=SamplingSource.choices, widget=forms.CheckboxSelectMultiple
    )
    contested = forms.ChoiceField(label=_("Contested traces"), choices=_SIDE_CHOICES)
    gold = forms.ChoiceField(label=_("Gold"), choices=_SIDE_CHOICES)
    is_blind = forms.BooleanField(label=_("Only labels made without seeing PRM scores"), required=False)
    min_raters = forms.IntegerField(label=_("Minimum labels per trace"), min_value=0, max_value=20, initial=0)
    submitted_from = forms.DateTimeField(
        label=_("Submitted from"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    submitted_until = forms.DateTimeField(
        label=_("Submitted until"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    validation = forms.IntegerField(label=_("Validation split, % of problems"), min_value=0, max_value=50, initial=0)
    test = forms.IntegerField(label=_("Test split, % of problems"), min_value=0, max_value=50, initial=0)
    without_duplicates = forms.BooleanField(label=_("Remove duplicate traces"), required=False)
    taken_in = forms.MultipleChoiceField(
        label=_("Include in training despite the default"),
        required=False,
        choices=[(each, orders.EXCLUSION_LABELS[each]) for each in orders.OVERRIDABLE_EXCLUSIONS],
        widget=forms.CheckboxSelectMultiple,
    )
    reason = forms.CharField(label=_("Reason for including them"), max_length=500, required=False)
    deliver_to = forms.MultipleChoiceField(
        label=_("Deliver after the build"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        domains = Problem.objects.filter(project=project).exclude(domain="").values_list("domain", flat=True)
        choices = [(each, each) for each in domains.order_by("domain").distinct()[:50]]
        self.fields["domains"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField
        names = [(name, name) for name in destinations.configured_destinations()]
        self.fields["deliver_to"].choices = names  # type: ignore[attr-defined]  # as above

    def clean_generations(self) -> list[int | None] | None:
        words = [word.strip() for word in self.cleaned_data["generations"].split(",") if word.strip()]
        numbers = [None if word == "none" else integers.parse_integer(word, digits=9) for word in words]
        if numbers.count(None) > words.count("none"):
            raise forms.ValidationError(_("Enter numbers separated by commas, for example 0, 1, 2."))
        return numbers or None

    def order(self) -> SnapshotOrder:
        data = self.cleaned_data
        wants_raters = OUTPUT_FORMATS[data["formats"][0]].wants_raters
        return SnapshotOrder(
            formats=data["formats"],
            filters=ManifestFilters(
                generations=data["generations"],
                finish_reasons=data["finish_reasons"] or None,
                domains=data["domains"] or None,
                arms=data["arms"] or None,
                contested=data["contested"],
                gold=data["gold"],
                is_blind=True if data["is_blind"] else None,
                min_raters=data["min_raters"],
                submitted_from=data["submitted_from"],
                submitted_until=data["submitted_until"],
                unit="submissions" if wants_raters else "traces",
                is_consensus=data["ratings"] == "consensus",
            ),
            rule=LabelRule(
                neutral=data["neutral"],
                human_steps=data["human_steps"] or "omit",
                has_alternatives=not data["has_no_alternatives"],
            ),
            ending=data["ending"],
            validation=data["validation"] / 100,
            test=data["test"] / 100,
            without_duplicates=data["without_duplicates"],
            taken_in=data["taken_in"],
            reason=data["reason"],
            deliver_to=data["deliver_to"],
        )


_DISCLOSURE_LABELS: dict[str, Any] = {
    **disclosures.DISCLOSURE_LABELS,
    "raters": _("Annotators: background, training and screening"),
    "pay": _("Pay"),
    "domains_not_covered": _("Domains not covered"),
    "licence": _("License of the labels"),
}


class DisclosureForm(forms.Form):
    """One field per disclosure. The card prints an empty one as not stated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in disclosures.FIELDS:
            max_length = 200 if name == "licence" else 2000
            widget = None if name == "licence" else forms.Textarea(attrs={"rows": 2})
            self.fields[name] = forms.CharField(
                label=_DISCLOSURE_LABELS[name], required=False, max_length=max_length, widget=widget
            )
