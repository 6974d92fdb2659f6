"""Begins a person's session. Every way in ends here or in allauth's login page, which does the same."""

from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponseBase

from accounts.models import User


def log_in(request: HttpRequest, user: User, *, way: str, then: str | None = None) -> HttpResponseBase:
    """Go through allauth's stages, so that whoever has a second factor is asked for it. Whoever was logged in before
    in this browser is logged out. `then` is the page to go to; without, the one that everybody begins at."""
    if request.user.is_authenticated and request.user != user:
        logout(request)
    record_authentication(request, user, method=way)
    response: HttpResponseBase = perform_login(request, user, redirect_url=then)
    return response
