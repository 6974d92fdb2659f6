"""Forms of the page of live labeling. Fields are named as those of the settings that they become."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from labeling.models import Problem, Project
from live import policies, prompts
from live.models import LiveMode
from live.policies import PolicySettings
from machines.models import EndpointKind

_MAX_LISTED = 100  # problems


class LivePolicyForm(forms.Form):
    """Fields are named as those of `PolicySettings`."""

    family = forms.ChoiceField(label=gettext_lazy("Server"), choices=EndpointKind.choices)
    address = forms.CharField(
        label=gettext_lazy("Base URL"),
        max_length=500,
        required=False,
        help_text=gettext_lazy("For example http://gpu:8000/v1. The example program needs none."),
    )
    model = forms.CharField(label=gettext_lazy("Model"), max_length=200, required=False)
    model_digest = forms.CharField(label=gettext_lazy("Hash of the weights"), max_length=100, required=False)
    tokenizer_digest = forms.CharField(label=gettext_lazy("Hash of the tokenizer"), max_length=100, required=False)
    key = forms.CharField(
        label=gettext_lazy("API key"),
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Stored encrypted and never shown again."),
    )
    mode = forms.ChoiceField(
        label=gettext_lazy("The model"),
        choices=LiveMode.choices,
        help_text=gettext_lazy(
            "Hosted models that only chat cannot continue a text. Their steps are marked as instructed."
        ),
    )
    template = forms.CharField(
        label=gettext_lazy("Prompt"),
        required=False,
        strip=False,
        max_length=prompts.MAX_TEMPLATE_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Leave empty to use the built-in prompt. Write the model’s chat template around {problem}, and end with"
            " {prefix}, the steps so far."
        ),
    )
    n_options = forms.IntegerField(label=gettext_lazy("Options per step"), initial=PolicySettings.n_options)
    temperature = forms.FloatField(label=gettext_lazy("Temperature"), initial=PolicySettings.temperature)
    top_p = forms.FloatField(label=gettext_lazy("Top p"), initial=PolicySettings.top_p)
    top_k = forms.IntegerField(label=gettext_lazy("Top k"), required=False)
    min_p = forms.FloatField(label=gettext_lazy("Min p"), required=False)
    max_tokens = forms.IntegerField(label=gettext_lazy("Maximum tokens per step"), initial=PolicySettings.max_tokens)
    step_end = forms.CharField(
        label=gettext_lazy("A step ends at this text"),
        max_length=100,
        strip=False,
        initial="\\n\\n",
        help_text=gettext_lazy("\\n is a line end. The built-in prompt separates steps with a blank line."),
    )
    timeout = forms.FloatField(label=gettext_lazy("Timeout in seconds"), initial=PolicySettings.timeout)
    n_prefetched = forms.IntegerField(
        label=gettext_lazy("Prefetched choices"),
        initial=PolicySettings.n_prefetched,
        help_text=gettext_lazy("Next steps are generated for this many positive options before one is chosen."),
    )
    sessions_per_problem = forms.IntegerField(
        label=gettext_lazy("Solutions per problem"), initial=PolicySettings.sessions_per_problem
    )
    most_steps = forms.IntegerField(label=gettext_lazy("Maximum steps per solution"), initial=PolicySettings.most_steps)
    most_session_tokens = forms.IntegerField(label=gettext_lazy("Maximum tokens per solution"), required=False)
    most_tokens = forms.IntegerField(label=gettext_lazy("Maximum tokens in total"), required=False)
    most_money = forms.DecimalField(
        label=gettext_lazy("Maximum cost in total"), max_digits=12, decimal_places=4, required=False
    )
    prompt_price = forms.DecimalField(
        label=gettext_lazy("Price per million input tokens"), initial=PolicySettings.prompt_price
    )
    completion_price = forms.DecimalField(
        label=gettext_lazy("Price per million output tokens"), initial=PolicySettings.completion_price
    )

    def make_settings(self) -> PolicySettings:
        values = dict(self.cleaned_data)
        values["step_end"] = values["step_end"].replace("\r\n", "\n").replace("\\n", "\n")
        return PolicySettings(**values)

    @classmethod
    def list_values(cls, policy: Any) -> dict[str, Any]:
        """Return the initial values of an edited copy. The key is never shown."""
        settings = policies.copy_settings(policy)
        values = {name: getattr(settings, name) for name in cls.base_fields if name != "key"}
        return values | {"step_end": settings.step_end.replace("\n", "\\n")}


class TrialForm(forms.Form):
    problem = forms.ModelChoiceField(label=gettext_lazy("Problem"), queryset=Problem.objects.none(), empty_label=None)

    def __init__(self, *arguments: Any, project: Project, **options: Any) -> None:
        super().__init__(*arguments, **options)
        ids = Problem.objects.filter(project=project, is_reserve=False).order_by("pk").values("pk")[:_MAX_LISTED]
        rows = Problem.objects.filter(pk__in=ids).order_by("pk")
        self.fields["problem"].queryset = rows  # type: ignore[attr-defined]  # the stubs know it only on the form's class


class ProblemsForm(forms.Form):
    problems = forms.CharField(
        label=gettext_lazy("Problems, one per line"),
        max_length=1_000_000,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        help_text=gettext_lazy('Plain text, or {"problem": "…", "answer": "…"} to keep a reference answer.'),
    )
