"""Brings a rater to another stage, and says so in the log."""

import datetime as dt

from accounts.models import User
from events import log
from labeling.models import Rater
from labeling.models.rater import RaterStage


def move(*, rater: Rater, to: RaterStage, now: dt.datetime) -> None:
    """The caller holds the rater's row. No time is kept: what made the rater move has its own."""
    rater.stage = to
    rater.save(update_fields=["stage"])


def say(what: str, rater: Rater, by: User | None, now: dt.datetime, **detail: object) -> None:
    log.append(what=what, by=by, now=now, project=rater.project_id, subject=f"rater:{rater.pk}", detail=detail)
