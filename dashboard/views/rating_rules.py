"""Short rules and kinds of errors, which the work page shows beside each trace."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard.access import form_view
from dashboard.guideline_versions import report_new_version
from dashboard.render import project_page
from labeling.models.assignment import Severity
from labeling.projects import lifecycle, rating_rules
from labeling.projects.rating_rules import RatingRules
from people import roles
from people.models import Membership
from people.roles import Action


class RuleField(forms.CharField):
    def __init__(self, label: Any) -> None:
        super().__init__(label=label, max_length=rating_rules.MAX_RULE_LENGTH, widget=forms.Textarea(attrs={"rows": 2}))

    def clean(self, value: Any) -> str:
        return " ".join(str(super().clean(value)).split())


class RatingRulesForm(forms.Form):
    negative = RuleField(_("Negative"))
    neutral = RuleField(_("Neutral"))
    positive = RuleField(_("Positive"))
    kinds = forms.CharField(
        label=_("Kinds of errors"),
        max_length=rating_rules.MAX_KINDS * (rating_rules.MAX_KIND_LENGTH + rating_rules.MAX_HELP_LENGTH + 5),
        widget=forms.Textarea(attrs={"rows": 7}),
        help_text=_(
            "One per line, up to 12, each with an optional hint after “|”. Shown if the project asks for them."
        ),
    )
    severities = forms.CharField(
        label=_("Severities"),
        max_length=300,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Three names, one per line, the lowest first. Leave empty for low, medium and high."),
    )

    def clean_kinds(self) -> dict[str, str]:
        """Return the hint of each kind by its name."""
        lines = [line.partition("|") for line in self.cleaned_data["kinds"].splitlines()]
        hints: dict[str, str] = {}
        for name, _bar, hint in lines:
            hints.setdefault(name.strip(), hint.strip())
        hints.pop("", None)
        names = list(hints)
        if not names:
            raise forms.ValidationError(self.fields["kinds"].error_messages["required"], code="required")
        if len(names) > rating_rules.MAX_KINDS:
            raise forms.ValidationError(_("Enter no more than %(n)d kinds."), params={"n": rating_rules.MAX_KINDS})
        if long := next((name for name in names if len(name) > rating_rules.MAX_KIND_LENGTH), None):
            raise forms.ValidationError(
                _("“%(name)s…” is too long: a kind of error can have up to %(n)d characters."),
                params={"name": long[:30], "n": rating_rules.MAX_KIND_LENGTH},
            )
        if any(len(hint) > rating_rules.MAX_HELP_LENGTH for hint in hints.values()):
            raise forms.ValidationError(
                _("A hint can have up to %(n)d characters."), params={"n": rating_rules.MAX_HELP_LENGTH}
            )
        return hints

    def clean_severities(self) -> tuple[str, ...]:
        names = tuple(line.strip() for line in self.cleaned_data["severities"].splitlines() if line.strip())
        if names and (len(set(names)) != len(Severity) or len(names) != len(Severity)):
            raise forms.ValidationError(_("Enter three different names, or none."), code="severities")
        if any(len(name) > rating_rules.MAX_KIND_LENGTH for name in names):
            raise forms.ValidationError(
                _("A name can have up to %(n)d characters."), params={"n": rating_rules.MAX_KIND_LENGTH}
            )
        return names


@form_view(Action.GUIDE, shown_to=Action.READ_SETTINGS)
def edit_rating_rules(request: HttpRequest, actor: Membership) -> HttpResponse:
    rules = rating_rules.load_rating_rules(actor.project)
    if request.method != "POST":
        template = rating_rules.RULES_TEMPLATES.get(request.GET.get("template", ""))
        return _render_rules(
            request, actor, RatingRulesForm(initial=_form_values(template.rules if template else rules))
        )
    form = RatingRulesForm(request.POST)
    if not form.is_valid():
        return _render_rules(request, actor, form, status=422)
    known = [*rules.kinds, *(kind for each in rating_rules.RULES_TEMPLATES.values() for kind in each.rules.kinds)]
    hints = form.cleaned_data.pop("kinds")
    kinds = rating_rules.name_kinds(hints, known, hints)
    changed = rating_rules.store_rules(RatingRules(**form.cleaned_data, kinds=kinds))
    before = actor.project.guideline_id
    lifecycle.change_settings(project=actor.project, by=actor.user, now=timezone.now(), rating_rules=changed)
    messages.success(request, _("Rules saved. Annotators see them on the next page they open."))
    report_new_version(request, actor.project, before=before)
    return redirect("dashboard:rating_rules", actor.project.slug)


def _form_values(rules: RatingRules) -> dict[str, str]:
    kinds = (" | ".join(map(str, filter(None, (kind.name, kind.help)))) for kind in rules.kinds)
    return {**rules._asdict(), "kinds": "\n".join(kinds), "severities": "\n".join(rules.severities)}


def _render_rules(request: HttpRequest, actor: Membership, form: RatingRulesForm, *, status: int = 200) -> HttpResponse:
    if not roles.membership_may(actor, Action.GUIDE):
        for field in form.fields.values():
            field.disabled = True
    return project_page(
        request,
        actor,
        "dashboard/rating_rules.html",
        here="settings",
        tab="rules",
        status=status,
        form=form,
        templates=rating_rules.RULES_TEMPLATES.items(),
    )
