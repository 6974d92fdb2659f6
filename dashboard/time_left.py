"""Remaining time as text."""

from django.utils.translation import gettext as _


def format_time_left(seconds: float) -> str:
    """Format an estimate in one unit, for example "about 5 min"."""
    if seconds < 90:
        return _("about %(n)d s") % {"n": max(round(seconds), 1)}
    if seconds < 5400:
        return _("about %(n)d min") % {"n": round(seconds / 60)}
    return _("about %(n)d h") % {"n": round(seconds / 3600)}
