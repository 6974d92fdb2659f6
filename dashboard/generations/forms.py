"""Forms to register a PRM and to change the selection rules."""

from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from exports.models import Snapshot
from labeling.models import Manifest, Project
from prm.models import LoopRules
from prm.models.prm import BackendKind, SemanticsKind
from prm.registry import PRMIdentity
from prm.selection import acquisitions

_EXTERNAL_BACKENDS = [(each.value, each.label) for each in BackendKind if each is not BackendKind.BUILTIN]


class RegisterPRMForm(forms.Form):
    backend = forms.ChoiceField(label=_("Backend"), choices=_EXTERNAL_BACKENDS)
    model = forms.CharField(label=_("Model"), max_length=200, help_text=_("The name that the backend uses."))
    digest = forms.CharField(label=_("Hash of the weights"), max_length=100, required=False)
    address = forms.CharField(label=_("Address"), max_length=500, required=False, help_text="http://gpu:8000")
    style = forms.ChoiceField(
        label=_("Style (vLLM)"),
        choices=[("qwen", "Qwen2.5-Math-PRM"), ("math_shepherd", "Math-Shepherd")],
        required=False,
    )
    semantics = forms.ChoiceField(label=_("Score semantics"), choices=SemanticsKind.choices)
    trained_on = forms.ModelChoiceField(
        label=_("Training snapshot"),
        queryset=Snapshot.objects.none(),
        required=False,
        empty_label=_("not stated"),
        help_text=_("Lets the audits detect contamination of the held-out set."),
    )
    secret = forms.CharField(
        label=_("Access token"),
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Stored encrypted and never shown again."),
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        snapshots = Snapshot.objects.filter(project=project, built_at__isnull=False).order_by("-asked_at")
        cast("forms.ModelChoiceField[Snapshot]", self.fields["trained_on"]).queryset = snapshots

    @property
    def manifest(self) -> Manifest | None:
        snapshot: Snapshot | None = self.cleaned_data["trained_on"]
        return snapshot.manifest if snapshot else None

    def identity(self) -> PRMIdentity:
        data = self.cleaned_data
        options = {"style": data["style"]} if data["backend"] == BackendKind.VLLM and data["style"] else {}
        names = ("backend", "model", "digest", "semantics", "address", "secret")
        return PRMIdentity(**{name: data[name] for name in names}, options=options)


class SelectionRulesForm(forms.Form):
    acquisition = forms.ChoiceField(label=_("Select traces by"))
    batch_size = forms.IntegerField(label=_("Traces per batch"), min_value=1, max_value=100_000)
    temperature = forms.FloatField(
        label=_("Temperature"),
        min_value=0.001,
        max_value=10,
        help_text=_("Default 0.1. Higher values select more randomly."),
    )
    domain_quota = forms.FloatField(label=_("Maximum share of one domain"), min_value=0.01, max_value=1)
    has_one_per_problem = forms.BooleanField(label=_("At most one trace per problem in a batch"), required=False)
    every_n_submissions = forms.IntegerField(
        label=_("Start automatically after this many submissions"),
        min_value=1,
        max_value=1_000_000_000,
        required=False,
        help_text=_("Leave empty to start generations manually."),
    )

    def __init__(self, rules: LoopRules, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = dict.fromkeys([*acquisitions.ACQUISITIONS, rules.acquisition])  # may be the project's own function
        field = cast(forms.ChoiceField, self.fields["acquisition"])
        field.choices = [
            (name, name.replace("_", " ") if name in acquisitions.ACQUISITIONS else name) for name in names
        ]
