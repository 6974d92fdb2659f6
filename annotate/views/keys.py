"""The settings page for keyboard shortcuts."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts import users
from accounts.sessions import UserRequest
from annotate.keys import KeysForm


@require_http_methods(["GET", "HEAD", "POST"])
def edit_keys(request: UserRequest) -> HttpResponse:
    user = request.user
    if "reset" in request.POST:
        users.save_work_keys(user=user, keys={})
        messages.success(request, _("Keyboard shortcuts reset to defaults."))
        return redirect("annotate:keys")
    form = KeysForm(request.POST or None, user=user)
    if form.is_valid():
        users.save_work_keys(user=user, keys=form.changes())
        messages.success(request, _("Saved. The new shortcuts apply to every page you open from now on."))
        return redirect("annotate:keys")
    return render(request, "annotate/keys.html", {"form": form}, status=422 if form.is_bound else 200)
