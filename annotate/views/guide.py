"""The rules and the guideline, for the panel beside a trace."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.sessions import UserRequest
from labeling.projects import protocols, rating_rules, taxonomies
from labeling.projects.guidelines import rendering
from people import roles


@require_safe
@never_cache
def show_guide(request: UserRequest, slug: str) -> HttpResponse:
    project = get_object_or_404(roles.visible_projects(request.user).select_related("guideline"), slug=slug)
    context = {
        "project": project,
        "later_steps": protocols.describe_later_steps(project.protocol),
        "taxonomy": taxonomies.load_taxonomy(project),
        "rules": rating_rules.load_rating_rules(project),
        "guideline": project.guideline,
        "html": rendering.to_html(project.guideline.body) if project.guideline else "",
    }
    return render(request, "annotate/guide.html", context)
