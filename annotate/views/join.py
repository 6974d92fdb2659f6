"""The invitation page: for new people, for users with an account, and for workers of a crowd platform."""

import datetime as dt
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts import login, tokens
from accounts.forms import NewAccountForm
from accounts.models import User
from accounts.rate_limits import hash_key, limit_posts, limit_request
from accounts.users import NameIsTaken
from people import crowd_workers, invitations
from people.models import Invitation, Membership
from people.roles import RATING_ROLES

DEVICE_COOKIE = f"{settings.COOKIE_PREFIX}stepmark_device"
DEVICE_LIFETIME = dt.timedelta(days=365)


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@limit_posts("join")
def accept_invitation(request: HttpRequest, token: str) -> HttpResponseBase:
    """Show or accept an invitation. Only a POST uses it up: message previews open links too."""
    try:
        invitation = crowd_workers.find_worker_invitation(token=token, now=timezone.now())
        visit = invitation and crowd_workers.read_visit(project=invitation.project, values_of=request.GET.getlist)
        if invitation and visit:
            return _join_as_worker(request, token, invitation, visit)
        return _join_as_person(request, token)
    except invitations.InvitationInvalid:
        return render(request, "annotate/invitation_invalid.html", status=410)
    except crowd_workers.InvalidWorkerId as error:
        return render(request, "annotate/worker_rejected.html", {"reason": str(error)}, status=422)
    except crowd_workers.WorkerCannotReturn:
        return render(request, "annotate/worker_rejected.html", status=410)


def _read_device(request: HttpRequest) -> str:
    """Return the secret of this browser, or a new one."""
    device = request.COOKIES.get(DEVICE_COOKIE, "")
    return device if len(device) == len(tokens.generate_token()) else tokens.generate_token()


def _join_as_worker(
    request: HttpRequest, token: str, invitation: Invitation, visit: crowd_workers.CrowdVisit
) -> HttpResponseBase:
    if request.method != "POST":
        return render(request, "annotate/join.html", {"invitation": invitation, "visit": visit})
    device = _read_device(request)
    response: HttpResponseBase
    try:
        membership = crowd_workers.admit_worker(token=token, visit=visit, device=device, now=timezone.now())
    except crowd_workers.DeviceNotReleased:
        response = render(request, "annotate/device_waiting.html", {"project": invitation.project}, status=403)
    else:
        response = login.log_in(request, membership.user, way="worker_id", then=_landing_page(membership))
    cast(HttpResponse, response).set_cookie(
        DEVICE_COOKIE, device, max_age=DEVICE_LIFETIME, httponly=True, samesite="Lax", secure=request.is_secure()
    )
    return response


def _join_as_person(request: HttpRequest, token: str) -> HttpResponseBase:
    invitation = invitations.find_invitation(token=token, now=timezone.now())
    if invitation is None:
        raise invitations.InvitationInvalid
    if request.user.is_authenticated:
        return _join_with_account(request, token, invitation)
    return _join_with_new_account(request, token, invitation)


def _join_with_account(request: HttpRequest, token: str, invitation: Invitation) -> HttpResponse:
    user = cast(User, request.user)
    if request.method == "POST":
        membership = invitations.accept_invitation(token=token, user=user, now=timezone.now())
        _greet_member(request, membership)
        return redirect(_landing_page(membership))
    current = Membership.objects.of(user).filter(project=invitation.project).first()
    return render(request, "annotate/join.html", {"invitation": invitation, "membership": current})


def _join_with_new_account(request: HttpRequest, token: str, invitation: Invitation) -> HttpResponseBase:
    form = NewAccountForm(request.POST or None)
    if form.is_valid():
        try:
            membership = invitations.accept_with_new_account(token=token, now=timezone.now(), **form.cleaned_data)
        except NameIsTaken as taken:
            if refusal := limit_request(request, "name_taken", invitation=hash_key(token)):
                return refusal
            form.add_error(taken.field, str(taken))
        else:
            _greet_member(request, membership)
            return login.log_in(request, membership.user, way="invitation", then=_landing_page(membership))
    status = 422 if form.is_bound else 200
    return render(request, "annotate/join.html", {"invitation": invitation, "form": form}, status=status)


def _landing_page(membership: Membership) -> str:
    """Return the onboarding page for annotators, the home page for others."""
    if membership.role in RATING_ROLES:
        return reverse("annotate:enter", args=[membership.project.slug])
    return reverse("annotate:home")


def _greet_member(request: HttpRequest, membership: Membership) -> None:
    names = {"project": membership.project.name, "role": membership.get_role_display()}
    messages.success(request, _("You’ve joined “%(project)s”. Your role: %(role)s.") % names)
