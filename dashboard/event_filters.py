"""Filters of the two pages that list events, and their CSV."""

import csv
import datetime as dt
import json
from collections.abc import Iterable, Iterator
from itertools import islice

from django import forms
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from dashboard.event_labels import AREA_LABELS
from dashboard.figures import escape_formula
from events.models import Event

_CHUNK, _USER = 2000, "user:"
_HEADINGS = ("time", "person", "event", "subject", "detail")
_ORIGIN_HEADINGS = ("address", "browser")


class EventFilterForm(forms.Form):
    """Filters by area and day."""

    area = forms.ChoiceField(label=_("Area"), required=False, choices=[("", _("All areas")), *AREA_LABELS.items()])
    since = forms.DateField(label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label=_("To"), required=False, widget=forms.DateInput(attrs={"type": "date"}))

    def filter_events(self, events: QuerySet[Event]) -> QuerySet[Event]:
        """Return the events that match. An invalid form matches all."""
        chosen = self.cleaned_data if self.is_valid() else {}
        if area := chosen.get("area"):
            events = events.filter(what__startswith=f"{area}.")
        if since := chosen.get("since"):
            events = events.filter(at__gte=_midnight(since))
        if until := chosen.get("until"):
            events = events.filter(at__lt=_midnight(until + dt.timedelta(days=1)))
        return events

    @property
    def is_used(self) -> bool:
        return self.is_valid() and any(value is not None and value != "" for value in self.cleaned_data.values())


def _midnight(day: dt.date) -> dt.datetime:
    return timezone.make_aware(dt.datetime.combine(day, dt.time()))


def load_names(events: Iterable[Event]) -> dict[int | None, str]:
    """Return the names of the people who caused events."""
    users = User.objects.filter(pk__in={event.by for event in events if event.by})
    return {user.pk: str(user) for user in users}


def load_subject_names(events: Iterable[Event]) -> dict[str, str]:
    """Return the names of the people whom events are about, by subject."""
    subjects = {event.subject for event in events if event.subject.startswith(_USER)}
    users = User.objects.filter(pk__in=[subject.removeprefix(_USER) for subject in subjects])
    return {f"{_USER}{user.pk}": str(user) for user in users}


def csv_download(events: QuerySet[Event], *, name: str, has_origins: bool = False) -> StreamingHttpResponse:
    """Stream the events as CSV, newest first."""
    lines = _write_csv(events.order_by("-pk"), has_origins)
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)


class _Line:
    """A file for `csv.writer` that gives each line back."""

    def write(self, line: str) -> str:
        return line


def _write_csv(events: QuerySet[Event], has_origins: bool) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow([*_HEADINGS, *(_ORIGIN_HEADINGS if has_origins else ())])
    rows = events.iterator(chunk_size=_CHUNK)
    while chunk := list(islice(rows, _CHUNK)):
        names = load_names(chunk)
        for event in chunk:
            name = names.get(event.by, str(event.by)) if event.by else ""
            cells = [event.at.isoformat(), name, event.what, event.subject, json.dumps(event.detail)]
            if has_origins:
                origin = getattr(event, "origin", None)
                cells += [origin.address, origin.browser] if origin else ["", ""]
            yield writer.writerow([escape_formula(cell) for cell in cells])
