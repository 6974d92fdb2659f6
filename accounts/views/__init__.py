"""Login links, passwords, API tokens and the color theme."""

import datetime as dt
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import confirmation, login, security_log, tokens, users
from accounts.confirmation import require_confirmation
from accounts.forms import ChangePasswordForm, NewPasswordForm, NewTokenForm
from accounts.models import LinkPurpose, User
from accounts.rate_limits import limit_posts

SIGN_INS_SHOWN = 100
THEME_COOKIE_LIFETIME = dt.timedelta(days=365)


@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@limit_posts("link")
def login_link(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show a button that uses the link up: message previews open links but press no buttons."""
    try:
        if request.method == "POST":
            user = tokens.use_link(token=token, purpose=LinkPurpose.LOGIN, now=timezone.now())
            return login.log_in(request, user, way="login_link")
        link = tokens.find_link(token=token, purpose=LinkPurpose.LOGIN, now=timezone.now())
    except tokens.LoginLinkInvalid:
        return render(request, "accounts/link_invalid.html", status=410)
    return render(request, "accounts/login_link.html", {"link_user": link.user})


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@limit_posts("link")
def new_password(request: HttpRequest, token: str) -> HttpResponseBase:
    try:
        link = tokens.find_link(token=token, purpose=LinkPurpose.NEW_PASSWORD, now=timezone.now())
        form = NewPasswordForm(request.POST or None, user=link.user)
        if form.is_valid():
            user = users.set_password_by_link(token=token, password=form.cleaned_data["password"], now=timezone.now())
            return login.log_in(request, user, way="new_password_link")
    except tokens.LoginLinkInvalid:
        return render(request, "accounts/link_invalid.html", {"purpose": "new_password"}, status=410)
    status = 422 if form.is_bound else 200
    return render(request, "accounts/new_password.html", {"form": form, "link_user": link.user}, status=status)


def refuse_workers(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorate a page that accounts from crowd platforms do not have."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if cast(User, request.user).is_worker:
            raise Http404
        return view(request, *args, **kwargs)

    return checked


@refuse_workers
@sensitive_post_parameters("current", "password")
@require_http_methods(["GET", "HEAD", "POST"])
@limit_posts("change_password")
def change_password(request: HttpRequest) -> HttpResponseBase:
    """Change the password. It needs the current one, or a recent confirmation from a user who has none."""
    user = cast(User, request.user)
    if not user.has_usable_password() and confirmation.must_confirm(request, of_credentials=True):
        return confirmation.suspend(request, back=request.path)
    form = ChangePasswordForm(request.POST or None, user=user)
    if not form.is_valid():
        if "current" in form.errors:
            security_log.log_account_event(what="password_check_failed", user=user, by=user, now=timezone.now())
        status = 422 if form.is_bound else 200
        return render(request, "accounts/change_password.html", {"form": form}, status=status)
    users.set_password(
        user=user,
        password=form.cleaned_data["password"],
        now=timezone.now(),
        revokes_tokens=form.cleaned_data.get("revokes_tokens", False),
    )
    update_session_auth_hash(request, user)
    messages.success(request, _("Password changed. You have been logged out everywhere else."))
    return redirect("annotate:home")


@refuse_workers
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@limit_posts("make_token")
@require_confirmation(of_credentials=True)
def manage_api_tokens(request: HttpRequest) -> HttpResponse:
    """List and create API tokens. A secret is shown once, in the response to the request that creates it."""
    user, now = cast(User, request.user), timezone.now()
    projects = list(user.memberships.filter(left_at=None).values_list("project_id", "project__name"))
    form, created = NewTokenForm(request.POST or None, user=user, projects=projects), None
    if form.is_valid():
        name, scopes, days = (form.cleaned_data[field] for field in ("name", "scopes", "days"))
        lasts = dt.timedelta(days=days) if days else None
        created = tokens.create_api_token(
            user=user, name=name, scopes=scopes, lasts=lasts, now=now, project_id=form.cleaned_data["project"]
        )
        form = NewTokenForm(user=user, projects=projects)
    status = 201 if created else 422 if form.is_bound else 200
    rows = tokens.list_api_tokens(user)
    context = {"form": form, "created": created, "tokens": rows, "projects": dict(projects), "now": now}
    return render(request, "accounts/tokens.html", context, status=status)


@require_POST
def revoke_api_token(request: HttpRequest, token: int) -> HttpResponse:
    row = get_object_or_404(tokens.list_api_tokens(cast(User, request.user)), pk=token)
    tokens.revoke_api_token(token=row, by=cast(User, request.user), now=timezone.now())
    messages.success(request, _("Token “%(name)s” revoked.") % {"name": row.name})
    return redirect("tokens")


@never_cache
@require_safe
def show_sign_ins(request: HttpRequest) -> HttpResponse:
    """Show the user what happened to their account, and from where."""
    events = security_log.list_account_events(cast(User, request.user))[:SIGN_INS_SHOWN]
    rows = [(event, security_log.EVENT_LABELS.get(event.what, event.what)) for event in events]
    context = {"rows": rows, "methods": security_log.LOGIN_METHOD_LABELS, "days": settings.ORIGIN_DAYS}
    return render(request, "accounts/sign_ins.html", context)


@login_not_required
@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Store the theme in a cookie, so that every page is first painted in it. Works without JavaScript."""
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        back = "/"
    response = HttpResponseRedirect(back)
    theme = request.POST.get("theme")
    if theme in {"light", "dark"}:
        response.set_cookie("theme", theme, max_age=THEME_COOKIE_LIFETIME, samesite="Lax", secure=request.is_secure())
    else:
        response.delete_cookie("theme", samesite="Lax")
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Explain a failed CSRF check: usually the page was open for long, or the user logged in within another tab."""
    return render(request, "403_csrf.html", status=403)
