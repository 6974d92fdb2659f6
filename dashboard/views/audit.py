"""The audit log of a project: who did what, and when. Downloads of data are in it, too."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts.confirmation import require_confirmation
from accounts.models import User
from dashboard import paging
from dashboard.access import membership_or_404, safe_view
from dashboard.event_filters import EventFilterForm, csv_download, load_names
from dashboard.event_labels import label_event
from dashboard.render import project_page
from events import audit_log
from events.models import Event
from labeling.models import Project
from people.models import Membership
from people.roles import Action

PAGE_SIZE = 50


class AuditForm(EventFilterForm):
    """An empty person is everyone; 0 is the platform itself."""

    person = forms.TypedChoiceField(label=_("Person"), required=False, coerce=int, empty_value=None)
    field_order = ("area", "person", "since", "until")

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = User.objects.filter(memberships__project=project).order_by("username")
        choices = [("", _("Everyone")), ("0", _("The platform")), *((user.pk, str(user)) for user in people)]
        self.fields["person"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField

    def filter_events(self, events: QuerySet[Event]) -> QuerySet[Event]:
        events = super().filter_events(events)
        person = self.cleaned_data.get("person") if self.is_valid() else None
        return events if person is None else events.filter(by=person or None)


@safe_view(Action.AUDIT)
def show_audit(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = AuditForm(request.GET, project=actor.project)
    events = Event.objects.filter(project=actor.project_id)
    page = paging.paginate(form.filter_events(events), request.GET, size=PAGE_SIZE, among=events)
    names = load_names(page.rows)
    return project_page(
        request,
        actor,
        "dashboard/audit.html",
        here="audit",
        form=form,
        rows=page,
        events=[(event, names.get(event.by, ""), label_event(event.what), _list_details(event)) for event in page.rows],
        download=request.GET.urlencode(),
    )


def _list_details(event: Event) -> list[tuple[str, object]]:
    return [(key, value) for key, value in event.detail.items() if value not in (None, "", [], {})]


@require_confirmation(is_download=True)
@require_safe
def download_audit(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Download the filtered events as CSV."""
    actor = membership_or_404(request, slug, Action.AUDIT)
    form = AuditForm(request.GET, project=actor.project)
    name = f"{slug}-audit.csv"
    audit_log.log_download(file=name, by=actor.user, now=timezone.now(), project=actor.project_id)
    return csv_download(form.filter_events(Event.objects.filter(project=actor.project_id)), name=name)
