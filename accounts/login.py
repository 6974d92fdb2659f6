"""Log a user in. Links and invitations end here; the login page is allauth's, which does the same."""

from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponseBase

from accounts.models import User


def log_in(request: HttpRequest, user: User, *, way: str, then: str | None = None) -> HttpResponseBase:
    """Log `user` in through allauth's stages, so that a second factor is requested if they have one.

    Another user who is logged in within this browser is logged out first. `then` is the page to show next (default:
    the home page)."""
    if request.user.is_authenticated and request.user != user:
        logout(request)
    record_authentication(request, user, method=way)
    response: HttpResponseBase = perform_login(request, user, redirect_url=then)
    return response
