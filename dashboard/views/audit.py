"""The audit log of a project: who did what, and when. Downloads of data are in it, too."""

import csv
import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from accounts.models import User
from dashboard import paging
from dashboard.access import membership_or_404, safe_view
from dashboard.event_labels import AREA_LABELS, label_event
from dashboard.figures import escape_formula
from dashboard.render import log_table_download, project_page
from events.models import Event
from labeling.models import Project
from people.models import Membership
from people.roles import Action

PAGE_SIZE = 50
_HEADINGS = ("time", "person", "event", "subject", "detail")


class AuditForm(forms.Form):
    """Filters. An empty person is everyone; 0 is the platform itself."""

    area = forms.ChoiceField(label=_("Area"), required=False, choices=[("", _("All areas")), *AREA_LABELS.items()])
    person = forms.TypedChoiceField(label=_("Person"), required=False, coerce=int, empty_value=None)
    since = forms.DateField(label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label=_("To"), required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = User.objects.filter(memberships__project=project).order_by("username")
        choices = [("", _("Everyone")), ("0", _("The platform")), *((user.pk, str(user)) for user in people)]
        self.fields["person"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField

    def filter_events(self, events: QuerySet[Event]) -> QuerySet[Event]:
        chosen = self.cleaned_data if self.is_valid() else {}
        if area := chosen.get("area"):
            events = events.filter(what__startswith=f"{area}.")
        if (person := chosen.get("person")) is not None:
            events = events.filter(by=person or None)
        if since := chosen.get("since"):
            events = events.filter(at__gte=_midnight(since))
        if until := chosen.get("until"):
            events = events.filter(at__lt=_midnight(until + dt.timedelta(days=1)))
        return events


def _midnight(day: dt.date) -> dt.datetime:
    return timezone.make_aware(dt.datetime.combine(day, dt.time()))


@safe_view(Action.AUDIT)
def show_audit(request: HttpRequest, actor: Membership) -> HttpResponse:
    form = AuditForm(request.GET, project=actor.project)
    events = Event.objects.filter(project=actor.project_id)
    page = paging.paginate(form.filter_events(events), request.GET, size=PAGE_SIZE, among=events)
    names = _load_names(page.rows)
    return project_page(
        request,
        actor,
        "dashboard/audit.html",
        here="audit",
        form=form,
        is_filtered=form.is_valid() and any(value is not None and value != "" for value in form.cleaned_data.values()),
        rows=page,
        events=[(event, names.get(event.by, ""), label_event(event.what)) for event in page.rows],
        download=request.GET.urlencode(),
    )


@require_safe
def download_audit(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Stream the filtered events as CSV, newest first."""
    actor = membership_or_404(request, slug, Action.AUDIT)
    form = AuditForm(request.GET, project=actor.project)
    events = form.filter_events(Event.objects.filter(project=actor.project_id)).order_by("-pk")
    names = {user.pk: str(user) for user in User.objects.filter(memberships__project=actor.project)}
    log_table_download(actor, "audit")
    disposition = f'attachment; filename="{slug}-audit.csv"'
    return StreamingHttpResponse(
        _write_csv(events, names),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": disposition, "Cache-Control": "no-store"},
    )


class _Line:
    """A file for `csv.writer` that gives each line back."""

    def write(self, line: str) -> str:
        return line


def _write_csv(events: QuerySet[Event], names: dict[int, str]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(_HEADINGS)
    for event in events.iterator(chunk_size=2000):
        name = names.get(event.by, str(event.by)) if event.by else ""
        row = (event.at.isoformat(), name, event.what, event.subject, json.dumps(event.detail))
        yield writer.writerow([escape_formula(value) for value in row])


def _load_names(events: Any) -> dict[int | None, str]:
    users = User.objects.filter(pk__in={event.by for event in events if event.by})
    return {user.pk: str(user) for user in users}
