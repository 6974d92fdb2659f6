"""What people type to get in, checked."""

from typing import Any

from allauth.account.forms import LoginForm
from django import forms
from django.contrib.auth import password_validation
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext_lazy as _

from accounts.models import Scope, User

_MAX_LOGIN_LENGTH = 254  # an e-mail address
# Characters that turn the direction of whatever stands after a name. Letters of any script turn their own text alone.
BIDI_CONTROLS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def _password_field(label: Any) -> forms.CharField:
    field = forms.CharField(
        label=label, strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )
    field.help_text = _("At least 10 characters; not one of the passwords that everybody tries.")
    return field


class LogInForm(LoginForm):  # type: ignore[misc]  # allauth ships no types
    """allauth's own, said in our words: labels instead of placeholders."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name, password = self.fields["login"], self.fields["password"]
        name.label = _("User name or e-mail address")
        name.widget.attrs = {"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
        name.validators.append(MaxLengthValidator(_MAX_LOGIN_LENGTH))  # what nobody is called is not looked for
        password.help_text = ""
        password.widget.attrs.pop("placeholder", None)


class NewPasswordForm(forms.Form):
    """A new password, written once: it can be made visible, and another link is always to be had."""

    password = _password_field(_("New password"))

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        password_validation.validate_password(password, self.user)
        return password


class ChangePasswordForm(NewPasswordForm):
    current = forms.CharField(
        label=_("Password until now"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    field_order = ("current", "password")

    def clean_current(self) -> str:
        current: str = self.cleaned_data["current"]
        if not self.user.check_password(current):
            raise ValidationError(_("This is not your password until now. Write it again."))
        return current


class NewAccountForm(forms.Form):
    """An account for somebody who was invited. An e-mail address is not asked of anybody."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text=_("For logging in. Letters, digits and @ . + - _"),
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}),
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=150,
        required=False,
        help_text=_("For the people you work with. Datasets never carry it."),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    email = forms.EmailField(
        label=_("E-mail address"),
        required=False,
        help_text=_("Another way to log in."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    password = _password_field(_("Password"))

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        return name.translate(BIDI_CONTROLS)

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        person = User(username=self.cleaned_data.get("username", ""), name=self.cleaned_data.get("name", ""))
        password_validation.validate_password(password, person)
        return password


class NewTokenForm(forms.Form):
    """A token for a program: as little as it needs, for as long as it needs it."""

    name = forms.CharField(
        label=_("What it is for"), max_length=100, help_text=_("So that you know later which one to withdraw.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("What the program may do"), choices=Scope.choices, widget=forms.CheckboxSelectMultiple
    )
    days = forms.TypedChoiceField(
        label=_("It works for"),
        coerce=int,
        initial=90,
        choices=[(30, _("30 days")), (90, _("90 days")), (365, _("a year")), (0, _("until it is withdrawn"))],
    )
