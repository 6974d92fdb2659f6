"""Forms for login, passwords, new accounts and API tokens."""

from collections.abc import Callable, Sequence
from typing import Any

from allauth.account.forms import LoginForm
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from django import forms
from django.conf import settings
from django.contrib.auth import password_validation
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, ProhibitNullCharactersValidator
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts import rate_limits, tasks, tokens
from accounts.factors import MAX_PASSKEY_NAME_LENGTH
from accounts.models import Scope, User
from accounts.security_log import log_account_event

_PASSWORD_RULES = _("At least 10 characters. Avoid common passwords.")
_USERNAME_ATTRIBUTES = {"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
_CODE_ATTRIBUTES = {"autocomplete": "one-time-code", "inputmode": "numeric", "spellcheck": "false"}
_CODE_VALIDITY = 120  # seconds; longer than a code of an app is accepted
_MAX_CODE_LENGTH = 20  # codes may be typed with spaces
_MAX_LOGIN_LENGTH = 254  # the longest valid email address
# What allauth raises on a passkey that is wrong, and on answers that no browser sends.
_REFUSED_PASSKEY = (ValidationError, AttributeError, KeyError, OverflowError, TypeError, ValueError)
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
    revokes_tokens = forms.BooleanField(
        label=_("Revoke my API tokens too"),
        required=False,
        help_text=_("Choose this if someone else may know your password."),
    )
    field_order = ("current", "password", "revokes_tokens")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        if not user.has_usable_password():  # the view asks for a confirmation instead
            del self.fields["current"]
        if not tokens.list_api_tokens(user).exists():
            del self.fields["revokes_tokens"]

    def clean_current(self) -> str:
        current: str = self.cleaned_data["current"]
        if not self.user.check_password(current):
            raise ValidationError(_("Current password is incorrect."))
        return current


class DetailsForm(forms.Form):
    """The name and email address of a person. The email address is optional."""

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

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        return name.translate(BIDI_CONTROLS)


class NewAccountForm(DetailsForm):
    """An account for an invited person."""

    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        help_text=_("Used to log in. Use letters, digits and @ . + - _"),
        widget=forms.TextInput(attrs=_USERNAME_ATTRIBUTES),
    )
    password = _password_field(_("Password"), _PASSWORD_RULES)
    field_order = ("username", "name", "email", "password")

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        user = User(username=self.cleaned_data.get("username", ""), name=self.cleaned_data.get("name", ""))
        password_validation.validate_password(password, user)
        return password


class NewTokenForm(forms.Form):
    """An API token: its name, scopes and lifetime."""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        help_text=_("Helps you recognize the token later, for example when you revoke it."),
    )
    scopes = forms.MultipleChoiceField(
        label=_("Permissions"), choices=Scope.choices, widget=forms.CheckboxSelectMultiple
    )
    days = forms.TypedChoiceField(
        label=_("Expires after"),
        coerce=int,
    )

    project = forms.TypedChoiceField(label=_("Project"), coerce=int, required=False, empty_value=None)
    field_order = ("name", "project", "scopes", "days")

    def __init__(self, *args: Any, user: User, projects: Sequence[tuple[int, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        maximum = settings.MAX_TOKEN_DAYS
        days = [each for each in (30, 90, 365) if not maximum or each < maximum]
        offered = [(each, ngettext("%(n)d day", "%(n)d days", each) % {"n": each}) for each in [*days, maximum] if each]
        self.fields["days"].choices = offered if maximum else [*offered, (0, _("never"))]  # type: ignore[attr-defined]  # it is a ChoiceField
        self.fields["days"].initial = min(90, maximum or 90)
        self.fields["project"].choices = [("", _("all my projects")), *projects]  # type: ignore[attr-defined]  # it is a ChoiceField
        if not user.is_staff:
            choices = [choice for choice in Scope.choices if choice[0] != Scope.AUDIT]
            self.fields["scopes"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField


class CodeForm(AuthenticateForm):  # type: ignore[misc]  # allauth ships no types
    """A code of the authenticator app, or a recovery code. Wrong codes are limited and logged."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        code = self.fields["code"]
        code.label, code.max_length = _("Code"), _MAX_CODE_LENGTH
        code.validators.append(MaxLengthValidator(_MAX_CODE_LENGTH))
        code.help_text = _("From your authenticator app, or a recovery code.")
        code.widget.attrs = dict(_CODE_ATTRIBUTES)

    def clean_code(self) -> str:
        now = timezone.now()
        try:
            rate_limits.take({"second_factor": 1}, now=now.timestamp(), account=self.user.pk)
        except rate_limits.TooManyRequests:
            log_account_event(what="locked", user=self.user, by=None, now=now)
            raise ValidationError(_("Too many wrong codes. Wait five minutes, then try again."), "rate") from None
        try:
            code: str = super().clean_code()
            self._use_up(code)
        except ValidationError:
            log_account_event(what="factor_failed", user=self.user, by=None, now=now)
            raise
        rate_limits.take({"second_factor": -1}, now=now.timestamp(), account=self.user.pk)
        if self.authenticator.type == Authenticator.Type.RECOVERY_CODES:
            log_account_event(what="recovery_code_used", user=self.user, by=self.user, now=now)
            tasks.request_account_mail(user=self.user, what="recovery_code_used")
        return code

    def _use_up(self, code: str) -> None:
        """Refuse a code of the app that was used before. allauth remembers it for a part of its validity only."""
        key = f"used_code:{self.user.pk}:{rate_limits.hash_key(code)}"
        is_new = cache.add(key, True, timeout=_CODE_VALIDITY)
        if self.authenticator.type == Authenticator.Type.TOTP and not is_new:
            raise get_adapter().validation_error("incorrect_code")


class NewAppForm(ActivateTOTPForm):  # type: ignore[misc]  # allauth ships no types
    """The first code of a new authenticator app, which shows that the app has the secret."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].label = _("Code from the app")
        self.fields["code"].validators.append(MaxLengthValidator(_MAX_CODE_LENGTH))
        self.fields["code"].widget.attrs = dict(_CODE_ATTRIBUTES)


class NewPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]  # allauth ships no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields.pop("passwordless", None)  # the browser decides what the passkey can do
        name = self.fields["name"]
        name.label, name.help_text = _("Name"), _("Helps you recognize it later.")
        name.validators += [MaxLengthValidator(MAX_PASSKEY_NAME_LENGTH), ProhibitNullCharactersValidator()]

    def clean(self) -> dict[str, Any]:
        try:
            cleaned: dict[str, Any] = super().clean()
        except _REFUSED_PASSKEY as error:
            message = _("The passkey could not be added. Try again, or add a different one.")
            raise ValidationError(message, "passkey_refused") from error
        return cleaned


class PasskeyLogInForm(LoginWebAuthnForm):  # type: ignore[misc]  # allauth ships no types
    """A passkey in place of the username and password."""

    def clean_credential(self) -> Authenticator:
        return _check_passkey(super().clean_credential, user=None, failure="login_failed")


class PasskeyStepForm(AuthenticateWebAuthnForm):  # type: ignore[misc]  # allauth ships no types
    """A passkey after the password."""

    def clean_credential(self) -> Authenticator:
        return _check_passkey(super().clean_credential, user=self.user, failure="factor_failed")


class ConfirmPasskeyForm(ReauthenticateWebAuthnForm):  # type: ignore[misc]  # allauth ships no types
    """A passkey of the logged-in user."""

    def clean_credential(self) -> Authenticator:
        return _check_passkey(super().clean_credential, user=self.user, failure="factor_failed")


def _check_passkey(check: Callable[[], Authenticator], *, user: User | None, failure: str) -> Authenticator:
    """Log a refused passkey. allauth's own message is about codes."""
    try:
        return check()
    except _REFUSED_PASSKEY as error:
        log_account_event(what=failure, user=user, by=None, now=timezone.now(), method="webauthn")
        message = _("This passkey was not accepted. Try again, or use a different one.")
        raise ValidationError(message, "passkey_refused") from error


class ConfirmPasswordForm(forms.Form):
    """The password of the logged-in user."""

    password = _password_field(_("Password"), autocomplete="current-password")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not self.user.check_password(password):
            raise ValidationError(_("Password is incorrect."), "password")
        return password
