"""The user's own security page: name and email address, second factors, single sign-on and sessions; and the page that
asks the user to confirm that it's them. Crowd workers have none of these pages."""

from collections.abc import Callable
from typing import cast

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes import views as recovery_code_views
from allauth.mfa.totp import views as totp_views
from allauth.mfa.webauthn import views as webauthn_views
from allauth.mfa.webauthn.internal import auth as webauthn
from allauth.socialaccount.models import SocialAccount
from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import confirmation, factors, sessions, users
from accounts.confirmation import View, require_confirmation
from accounts.forms import CodeForm, ConfirmPasskeyForm, ConfirmPasswordForm, DetailsForm
from accounts.models import User
from accounts.rate_limits import limit_posts
from accounts.sessions import UserRequest
from accounts.views import refuse_workers

_HUB = reverse_lazy("mfa_index")


def _guard_factor_view(view: View) -> View:
    """Decorate a view of allauth that shows or changes second factors."""
    return refuse_workers(never_cache(require_confirmation(on_get=True, of_credentials=True)(view)))


add_app = _guard_factor_view(limit_posts("second_factor")(totp_views.activate_totp))
remove_app = _guard_factor_view(totp_views.DeactivateTOTPView.as_view(success_url=_HUB))
show_codes = _guard_factor_view(recovery_code_views.view_recovery_codes)
download_codes = _guard_factor_view(recovery_code_views.download_recovery_codes)
replace_codes = _guard_factor_view(recovery_code_views.generate_recovery_codes)
add_passkey = _guard_factor_view(webauthn_views.add_webauthn)
remove_passkey = _guard_factor_view(webauthn_views.RemoveWebAuthnView.as_view(success_url=_HUB))


@refuse_workers
@never_cache
@require_safe
def show_security(request: UserRequest) -> HttpResponse:
    return _render_security(request)


@refuse_workers
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@require_confirmation(of_credentials=True)
def change_details(request: UserRequest) -> HttpResponse:
    user = request.user
    form = DetailsForm(request.POST or None, initial={"name": user.name, "email": user.email})
    if form.is_valid():
        try:
            users.change_details(user=user, now=timezone.now(), **form.cleaned_data)
        except users.NameIsTaken as taken:
            form.add_error(taken.field, str(taken))
        else:
            messages.success(request, _("Saved."))
            return redirect("mfa_index")
    status = 422 if form.is_bound else 200
    return render(request, "accounts/details.html", {"form": form}, status=status)


@refuse_workers
@require_POST
def end_session(request: UserRequest, reference: str) -> HttpResponse:
    if sessions.end_session(user=request.user, reference=reference, now=timezone.now()):
        messages.success(request, _("Session ended."))
    return redirect("mfa_index")


@refuse_workers
@require_POST
def end_other_sessions(request: UserRequest) -> HttpResponse:
    sessions.end_other_sessions(user=request.user, current=request.session.session_key, now=timezone.now())
    messages.success(request, _("You are logged out everywhere else."))
    return redirect("mfa_index")


def _render_security(request: UserRequest) -> HttpResponse:
    user, now = request.user, timezone.now()
    found = factors.list_factors(user)
    context = {
        "apps": [each for each in found if each.type == Authenticator.Type.TOTP],
        "passkeys": [(each, each.wrap().name) for each in found if each.type == Authenticator.Type.WEBAUTHN],
        "codes_left": factors.describe_remaining_codes(user),
        "sessions": sessions.list_sessions(request, now=now),
        "sso_name": settings.SSO.name if settings.SSO else "",
        "identities": SocialAccount.objects.filter(user=user) if settings.SSO else (),
        "must_enroll": request.GET.get("required") == "yes",
    }
    return render(request, "accounts/security.html", context)


@refuse_workers
@never_cache
@sensitive_post_parameters("password", "code")
@require_http_methods(["GET", "HEAD", "POST"])
@limit_posts("confirm")
def confirm(request: HttpRequest) -> HttpResponseBase:
    """Ask for the password, a code or a passkey."""
    user = cast(User, request.user)
    method = next((name for name in ("password", "code", "credential") if name in request.POST), "")
    all_forms = _make_forms(request, user, method)
    form = all_forms.get(method)
    if form is not None and form.is_valid():
        if method != "password":
            form.save()  # type: ignore[attr-defined]  # allauth's form
        confirmation.record_confirmation(request, method=_name_method(form, method))
        return confirmation.resume(request, target=confirmation.read_target(request))
    if form is not None:
        confirmation.record_failure(request, method=method)
    context = {
        "forms": all_forms,
        "next": confirmation.read_target(request),
        "options": webauthn.begin_authentication(user) if "credential" in all_forms else None,
        "sso_name": settings.SSO.name if settings.SSO and SocialAccount.objects.filter(user=user).exists() else "",
    }
    return render(request, "account/reauthenticate.html", context, status=422 if form is not None else 200)


def _make_forms(request: HttpRequest, user: User, method: str) -> dict[str, forms.Form]:
    """Return the forms for what the user has; the one that was sent is bound."""
    kinds = set(Authenticator.objects.filter(user=user).values_list("type", flat=True))
    classes: dict[str, Callable[..., forms.Form]] = {}
    if user.has_usable_password():
        classes["password"] = ConfirmPasswordForm
    if kinds & {Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES}:
        classes["code"] = CodeForm
    if Authenticator.Type.WEBAUTHN in kinds:
        classes["credential"] = ConfirmPasskeyForm
    return {name: kind(request.POST if name == method else None, user=user) for name, kind in classes.items()}


def _name_method(form: forms.Form, method: str) -> str:
    """Return the method for the security log."""
    if isinstance(form, CodeForm):
        return str(form.authenticator.type)
    return "webauthn" if method == "credential" else method
