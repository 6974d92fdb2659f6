"""The list of annotators."""

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import access, render
from dashboard.annotators import page
from dashboard.messages.page import find_unseen_answers
from people.roles import Action


@require_safe
@never_cache
def show_annotators(request: HttpRequest, slug: str) -> HttpResponse:
    actor = access.membership_or_404(request, slug, Action.PAUSE)
    filters = {name: request.GET.get(name, "")[:100] for name in ("choice", "q")}
    annotators = page.load_annotators(actor, timezone.now(), **filters)
    return render.project_page(
        request,
        actor,
        "dashboard/annotators.html",
        here="annotators",
        tables=[annotators.table, annotators.days],
        annotators=annotators,
        answered=find_unseen_answers(actor.project),
    )
