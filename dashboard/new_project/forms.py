"""The form of a new project."""

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.project_slugs import clean_new_slug
from labeling.models.project import Protocol


class NewProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)
    slug = forms.SlugField(
        label=_("Address"),
        max_length=80,
        help_text=_("Part of every link: lowercase letters, digits and hyphens. It cannot be changed later."),
    )
    protocol = forms.ChoiceField(
        label=_("Labeling protocol"),
        choices=[(each.value, each.label) for each in (Protocol.FIRST_ERROR, Protocol.EVERY_STEP)],
    )
    overlap = forms.IntegerField(
        label=_("Labels per trace"),
        min_value=1,
        max_value=20,
        initial=2,
        help_text=_("With two or more, agreement between annotators can be measured."),
    )

    def clean_slug(self) -> str:
        return clean_new_slug(self.cleaned_data["slug"])
