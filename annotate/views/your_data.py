"""The data that the platform stores about the user: download it, or erase the account."""

from typing import Any

from django import forms
from django.contrib import auth
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from accounts.confirmation import must_confirm, require_confirmation, suspend
from accounts.models import User
from accounts.rate_limits import limit_posts
from accounts.sessions import UserRequest
from events import audit_log
from people.members import LastOwner
from privacy import erasure, own_data

FILE_NAME = "stepmark-data.json"


class EraseAccountForm(forms.Form):
    """The username confirms the erasure; the password shows that it is the user. Crowd workers have no password."""

    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    password = forms.CharField(
        label=_("Password"), strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.fields["username"].help_text = _("Type %(name)s to confirm.") % {"name": user.username}
        if not user.has_usable_password():
            del self.fields["password"]

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if name != self.user.username:
            raise ValidationError(_("The username does not match. Type it as shown."), code="username")
        return name

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not self.user.check_password(password):
            raise ValidationError(_("Password is incorrect."), code="password")
        return password


@never_cache
@require_safe
def show_your_data(request: UserRequest) -> HttpResponse:
    return _render(request, EraseAccountForm(user=request.user))


@require_confirmation(is_download=True)
@never_cache
@require_safe
def download_your_data(request: UserRequest) -> HttpResponseBase:
    audit_log.log_download(file=FILE_NAME, by=request.user, now=timezone.now(), has_names=True)
    headers = {"Content-Disposition": f'attachment; filename="{FILE_NAME}"'}
    return StreamingHttpResponse(
        own_data.stream_own_data(request.user), content_type="application/json", headers=headers
    )


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["POST"])
@limit_posts("change_password")
def erase_account(request: UserRequest) -> HttpResponse:
    user = request.user
    if not user.has_usable_password() and must_confirm(request, of_credentials=True):
        return suspend(request, back=reverse("annotate:your_data"))  # others confirm with the password in the form
    form = EraseAccountForm(request.POST, user=user)
    if not form.is_valid():
        return _render(request, form, status=422)
    try:
        erasure.erase_person(user=user, by=user, now=timezone.now())
    except LastOwner as error:
        form.add_error(None, str(error))
        return _render(request, form, status=422)
    auth.logout(request)
    return render(request, "annotate/account_erased.html")


def _render(request: HttpRequest, form: EraseAccountForm, *, status: int = 200) -> HttpResponse:
    return render(request, "annotate/your_data.html", {"form": form}, status=status)
