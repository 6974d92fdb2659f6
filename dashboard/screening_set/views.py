"""The screening set: proposing one, and adopting it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard import access, render
from dashboard.screening_set import page
from formats import integers
from labeling import onboarding
from labeling.quality.gold import InvalidGold
from people.models import Membership
from people.roles import Action


@require_safe
@never_cache
def show_screening_set(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.MAKE_GOLD)
    return _render_screening_set(request, actor)


@require_POST
def adopt_screening_set(request: HttpRequest, slug: str) -> HttpResponse:
    """Make the selected traces the screening set. Unselected traces leave it."""
    actor = access.membership_or_404(request, slug, Action.MAKE_GOLD)
    values = (integers.parse_integer(value, digits=18) for value in request.POST.getlist("trace"))
    trace_ids = [value for value in values if value is not None]
    try:
        change = onboarding.replace_screening_set(
            project=actor.project, trace_ids=trace_ids, by=actor.user, now=timezone.now()
        )
    except InvalidGold as error:
        return _render_screening_set(request, actor, status=422, problem=str(error))
    text = _("Saved. The screening set has %(n)d traces: %(added)d added, %(removed)d removed.")
    messages.success(request, text % {"n": change.n, "added": change.n_new, "removed": change.n_retired})
    return redirect("dashboard:gold", slug)


def _render_screening_set(
    request: HttpRequest, actor: Membership, *, status: int = 200, problem: str = ""
) -> HttpResponse:
    proposal = page.load_screening_set(actor.project, request.GET)
    return render.project_page(
        request, actor, "dashboard/screening_set.html", here="gold", status=status, proposal=proposal, problem=problem
    )
