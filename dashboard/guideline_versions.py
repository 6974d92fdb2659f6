"""Tell a lead that a change of settings has published the next version of the guideline."""

from django.contrib import messages
from django.http import HttpRequest
from django.utils.translation import gettext as _

from labeling.models import Project


def report_new_version(request: HttpRequest, project: Project, *, before: int | None) -> None:
    """Add a message if the project has another guideline than the one with the id `before`."""
    if project.guideline is not None and project.guideline_id != before:
        message = _(
            "Version %(n)d of the guideline is published, because annotators are asked something else. They must"
            " confirm it before their next trace."
        )
        messages.info(request, message % {"n": project.guideline.version})
