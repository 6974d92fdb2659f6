"""Refuse a PostgreSQL that could lose what it has confirmed. `synchronous_commit` is pinned on each connection."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.utils.translation import gettext as _

import rawsql

_UNSAFE_SETTINGS = "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"


def describe_danger() -> str:
    """Return why a power failure could lose confirmed ratings; empty if it could not, or if the operator accepts it."""
    if settings.ACCEPTS_DATA_LOSS:
        return ""
    names = [name for (name,) in rawsql.fetch_rows(_UNSAFE_SETTINGS, [])]
    if not names:
        return ""
    return _(
        "PostgreSQL runs with %(names)s off, so a power failure could lose ratings that were saved. Turn it on, or set"
        " STEPMARK_ACCEPT_DATA_LOSS=yes."
    ) % {"names": ", ".join(names)}


def check_durability(
    app_configs: Any, databases: Sequence[str] | None = None, **options: Any
) -> list[checks.CheckMessage]:
    danger = describe_danger() if databases else ""
    return [checks.Error(danger, id="events.E001")] if danger else []
