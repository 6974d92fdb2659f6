"""The security log of the platform, for operators: logins, passwords, tokens, roles and downloads, with addresses."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django import forms
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts import security_log
from accounts.confirmation import require_confirmation
from accounts.models import User
from dashboard import paging
from dashboard.event_filters import EventFilterForm, csv_download, load_names, load_subject_names
from dashboard.event_labels import AREA_LABELS, label_event
from events import audit_log
from events.models import Event
from formats import integers

PAGE_SIZE = 50
_AREAS = ("account", "user", "member", "invitation", "download", "snapshot", "backup")


class SecurityFilterForm(EventFilterForm):
    person = forms.CharField(label=_("Username or email address"), required=False, max_length=254)
    field_order = ("area", "person", "since", "until")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", _("All areas")), *((area, AREA_LABELS[area]) for area in _AREAS)]
        self.fields["area"].choices = choices  # type: ignore[attr-defined]  # it is a ChoiceField

    def filter_events(self, events: QuerySet[Event]) -> QuerySet[Event]:
        events = super().filter_events(events)
        person = self.cleaned_data.get("person") if self.is_valid() else ""
        return security_log.find_events_of_person(events, person) if person else events


def operator_view(view: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Decorate a page for operators: accounts that `manage.py make_owner` created."""

    @wraps(view)
    def checked(request: HttpRequest) -> HttpResponseBase:
        if not cast(User, request.user).is_staff:
            raise PermissionDenied(_("Only operators can open the security log."))
        return view(request)

    return require_safe(never_cache(checked))


@operator_view
def show_security_log(request: HttpRequest) -> HttpResponse:
    form, events = SecurityFilterForm(request.GET), security_log.list_security_events()
    page = paging.paginate(form.filter_events(events), request.GET, size=PAGE_SIZE, among=events)
    names, subjects = load_names(page.rows), load_subject_names(page.rows)
    context = {
        "form": form,
        "rows": page,
        "events": [
            (event, names.get(event.by, ""), label_event(event.what), subjects.get(event.subject, event.subject))
            for event in page.rows
        ],
        "download": request.GET.urlencode(),
    }
    return render(request, "dashboard/security.html", context)


@require_confirmation(is_download=True)
@operator_view
def download_security_log(request: HttpRequest) -> HttpResponseBase:
    """Download the filtered events as CSV, or with `?format=jsonl` as JSON lines, from `?after=<id>` on."""
    events = SecurityFilterForm(request.GET).filter_events(security_log.list_security_events())
    now, is_json = timezone.now(), request.GET.get("format") == "jsonl"
    name = "security-log.jsonl" if is_json else "security-log.csv"
    audit_log.log_download(file=name, by=cast(User, request.user), now=now)
    if not is_json:
        return csv_download(events, name=name, has_origins=True)
    lines = security_log.stream_json_lines(events, after=integers.parse_integer(request.GET.get("after")) or 0, now=now)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type="application/x-ndjson", headers=headers)
