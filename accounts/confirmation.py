"""Ask users to confirm that it's them before sensitive actions, in case someone else uses their unlocked screen.

A login counts as a confirmation. A POST request that had to wait is repeated after the confirmation."""

import datetime as dt
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import resolve, reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.security_log import log_account_event

_WAITING_KEY = "waiting_request"
View = Callable[..., HttpResponseBase]


def is_recent(request: HttpRequest) -> bool:
    """Whether the user logged in or confirmed a short time ago."""
    if not request.user.is_authenticated:  # loads the session too
        return False
    at: dt.datetime | None = getattr(request.session, "authenticated_at", None)
    return at is None or at > timezone.now() - settings.CONFIRMATION_LIFETIME


def can_confirm(user: User) -> bool:
    """Whether the user has a password, a second factor or an identity of the single sign-on."""
    has_factor = Authenticator.objects.filter(user=user).exists()
    return (
        has_factor
        or user.has_usable_password()
        or (bool(settings.SSO) and SocialAccount.objects.filter(user=user).exists())
    )


def require_confirmation(
    *,
    on_get: bool = False,
    is_download: bool = False,
    of_credentials: bool = False,
    is_exempt: Callable[..., bool] = lambda **arguments: False,
) -> Callable[[View], View]:
    """Decorate a view that needs a recent confirmation, by default for POST requests only.

    Users who log in only through links have nothing to confirm with. They must log in again before they change
    credentials, and are not asked otherwise. Crowd workers have no credentials."""

    def decorate(view: View) -> View:
        @wraps(view)
        def confirmed(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            is_asked = (on_get or is_download or request.method == "POST") and not is_exempt(**kwargs)
            if not is_asked or not must_confirm(request, of_credentials=of_credentials):
                return view(request, *args, **kwargs)
            return suspend_download(request) if is_download else suspend(request)

        vars(confirmed)["needs_confirmation"] = True  # a test lists these views
        return confirmed

    return decorate


def must_confirm(request: HttpRequest, *, of_credentials: bool = False) -> bool:
    user = request.user
    if (not isinstance(user, User) and not user.is_authenticated) or is_recent(request):
        return False
    return not user.is_worker and (of_credentials or can_confirm(user))


def suspend(request: HttpRequest, *, back: str = "") -> HttpResponse:
    """Send the user to the page that asks for a confirmation. It leads back to this request, or to the page `back`."""
    path = request.get_full_path()
    request.session.pop(_WAITING_KEY, None)
    if request.method == "POST":
        request.session[_WAITING_KEY] = {"path": path, "post": request.POST.urlencode()}
    address = f"{reverse('account_reauthenticate')}?{urlencode({'next': back or path})}"
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": address})
    return HttpResponseRedirect(address)


def suspend_download(request: HttpRequest) -> HttpResponse:
    """Send the user to the page that asks for a confirmation. It leads back to the page with the link that was
    followed, or repeats a form that was sent."""
    return suspend(request, back="" if request.method == "POST" else _find_page_before(request))


def record_confirmation(request: HttpRequest, *, method: str) -> None:
    """Start a new session for the user, which counts as confirmed."""
    request.session.cycle_key()
    vars(request.session)["authenticated_at"] = timezone.now()  # for the rest of this request
    _log_event(request, "confirmed", method)


def record_failure(request: HttpRequest, *, method: str) -> None:
    _log_event(request, "confirmation_failed", method)


def _log_event(request: HttpRequest, what: str, method: str) -> None:
    user = request.user
    assert isinstance(user, User)
    log_account_event(what=what, user=user, by=user, now=timezone.now(), method=method)


def resume(request: HttpRequest, *, target: str) -> HttpResponseBase:
    """Continue with the request that had to wait, or show the page `target`."""
    waiting = request.session.pop(_WAITING_KEY, None)
    if waiting and waiting["path"] == target:
        path, _mark, query = target.partition("?")
        request.GET, request.POST = QueryDict(query), QueryDict(waiting["post"])
        request.path = request.path_info = path
        request.method = "POST"
        request.resolver_match = match = resolve(path)
        response: HttpResponseBase = match.func(request, *match.args, **match.kwargs)
        return response
    messages.success(request, _("Confirmed. You can continue now."))
    return HttpResponseRedirect(target)


def read_target(request: HttpRequest) -> str:
    """Return the page of this platform that the request names as the next one."""
    target = request.POST.get("next") or request.GET.get("next") or "/"
    return target if url_has_allowed_host_and_scheme(target, allowed_hosts=None) else "/"


def _find_page_before(request: HttpRequest) -> str:
    """Return the path of the page with the link that was followed."""
    before = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(before, allowed_hosts={request.get_host()}):
        return "/"
    return "/" + before.split("//", 1)[-1].partition("/")[2]
