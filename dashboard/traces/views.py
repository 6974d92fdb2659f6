"""The list of traces, with its search."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import access, render
from dashboard.traces import page
from dashboard.traces.forms import TraceSearchForm
from people.roles import Action


@require_safe
@never_cache
def show_traces(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.READ)
    form = TraceSearchForm(request.GET)
    result = page.search_traces(actor.project, form, request.GET)
    return render.project_page(
        request, actor, "dashboard/traces.html", here="traces", result=result, rows=result.page, form=form
    )
