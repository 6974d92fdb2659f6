"""What leads ask a snapshot to be, and what they state for its card, checked."""

from typing import Any

from django import forms
from django.core.validators import validate_slug
from django.utils.translation import gettext_lazy as _

from exports import destinations, disclosures, exclusions
from exports.models import SnapshotPurpose
from exports.orders import ENDINGS, SnapshotOrder
from formats import integers
from formats.catalog import OUTPUT_FORMATS
from formats.labeled_paths import LabelRule
from labeling.datasets.selection import ManifestFilters
from labeling.models import Problem, Project
from labeling.models.assignment import FinishReason
from labeling.models.queue import SamplingSource

_SIDE_CHOICES = [("in", _("with the others")), ("out", _("left out")), ("only", _("nothing else"))]


class SnapshotOrderForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100, validators=[validate_slug])
    purpose = forms.ChoiceField(label=_("Made for"), choices=SnapshotPurpose.choices, initial=SnapshotPurpose.TRAINING)
    formats = forms.MultipleChoiceField(
        label=_("Formats"),
        choices=[(name, each.label) for name, each in OUTPUT_FORMATS.items()],
        initial=["trl"],
        widget=forms.CheckboxSelectMultiple,
    )
    ratings = forms.ChoiceField(
        label=_("Ratings"),
        choices=[("raters", _("every rater's own, by pseudonym")), ("consensus", _("consensus, one for each step"))],
        initial="raters",
        widget=forms.RadioSelect,
    )
    ending = forms.ChoiceField(label=_("Files"), choices=[(each, each) for each in ENDINGS])
    neutral = forms.ChoiceField(
        label=_("A neutral step, where a format knows right and wrong alone"),
        choices=[
            ("positive", _("counts as right")),
            ("negative", _("counts as wrong")),
            ("drop", _("ends the row before it")),
        ],
    )
    human_steps = forms.ChoiceField(
        label=_("A step in the rater's own words"),
        choices=[("omit", _("ends the row before it")), ("positive", _("counts as right"))],
        required=False,
    )
    has_no_alternatives = forms.BooleanField(label=_("Without rows of alternatives"), required=False)
    generations = forms.CharField(
        label=_("Generations"), required=False, max_length=200, help_text=_("With commas; “none” for none.")
    )
    finish_reasons = forms.MultipleChoiceField(
        label=_("Finish reasons"), required=False, choices=FinishReason.choices, widget=forms.CheckboxSelectMultiple
    )
    domains = forms.MultipleChoiceField(label=_("Domains"), required=False, widget=forms.CheckboxSelectMultiple)
    arms = forms.MultipleChoiceField(
        label=_("Arms"), required=False, choices=SamplingSource.choices, widget=forms.CheckboxSelectMultiple
    )
    contested = forms.ChoiceField(label=_("Contested traces"), choices=_SIDE_CHOICES)
    gold = forms.ChoiceField(label=_("Gold"), choices=_SIDE_CHOICES)
    is_blind = forms.BooleanField(label=_("Only raters who saw no PRM's scores"), required=False)
    min_raters = forms.IntegerField(label=_("Raters of a trace, at least"), min_value=0, max_value=20, initial=0)
    submitted_from = forms.DateTimeField(
        label=_("Submitted from"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    submitted_until = forms.DateTimeField(
        label=_("until"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    validation = forms.IntegerField(label=_("Validation, % of problems"), min_value=0, max_value=50, initial=0)
    test = forms.IntegerField(label=_("Test, % of problems"), min_value=0, max_value=50, initial=0)
    without_duplicates = forms.BooleanField(label=_("Without traces that say the same"), required=False)
    taken_in = forms.MultipleChoiceField(
        label=_("Taken into training nevertheless"),
        required=False,
        choices=[(each, exclusions.EXCLUSION_LABELS[each]) for each in exclusions.OVERRIDABLE_EXCLUSIONS],
        widget=forms.CheckboxSelectMultiple,
    )
    reason = forms.CharField(label=_("Why it is taken in"), max_length=500, required=False)
    deliver_to = forms.MultipleChoiceField(
        label=_("Send it on, once it is built"), required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        domains = Problem.objects.filter(project=project).exclude(domain="").values_list("domain", flat=True)
        choices = [(each, each) for each in domains.order_by("domain").distinct()[:50]]
        self.fields["domains"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField
        places = [(name, name) for name in destinations.configured_destinations()]
        self.fields["deliver_to"].choices = places  # type: ignore[attr-defined]  # as above

    def clean_generations(self) -> list[int | None] | None:
        words = [word.strip() for word in self.cleaned_data["generations"].split(",") if word.strip()]
        found = [None if word == "none" else integers.parse_integer(word, digits=9) for word in words]
        if found.count(None) > words.count("none"):
            raise forms.ValidationError(_("Write numbers with commas between them: 0, 1, 2."))
        return found or None

    def order(self) -> SnapshotOrder:
        said = self.cleaned_data
        wants_raters = OUTPUT_FORMATS[said["formats"][0]].wants_raters
        return SnapshotOrder(
            formats=said["formats"],
            filters=ManifestFilters(
                generations=said["generations"],
                finish_reasons=said["finish_reasons"] or None,
                domains=said["domains"] or None,
                arms=said["arms"] or None,
                contested=said["contested"],
                gold=said["gold"],
                is_blind=True if said["is_blind"] else None,
                min_raters=said["min_raters"],
                submitted_from=said["submitted_from"],
                submitted_until=said["submitted_until"],
                unit="submissions" if wants_raters else "traces",
                is_consensus=said["ratings"] == "consensus",
            ),
            rule=LabelRule(
                neutral=said["neutral"],
                human_steps=said["human_steps"] or "omit",
                has_alternatives=not said["has_no_alternatives"],
            ),
            ending=said["ending"],
            validation=said["validation"] / 100,
            test=said["test"] / 100,
            without_duplicates=said["without_duplicates"],
            taken_in=said["taken_in"],
            reason=said["reason"],
            deliver_to=said["deliver_to"],
        )


_DISCLOSURE_LABELS: dict[str, Any] = {
    **disclosures.DISCLOSURE_LABELS,
    "raters": _("The raters: who they are, how they were trained and screened"),
    "pay": _("Pay"),
    "domains_not_covered": _("Domains that are not covered"),
    "licence": _("Licence of the labels"),
}


class DisclosureForm(forms.Form):
    """A field for everything that a card says when it was stated, and admits when it was not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in disclosures.FIELDS:
            longest = 200 if name == "licence" else 2000
            area = None if name == "licence" else forms.Textarea(attrs={"rows": 2})
            self.fields[name] = forms.CharField(
                label=_DISCLOSURE_LABELS[name], required=False, max_length=longest, widget=area
            )
