"""The agreement page of a project."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import access, render
from dashboard.agreement import page
from labeling.models.rater_model import FitBasis
from labeling.quality.rater_model import load_current_fit
from people.roles import Action


@require_safe
@never_cache
def show_agreement(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    agreement = page.load_agreement(actor.project, actor, part=request.GET.get("of", ""))
    return render.project_page(
        request,
        actor,
        "dashboard/agreement.html",
        here="agreement",
        tables=agreement.tables if agreement else [],
        agreement=agreement,
        fit=load_current_fit(actor.project.pk),
        assisted_fit=load_current_fit(actor.project.pk, FitBasis.ASSISTED),
    )
