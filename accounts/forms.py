"""Forms for login, passwords, new accounts and API tokens."""

from typing import Any

from allauth.account.forms import LoginForm
from django import forms
from django.contrib.auth import password_validation
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext_lazy as _

from accounts.models import Scope, User

_PASSWORD_RULES = _("At least 10 characters. Avoid common passwords.")
_USERNAME_ATTRIBUTES = {"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
_MAX_LOGIN_LENGTH = 254  # the longest valid email address
# These characters reverse the text that follows a name. Right-to-left letters affect only themselves, so they stay.
BIDI_CONTROLS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def _password_field(label: Any, help_text: Any = "", autocomplete: str = "new-password") -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(label=label, strip=False, widget=widget, help_text=help_text)


class LogInForm(LoginForm):  # type: ignore[misc]  # allauth ships no types
    """allauth's login form with labels instead of placeholders."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        name, password = self.fields["login"], self.fields["password"]
        name.label = _("Username or email address")
        name.widget.attrs = dict(_USERNAME_ATTRIBUTES)
        name.validators.append(MaxLengthValidator(_MAX_LOGIN_LENGTH))  # PostgreSQL cannot index a very long value
        password.help_text = ""
        password.widget.attrs.pop("placeholder", None)


class NewPasswordForm(forms.Form):
    """A new password. It is typed once, because the field can show it."""

    password = _password_field(_("New password"), _PASSWORD_RULES)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        password_validation.validate_password(password, self.user)
        return password


class ChangePasswordForm(NewPasswordForm):
    current = _password_field(_("Current password"), autocomplete="current-password")
    field_order = ("current", "password")

    def clean_current(self) -> str:
        current: str = self.cleaned_data["current"]
        if not self.user.check_password(current):
            raise ValidationError(_("Current password is incorrect."))
        return current


class NewAccountForm(forms.Form):
    """An account for an invited person. The email address is optional."""

    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text=_("Used to log in. Letters, digits and @ . + - _"),
        widget=forms.TextInput(attrs=_USERNAME_ATTRIBUTES),
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=150,
        required=False,
        help_text=_("Shown to project leads. Never included in datasets."),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    email = forms.EmailField(
        label=_("Email address"),
        required=False,
        help_text=_("You can also use it to log in."),
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    password = _password_field(_("Password"), _PASSWORD_RULES)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        return name.translate(BIDI_CONTROLS)

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        user = User(username=self.cleaned_data.get("username", ""), name=self.cleaned_data.get("name", ""))
        password_validation.validate_password(password, user)
        return password


class NewTokenForm(forms.Form):
    """An API token: its name, scopes and lifetime."""

    name = forms.CharField(
        label=_("Name"), max_length=100, help_text=_("Helps you recognize the token when you want to revoke it.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("Permissions"), choices=Scope.choices, widget=forms.CheckboxSelectMultiple
    )
    days = forms.TypedChoiceField(
        label=_("Expires after"),
        coerce=int,
        initial=90,
        choices=[(30, _("30 days")), (90, _("90 days")), (365, _("1 year")), (0, _("never"))],
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not user.is_staff:
            choices = [choice for choice in Scope.choices if choice[0] != Scope.AUDIT]
            self.fields["scopes"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField
