"""Forms of an import: which file, and how to read it."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from formats import catalog
from formats.segmenters import SEGMENTER_NAMES
from labeling.models.gold import GoldUse
from labeling.models.problem import ImportedLabelKind, SourcePurpose
from labeling.traces import locations
from labeling.traces.identity import NAMED_KINDS
from labeling.traces.import_job import ImportOptions


class ImportFileForm(forms.Form):
    """One file: uploaded, from the server's folder, or from an object store."""

    upload = forms.FileField(label=_("Upload a file"), required=False, allow_empty_file=True)
    server_file = forms.ChoiceField(label=_("File in the server's folder"), required=False)
    address = forms.CharField(
        label=_("Object store address"),
        required=False,
        max_length=1000,
        help_text=_("For example s3://traces/a.jsonl.gz"),
    )

    def __init__(self, *args: Any, has_stores: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        files = [(reference, reference.partition(":")[2]) for reference in locations.list_incoming_files()]
        self.fields["server_file"].choices = [("", _("Choose a file")), *files]  # type: ignore[attr-defined]  # it is a ChoiceField
        if not files:
            del self.fields["server_file"]
        if not has_stores:
            del self.fields["address"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if sum(bool(data.get(name)) for name in self.fields) != 1 and not self.errors:
            raise ValidationError(_("Choose exactly one file."), code="one_file")
        return data


class ImportOptionsForm(forms.Form):
    """How to read the file, and what is known about it."""

    format = forms.ChoiceField(label=_("Format"), choices=[(name, name) for name in catalog.INPUT_FORMATS])
    segmenter = forms.ChoiceField(
        label=_("Split into steps by"),
        required=False,
        choices=[("", _("automatic")), *((name, name) for name in SEGMENTER_NAMES)],
        help_text=_("Applies to solutions that are not yet split into steps."),
    )
    labels = forms.ChoiceField(label=_("Ratings in the file"), choices=ImportedLabelKind.choices)
    labels_by = forms.CharField(
        label=_("Name of the labeler"),
        required=False,
        max_length=160,
        help_text=_("A pseudonym, or the model with its prompt and number of rollouts."),
    )
    gold_use = forms.ChoiceField(label=_("Use gold for"), choices=GoldUse.choices, initial=GoldUse.HIDDEN)
    purpose = forms.ChoiceField(label=_("Purpose of the file"), choices=SourcePurpose.choices)
    licence = forms.CharField(
        label=_("License"), max_length=200, required=False, help_text=_("Leave empty if not stated.")
    )
    statement = forms.CharField(
        label=_("Origin of the data"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Printed in the card of every dataset that contains these traces."),
    )
    private = forms.ChoiceField(
        label=_("Text that looks like an e-mail address, phone number or key"),
        choices=[("count", _("count it")), ("mask", _("mask it")), ("refuse", _("reject the record"))],
    )
    is_lenient = forms.BooleanField(label=_("Skip bad lines instead of rejecting the file"), required=False)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("labels") in NAMED_KINDS and not str(data.get("labels_by", "")).strip():
            self.add_error("labels_by", ValidationError(_("Enter the name of the labeler."), code="labeler_missing"))
        return data

    def options(self) -> ImportOptions:
        return ImportOptions(**{**self.cleaned_data, "labels_by": self.cleaned_data["labels_by"].strip()})
