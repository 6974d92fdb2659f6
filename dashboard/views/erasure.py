"""Erase a current or former member: for owners who manage the person in all their projects."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.confirmation import require_confirmation
from dashboard.access import form_view
from dashboard.render import project_page
from people.members import LastOwner
from people.models import Membership
from people.roles import Action, NotAllowed
from privacy import erasure


class ErasePersonForm(forms.Form):
    username = forms.CharField(
        label=gettext_lazy("Username"), max_length=150, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )


@require_confirmation()
@form_view(Action.CLOSE)
def erase_member(request: HttpRequest, actor: Membership, member: int) -> HttpResponse:
    """Explain the effect of an erasure; erase the person after their username is typed."""
    rows = Membership.objects.filter(project=actor.project).select_related("user", "project")
    target = get_object_or_404(rows, pk=member)
    if not erasure.may_erase(membership=target, by=actor.user):
        raise NotAllowed(_("You can’t erase this person: you don’t own all their projects. Ask the operator."))
    form = ErasePersonForm(request.POST or None)
    if form.is_valid() and form.cleaned_data["username"] != target.user.username:
        form.add_error("username", _("The username does not match. Type it as shown."))
    if form.is_valid():
        try:
            erased = erasure.erase_member(membership=target, by=actor.user, now=timezone.now())
        except LastOwner as error:
            form.add_error(None, str(error))
        else:
            _report(request, erased)
            return redirect("dashboard:members", actor.project.slug)
    status = 422 if form.is_bound else 200
    return project_page(
        request, actor, "dashboard/erase_person.html", here="members", status=status, member=target, form=form
    )


def _report(request: HttpRequest, erased: erasure.ErasedPerson) -> None:
    messages.success(request, _("The person was erased. Their labels are kept under the pseudonym."))
    if erased.rebuilt_snapshots:
        names = ", ".join(erased.rebuilt_snapshots)
        messages.info(
            request, _("These snapshots are being rewritten to remove the person’s text: %(names)s.") % {"names": names}
        )
