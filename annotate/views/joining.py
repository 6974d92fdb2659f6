"""The page behind an invitation: for somebody new, for somebody who has an account, for a crowd platform's worker."""

from typing import cast

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

from accounts import entry
from accounts.forms import NewAccountForm
from accounts.models import User
from accounts.users import NameIsTaken
from people import invitations, workers
from people.models import Invitation, Membership
from people.roles import RATERS


@login_not_required
@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponseBase:
    """Looking uses nothing up: previews of messages look too."""
    try:
        for_workers = workers.find(token=token, now=timezone.now())
        arrival = for_workers and workers.arrival(project=for_workers.project, values_of=request.GET.getlist)
        if for_workers and arrival:
            return _join_as_worker(request, token, for_workers, arrival)
        return _join_as_person(request, token)
    except invitations.InvitationIsOver:
        return render(request, "annotate/invitation_is_over.html", status=410)
    except workers.NotAWorkerId as error:
        return render(request, "annotate/worker_unknown.html", {"why": str(error)}, status=422)
    except workers.CannotComeBack:
        return render(request, "annotate/worker_unknown.html", status=410)


def _join_as_worker(
    request: HttpRequest, token: str, invitation: Invitation, arrival: workers.Arrival
) -> HttpResponseBase:
    if request.method != "POST":
        told = {"invitation": invitation, "arrival": arrival}
        return render(request, "annotate/join.html", told)
    membership = workers.enter(token=token, arrival=arrival, now=timezone.now())
    return entry.enter(request, membership.user, way="worker_id", then=_first_page(membership))


def _join_as_person(request: HttpRequest, token: str) -> HttpResponseBase:
    invitation = invitations.find(token=token, now=timezone.now())
    if invitation is None:
        raise invitations.InvitationIsOver
    if request.user.is_authenticated:
        return _join_as_oneself(request, token, invitation)
    return _join_as_somebody_new(request, token, invitation)


def _join_as_oneself(request: HttpRequest, token: str, invitation: Invitation) -> HttpResponse:
    user = cast(User, request.user)
    if request.method == "POST":
        membership = invitations.accept(token=token, user=user, now=timezone.now())
        _welcome(request, membership)
        return redirect(_first_page(membership))
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
            return entry.enter(request, membership.user, way="invitation", then=_first_page(membership))
    status = 422 if form.is_bound else 200
    return render(request, "annotate/join.html", {"invitation": invitation, "form": form}, status=status)


def _first_page(membership: Membership) -> str:
    """Whoever comes to rate begins at the first station of the way."""
    if membership.role in RATERS:
        return reverse("annotate:enter", args=[membership.project.slug])
    return reverse("annotate:home")


def _welcome(request: HttpRequest, membership: Membership) -> None:
    told = {"project": membership.project.name, "role": membership.get_role_display()}
    messages.success(request, _("You belong to “%(project)s” as %(role)s.") % told)
