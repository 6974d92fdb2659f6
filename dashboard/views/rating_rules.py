"""Short rules and kinds of errors, which the work page shows beside each trace."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from dashboard.access import form_view
from dashboard.render import project_page
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
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 7}),
        help_text=_("One per line, up to 12. Shown if the project asks for the error category."),
    )

    def clean_kinds(self) -> list[str]:
        names = list(dict.fromkeys(line.strip() for line in self.cleaned_data["kinds"].splitlines() if line.strip()))
        if len(names) > rating_rules.MAX_KINDS:
            raise forms.ValidationError(_("Enter no more than %(n)d kinds."), params={"n": rating_rules.MAX_KINDS})
        if long := next((name for name in names if len(name) > rating_rules.MAX_KIND_LENGTH), None):
            raise forms.ValidationError(
                _("“%(name)s…” is too long: a kind of error can have up to %(n)d characters."),
                params={"name": long[:30], "n": rating_rules.MAX_KIND_LENGTH},
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
    kinds = rating_rules.name_kinds(form.cleaned_data.pop("kinds"), known)
    changed = rating_rules.store_rules(RatingRules(**form.cleaned_data, kinds=kinds))
    lifecycle.change_settings(project=actor.project, by=actor.user, now=timezone.now(), rating_rules=changed)
    messages.success(request, _("Rules saved. Annotators see them on the next page they open."))
    return redirect("dashboard:rating_rules", actor.project.slug)


def _form_values(rules: RatingRules) -> dict[str, str]:
    return {**rules._asdict(), "kinds": "\n".join(str(kind.name) for kind in rules.kinds)}


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
