"""The page behind an invitation: for somebody new, and for somebody who has an account."""

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts import entry
from accounts.forms import NewAccountForm
from accounts.models import User
from accounts.users import NameIsTaken
from people import invitations
from people.models import Invitation, Membership


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponseBase:
    invitation = invitations.find(token=token, now=timezone.now())
    if invitation is None:
        return render(request, "annotate/invitation_is_over.html", status=410)
    try:
        if request.user.is_authenticated:
            return _join_as_oneself(request, token, invitation)
        return _join_as_somebody_new(request, token, invitation)
    except invitations.InvitationIsOver:
        return render(request, "annotate/invitation_is_over.html", status=410)


def _join_as_oneself(request: HttpRequest, token: str, invitation: Invitation) -> HttpResponse:
    user = cast(User, request.user)
    if request.method == "POST":
        _welcome(request, invitations.accept(token=token, user=user, now=timezone.now()))
        return redirect("annotate:home")
    present = Membership.objects.of(user).filter(project=invitation.project).first()
    return render(request, "annotate/join.html", {"invitation": invitation, "present": present})


def _join_as_somebody_new(request: HttpRequest, token: str, invitation: Invitation) -> HttpResponseBase:
    form = NewAccountForm(request.POST or None)
    if form.is_valid():
        try:
            membership = invitations.accept_as_new(token=token, now=timezone.now(), **form.cleaned_data)
        except NameIsTaken as taken:
            form.add_error(taken.field, str(taken))
        else:
            _welcome(request, membership)
            return entry.enter(request, membership.user, way="invitation")
    status = 422 if form.is_bound else 200
    return render(request, "annotate/join.html", {"invitation": invitation, "form": form}, status=status)


def _welcome(request: HttpRequest, membership: Membership) -> None:
    told = {"project": membership.project.name, "role": membership.get_role_display()}
    messages.success(request, _("You belong to “%(project)s” as %(role)s.") % told)
