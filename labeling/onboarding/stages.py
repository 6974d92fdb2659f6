"""Brings a rater to another stage, and says so in the log."""

import datetime as dt

from accounts.models import User
from events import audit_log
from labeling.models import Rater
from labeling.models.rater import RaterStage


def set_stage(*, rater: Rater, to: RaterStage, now: dt.datetime) -> None:
    """The caller holds the rater's row. No time is kept: what made the rater move has its own."""
    rater.stage = to
    rater.save(update_fields=["stage"])


def log_rater_event(what: str, rater: Rater, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=rater.project_id, subject=f"rater:{rater.pk}", detail=detail)
