"""What is typed about PRMs and the rules of a batch, checked."""

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
    backend = forms.ChoiceField(label=_("Runs in"), choices=_EXTERNAL_BACKENDS)
    model = forms.CharField(label=_("Model"), max_length=200, help_text=_("As it is called where it runs."))
    digest = forms.CharField(label=_("Hash of its weights"), max_length=100, required=False)
    address = forms.CharField(label=_("Address"), max_length=500, required=False, help_text="http://gpu:8000")
    style = forms.ChoiceField(
        label=_("Style (vLLM)"),
        choices=[("qwen", "Qwen2.5-Math-PRM"), ("math_shepherd", "Math-Shepherd")],
        required=False,
    )
    semantics = forms.ChoiceField(label=_("Its number means"), choices=SemanticsKind.choices)
    trained_on = forms.ModelChoiceField(
        label=_("Trained on the snapshot"),
        queryset=Snapshot.objects.none(),
        required=False,
        empty_label=_("not stated"),
        help_text=_("Then the audits look for problems in it that judge."),
    )
    secret = forms.CharField(
        label=_("Token or secret"),
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Kept sealed, never shown again."),
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        built = Snapshot.objects.filter(project=project, built_at__isnull=False).order_by("-asked_at")
        cast("forms.ModelChoiceField[Snapshot]", self.fields["trained_on"]).queryset = built

    @property
    def manifest(self) -> Manifest | None:
        found: Snapshot | None = self.cleaned_data["trained_on"]
        return found.manifest if found else None

    def identity(self) -> PRMIdentity:
        told = self.cleaned_data
        options = {"style": told["style"]} if told["backend"] == BackendKind.VLLM and told["style"] else {}
        names = ("backend", "model", "digest", "semantics", "address", "secret")
        return PRMIdentity(**{name: told[name] for name in names}, options=options)


class SelectionRulesForm(forms.Form):
    acquisition = forms.ChoiceField(label=_("Chooses by"))
    batch_size = forms.IntegerField(label=_("Traces a batch"), min_value=1, max_value=100_000)
    temperature = forms.FloatField(
        label=_("Temperature"), min_value=0.001, max_value=10, help_text=_("0.1; at 1 choosing gains nothing.")
    )
    domain_quota = forms.FloatField(label=_("Largest share of one domain"), min_value=0.01, max_value=1)
    has_one_per_problem = forms.BooleanField(label=_("One trace of a problem in a batch"), required=False)
    every_n_submissions = forms.IntegerField(
        label=_("Start by itself after so many submissions"),
        min_value=1,
        max_value=1_000_000_000,
        required=False,
        help_text=_("Empty: only by the button."),
    )

    def __init__(self, rules: LoopRules, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = dict.fromkeys(
            [*acquisitions.ACQUISITIONS, rules.acquisition]
        )  # one of the project's own stays a choice
        field = cast(forms.ChoiceField, self.fields["acquisition"])
        field.choices = [
            (name, name.replace("_", " ") if name in acquisitions.ACQUISITIONS else name) for name in names
        ]
