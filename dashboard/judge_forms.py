"""Forms of the page of judges. Fields are named as those of the settings that they become."""

from dataclasses import fields
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from labeling.models import Project
from machines import prompts
from machines.answers import CheckerKind
from machines.judges import JudgeSettings
from machines.models import JUDGE_CONTRACTS, EndpointKind, JudgeContractKind, RunScope
from machines.rollouts import RolloutOptions, SearchKind
from prm.models import PRM

_SEPARATORS = {
    "blank_line": ("\n\n", gettext_lazy("a blank line")),
    "line_break": ("\n", gettext_lazy("a line break")),
    "space": (" ", gettext_lazy("a space")),
    "none": ("", gettext_lazy("nothing")),
}
_CHECKERS = {
    CheckerKind.NUMBER: gettext_lazy("a number"),
    CheckerKind.EXPRESSION: gettext_lazy("a mathematical expression"),
    CheckerKind.CHOICE: gettext_lazy("a letter of a choice"),
    CheckerKind.EXACT: gettext_lazy("the same text"),
    CheckerKind.REGEX: gettext_lazy("the same text, found by a regular expression"),
    CheckerKind.HTTP: gettext_lazy("whatever another program accepts"),
}
_SEARCHES = {
    SearchKind.EVERY_STEP: gettext_lazy("every step"),
    SearchKind.BINARY: gettext_lazy("only the first error, by halving"),
}


class JudgeForm(forms.Form):
    """Fields are named as those of `JudgeSettings`."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=60,
        help_text=gettext_lazy("If a judge with this name exists, this becomes its next version."),
    )
    family = forms.ChoiceField(label=gettext_lazy("Server"), choices=EndpointKind.choices)
    address = forms.CharField(
        label=gettext_lazy("Base URL"),
        max_length=500,
        help_text=gettext_lazy("For example http://gpu:8000/v1"),
    )
    model = forms.CharField(
        label=gettext_lazy("Model"),
        max_length=200,
        help_text=gettext_lazy("The name that the server uses for the model."),
    )
    model_digest = forms.CharField(label=gettext_lazy("Hash of the weights"), max_length=100, required=False)
    key = forms.CharField(
        label=gettext_lazy("API key"),
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Stored encrypted and never shown again."),
    )
    contract = forms.ChoiceField(
        label=gettext_lazy("Task"), choices=[(contract.value, contract.label) for contract in JUDGE_CONTRACTS]
    )
    prompt = forms.CharField(
        label=gettext_lazy("Prompt"),
        required=False,
        strip=False,
        max_length=prompts.MAX_TEMPLATE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Leave empty to use the task’s built-in prompt. {problem} and {steps} are replaced with those of the trace."
        ),
    )
    n_votes = forms.IntegerField(label=gettext_lazy("Votes per trace"), initial=1, min_value=1)
    temperature = forms.FloatField(label=gettext_lazy("Temperature"), initial=0.0, min_value=0)
    top_p = forms.FloatField(label=gettext_lazy("Top p"), initial=1.0)
    max_tokens = forms.IntegerField(label=gettext_lazy("Maximum tokens per answer"), initial=8192)
    timeout = forms.FloatField(label=gettext_lazy("Timeout in seconds"), initial=120)
    n_concurrent = forms.IntegerField(label=gettext_lazy("Concurrent requests"), initial=8)
    prompt_price = forms.DecimalField(label=gettext_lazy("Price per million input tokens"), initial=Decimal(0))
    completion_price = forms.DecimalField(label=gettext_lazy("Price per million output tokens"), initial=Decimal(0))

    def make_settings(self) -> JudgeSettings:
        return JudgeSettings(**self.cleaned_data)

    @classmethod
    def list_values(cls, settings: JudgeSettings) -> dict[str, Any]:
        """Return the initial values of an edited copy. The key is never shown."""
        return {name: getattr(settings, name) for name in cls.base_fields if name != "key"}


class RolloutForm(JudgeForm):
    """A Monte Carlo rater: the fields of a judge, and those of `RolloutOptions`."""

    contract = None  # type: ignore[assignment]  # which is how Django removes a field
    prompt = forms.CharField(
        label=gettext_lazy("Beginning of the text"),
        required=False,
        strip=False,
        max_length=prompts.MAX_TEMPLATE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Leave empty to use the built-in one. Chat models need their template around {problem} and {prefix}."
        ),
    )
    n_votes = forms.IntegerField(label=gettext_lazy("Rollouts after each step"), initial=8, min_value=1)
    temperature = forms.FloatField(label=gettext_lazy("Temperature"), initial=1.0, min_value=0)
    max_tokens = forms.IntegerField(label=gettext_lazy("Maximum tokens per rollout"), initial=2048)
    checker = forms.ChoiceField(label=gettext_lazy("An answer is right if it is"), choices=list(_CHECKERS.items()))
    pattern = forms.CharField(
        label=gettext_lazy("Regular expression"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("For example Answer: (\\w+)"),
    )
    checker_address = forms.CharField(label=gettext_lazy("URL of the checker"), max_length=500, required=False)
    search = forms.ChoiceField(label=gettext_lazy("Steps to value"), choices=list(_SEARCHES.items()))
    threshold = forms.FloatField(
        label=gettext_lazy("A step is wrong up to this share of right answers"), initial=0.0, min_value=0
    )
    stops_early = forms.BooleanField(
        label=gettext_lazy("Stop when more rollouts cannot change the label"), required=False
    )
    measures_progress = forms.BooleanField(
        label=gettext_lazy("Measure progress: also value the problem without any step"), required=False
    )
    separator = forms.ChoiceField(
        label=gettext_lazy("Between two steps"), choices=[(key, label) for key, (_, label) in _SEPARATORS.items()]
    )
    stop = forms.CharField(
        label=gettext_lazy("Stop at this text"),
        max_length=100,
        required=False,
        strip=False,
        initial=RolloutOptions.stop,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
    )

    def make_settings(self) -> JudgeSettings:
        values = dict(self.cleaned_data)
        options = {each.name: values.pop(each.name) for each in fields(RolloutOptions)}
        options["separator"] = _SEPARATORS[options["separator"]][0]
        options["stop"] = options["stop"].replace("\r\n", "\n")  # browsers send line ends as CRLF
        return JudgeSettings(**values, contract=JudgeContractKind.ROLLOUTS, rollouts=RolloutOptions(**options))

    @classmethod
    def list_values(cls, settings: JudgeSettings) -> dict[str, Any]:
        options = vars(settings.rollouts or RolloutOptions())
        key = next((key for key, (text, _) in _SEPARATORS.items() if text == options["separator"]), "blank_line")
        names = [name for name in cls.base_fields if name != "key" and name not in options]
        return {name: getattr(settings, name) for name in names} | options | {"separator": key}


class PrmRaterForm(forms.Form):
    prm = forms.ModelChoiceField(label=gettext_lazy("PRM"), queryset=PRM.objects.none())
    name = forms.CharField(label=gettext_lazy("Name"), max_length=60, required=False)
    threshold = forms.FloatField(
        label=gettext_lazy("A step is wrong from this probability"),
        required=False,
        help_text=gettext_lazy("Leave empty to use the threshold of the PRM’s evaluation."),
    )

    def __init__(self, *arguments: Any, project: Project, **options: Any) -> None:
        super().__init__(*arguments, **options)
        prms = PRM.objects.filter(project=project).defer("weights", "trained").order_by("-version")
        self.fields["prm"].queryset = prms  # type: ignore[attr-defined]  # the stubs know it only on the form's class


class CapForm(forms.Form):
    most_tokens = forms.IntegerField(
        label=gettext_lazy("Maximum tokens"), min_value=1, max_value=10**15, required=False
    )
    most_money = forms.DecimalField(
        label=gettext_lazy("Maximum cost"), min_value=0, max_digits=12, decimal_places=4, required=False
    )


class RunForm(CapForm):
    scope = forms.ChoiceField(label=gettext_lazy("Traces"), choices=RunScope.choices)
    most_traces = forms.IntegerField(label=gettext_lazy("Maximum traces"), min_value=1, max_value=10**9, required=False)

    field_order = ("scope", "most_traces", "most_tokens", "most_money")
