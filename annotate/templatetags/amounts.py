"""Format durations and money for display."""

import datetime as dt

from django import template
from django.utils.translation import gettext as _

from labeling.projects.money import format_money

register = template.Library()
register.filter("money", format_money)


@register.filter
def duration(span: dt.timedelta) -> str:
    """Format in at most two units: "58 s", "1 min 48 s", "2 h 41 min"."""
    seconds = int(span.total_seconds())
    if seconds < 60:
        return _("%(s)d s") % {"s": seconds}
    if seconds < 3600:
        return _("%(m)d min %(s)02d s") % {"m": seconds // 60, "s": seconds % 60}
    return _("%(h)d h %(m)02d min") % {"h": seconds // 3600, "m": seconds % 3600 // 60}


@register.filter
def about(span: dt.timedelta) -> str:
    """Format a typical duration, rounded: "50 s", "1 min 50 s", "6 min"."""
    seconds = int(span.total_seconds())
    if seconds < 180:
        return duration(dt.timedelta(seconds=max(10, round(seconds, -1))))
    return _("%(m)d min") % {"m": round(seconds / 60)}
