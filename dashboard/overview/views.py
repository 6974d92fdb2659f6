"""The overview of a project."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import access, render
from dashboard.annotators.page import count_flagged_annotators
from dashboard.overview import page, todo
from people.roles import Action

RECENT_WEEKS = 4  # the shorter period of the charts


@require_safe
@never_cache
def show_overview(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    weeks = RECENT_WEEKS if request.GET.get("weeks") == str(RECENT_WEEKS) else None
    overview = page.load_overview(actor.project, timezone.now(), weeks=weeks)
    n_flagged = count_flagged_annotators(actor.project, overview.stats) if overview else 0
    return render.project_page(
        request,
        actor,
        "dashboard/overview.html",
        here="overview",
        tables=[chart.table for chart in overview.charts.values()] if overview else [],
        overview=overview,
        todo=todo.load_todo(actor, is_new=overview is None, n_flagged=n_flagged),
        weeks=weeks,
    )
