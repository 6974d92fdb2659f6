"""Refuse a PostgreSQL that could lose confirmed writes.

The settings pin `synchronous_commit` on each connection, but `DATABASE_URL` or a connection pool may replace that.
Checked when `./run` starts, with every `migrate`, and by `/health/ready`.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.utils.translation import gettext as _

import rawsql

_UNSAFE_SETTINGS = """
SELECT name FROM unnest(ARRAY['fsync', 'full_page_writes', 'synchronous_commit']) AS name
WHERE current_setting(name) = 'off'"""


def describe_danger() -> str:
    """Return why a power failure could lose confirmed ratings, or "" if it could not or if the operator accepts the
    risk."""
    if settings.ACCEPTS_DATA_LOSS:
        return ""
    names = [name for (name,) in rawsql.fetch_rows(_UNSAFE_SETTINGS, [])]
    if not names:
        return ""
    return _(
        "PostgreSQL is running with %(names)s off, so a power failure could lose saved ratings. Turn %(names)s"
        " on, or set STEPMARK_ACCEPT_DATA_LOSS=yes."
    ) % {"names": ", ".join(names)}


def check_durability(
    app_configs: Any, databases: Sequence[str] | None = None, **options: Any
) -> list[checks.CheckMessage]:
    danger = describe_danger() if databases else ""
    return [checks.Error(danger, id="events.E001")] if danger else []
