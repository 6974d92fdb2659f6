"""What leads type, checked."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from labeling.models import Project
from labeling.models.project import Protocol
from people import member_messages, roles
from people.models import Membership, Role


def _role_choices(actor: Membership, *, invites: bool = False) -> list[tuple[str, Any]]:
    return [
        (role.value, role.label)
        for role in reversed(Role)
        if roles.may_grant(actor, role) and not (invites and role is Role.OWNER)
    ]


def clean_new_slug(asked: str) -> str:
    """An address that no project has."""
    slug = asked.lower()
    if slug == "new" or Project.objects.filter(slug=slug).exists():
        raise build_slug_taken_error(slug)
    return slug


def build_slug_taken_error(slug: str) -> ValidationError:
    return ValidationError(_("The address “%(slug)s” is taken. Choose another."), params={"slug": slug})


class InviteForm(forms.Form):
    role = forms.ChoiceField(label=_("As"))
    uses_allowed = forms.IntegerField(label=_("People"), min_value=1, max_value=10_000, initial=1)
    days = forms.IntegerField(label=_("Days"), min_value=1, max_value=365, initial=14)
    note = forms.CharField(label=_("For whom"), max_length=100, required=False, help_text=_("A note for the leads."))

    def __init__(self, *args: Any, actor: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = _role_choices(actor, invites=True)  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean_role(self) -> Role:
        return Role(self.cleaned_data["role"])


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"))

    def __init__(self, *args: Any, actor: Membership, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].choices = _role_choices(actor)  # type: ignore[attr-defined]  # it is a ChoiceField

    def clean_role(self) -> Role:
        return Role(self.cleaned_data["role"])


class NewProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)
    slug = forms.SlugField(
        label=_("Address"), max_length=80, help_text=_("Stands in links: small letters, digits and dashes. It stays.")
    )
    protocol = forms.ChoiceField(
        label=_("Raters rate"),
        choices=[(each.value, each.label) for each in (Protocol.FIRST_ERROR, Protocol.EVERY_STEP)],
    )
    overlap = forms.IntegerField(
        label=_("Raters for each trace"),
        min_value=1,
        max_value=20,
        initial=2,
        help_text=_("Two or more let you measure agreement."),
    )

    def clean_slug(self) -> str:
        return clean_new_slug(self.cleaned_data["slug"])


class MessageForm(forms.Form):
    text = forms.CharField(
        label=_("Message"),
        max_length=member_messages.MAX_LENGTH,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("It stands at their home and on their work page until they have read it."),
        error_messages={"required": _("Write what they should read.")},
    )
