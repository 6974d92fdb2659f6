"""Which file is to come in, and what is said of it, checked."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from formats import catalog
from formats.segmenters import SEGMENTER_NAMES
from labeling.models.gold import GoldUse
from labeling.models.problem import ImportedLabelKind, SourcePurpose
from labeling.traces import locations
from labeling.traces.import_job import ImportOptions
from labeling.traces.labelers import NAMED_KINDS

_FILE_FIELDS = ("sent", "beside", "address")


class ImportFileForm(forms.Form):
    """One file: sent, beside the server, or in an object store."""

    sent = forms.FileField(label=_("From this computer"), required=False, allow_empty_file=True)
    beside = forms.ChoiceField(label=_("From the server's folder"), required=False)
    address = forms.CharField(
        label=_("From an object store"),
        required=False,
        max_length=1000,
        help_text=_("For example s3://traces/a.jsonl.gz"),
    )

    def __init__(self, *args: Any, has_stores: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        there = locations.list_incoming_files()
        named = [(reference, reference.partition(":")[2]) for reference in there]
        self.fields["beside"].choices = [("", _("Choose a file")), *named]  # type: ignore[attr-defined]  # it is a ChoiceField
        if not there:
            del self.fields["beside"]
        if not has_stores:
            del self.fields["address"]

    def clean(self) -> dict[str, Any]:
        told = super().clean() or {}
        if sum(bool(told.get(way)) for way in _FILE_FIELDS) != 1 and not self.errors:
            raise ValidationError(_("Choose one file."))
        return told


class ImportChoicesForm(forms.Form):
    """What whoever brings a file in says of it."""

    format = forms.ChoiceField(label=_("Format"), choices=[(name, name) for name in catalog.INPUT_FORMATS])
    segmenter = forms.ChoiceField(
        label=_("Cut into steps by"),
        required=False,
        choices=[("", _("what fits best")), *((name, name) for name in SEGMENTER_NAMES)],
        help_text=_("For texts that are not in steps yet."),
    )
    labels = forms.ChoiceField(label=_("The ratings in the file are"), choices=ImportedLabelKind.choices)
    labels_by = forms.CharField(
        label=_("Name of the one that rated"),
        required=False,
        max_length=160,
        help_text=_("For ratings of one name: a pseudonym, or the model, its prompt, the number of rollouts."),
    )
    gold_use = forms.ChoiceField(label=_("Gold is for"), choices=GoldUse.choices, initial=GoldUse.HIDDEN)
    purpose = forms.ChoiceField(label=_("The file is"), choices=SourcePurpose.choices)
    licence = forms.CharField(label=_("Licence"), max_length=200, required=False, help_text=_("Empty: not stated."))
    statement = forms.CharField(
        label=_("Where it comes from"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Stands in the cards of datasets that hold these traces."),
    )
    private = forms.ChoiceField(
        label=_("What looks like an address, a telephone number or a key"),
        choices=[
            ("count", _("is counted")),
            ("mask", _("is masked")),
            ("refuse", _("makes the line a bad one")),
        ],
    )
    is_lenient = forms.BooleanField(label=_("Leave bad lines out instead of refusing the file"), required=False)

    def clean(self) -> dict[str, Any]:
        told = super().clean() or {}
        if told.get("labels") in NAMED_KINDS and not str(told.get("labels_by", "")).strip():
            self.add_error("labels_by", _("Say who rated: these ratings belong to one name."))
        return told

    def choices(self) -> ImportOptions:
        return ImportOptions(**{**self.cleaned_data, "labels_by": self.cleaned_data["labels_by"].strip()})
