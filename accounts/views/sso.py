"""Log in through the organization's provider, and connect an account with it. Without a provider, these pages do not
exist."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from requests import RequestException

from accounts import confirmation, single_sign_on
from accounts.confirmation import require_confirmation
from accounts.rate_limits import limit_posts
from accounts.sessions import UserRequest
from accounts.views import refuse_workers


@login_not_required
@never_cache
@require_POST
@limit_posts("login")
def start_login(request: HttpRequest) -> HttpResponse:
    return _go_to_provider(request, "login")


@refuse_workers
@never_cache
@require_POST
@limit_posts("confirm")
def start_confirmation(request: HttpRequest) -> HttpResponse:
    return _go_to_provider(request, "confirm")


@refuse_workers
@never_cache
@require_POST
@require_confirmation(of_credentials=True)
def connect_identity(request: HttpRequest) -> HttpResponseBase:
    return _go_to_provider(request, "connect")


@refuse_workers
@never_cache
@require_POST
@require_confirmation(of_credentials=True)
def disconnect_identity(request: UserRequest) -> HttpResponseBase:
    if not single_sign_on.remove_identity(user=request.user, now=timezone.now()):
        messages.error(request, _("Set a password first. Without one, you could not log in."))
    return redirect("mfa_index")


@login_not_required
@never_cache
@require_safe
def finish(request: HttpRequest) -> HttpResponse:
    _require_provider()
    return single_sign_on.finish(request)


def _go_to_provider(request: HttpRequest, purpose: str) -> HttpResponse:
    """Show a page that leads to the provider: the content policy lets no form lead to another site."""
    _require_provider()
    try:
        address = single_sign_on.start(request, purpose=purpose, target=confirmation.read_target(request))
    except (RequestException, ValueError, KeyError):
        context = {"reason": "away", "sso_name": single_sign_on.get_settings().name}
        return render(request, "accounts/sso_refused.html", context, status=502)
    return render(
        request, "accounts/to_provider.html", {"address": address, "sso_name": single_sign_on.get_settings().name}
    )


def _require_provider() -> None:
    if settings.SSO is None:
        raise Http404
