"""Forms to invite people and to change roles."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from people import roles
from people.models import Membership, Role


def _role_choices(actor: Membership, *, includes_owner: bool = True) -> list[tuple[str, Any]]:
    return [
        (role.value, role.label)
        for role in reversed(Role)
        if roles.may_grant(actor, role) and (includes_owner or role is not Role.OWNER)
    ]


class InviteForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"))
    uses_allowed = forms.IntegerField(label=_("Number of people"), min_value=1, max_value=10_000, initial=1)
    days = forms.IntegerField(label=_("Valid for (days)"), min_value=1, max_value=365, initial=14)
    note = forms.CharField(label=_("Note"), max_length=100, required=False, help_text=_("Only leads see it."))

    def __init__(self, *args: Any, actor: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = _role_choices(actor, includes_owner=False)  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean_role(self) -> Role:
        return Role(self.cleaned_data["role"])


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"))

    def __init__(self, *args: Any, actor: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = _role_choices(actor)  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean_role(self) -> Role:
        return Role(self.cleaned_data["role"])
