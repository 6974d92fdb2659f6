"""What a rater agrees to and reads before anything else, each version once and with its time."""

import datetime as dt

from django.db import transaction
from django.db.models import Model

from accounts.models import User
from events import audit_log
from labeling.models import Consent, ConsentText, Guideline, GuidelineAcknowledgment, Project, Rater


class VersionSuperseded(Exception):
    """Another version was published while this one was on the screen: it is to be read before anybody agrees to it."""


def give_consent(*, rater: Rater, text: ConsentText, by: User, now: dt.datetime) -> None:
    """The rater agrees to this version. Saying so twice changes nothing."""
    with transaction.atomic():
        _check_current(rater, consent_text=text)
        _, is_new = Consent.objects.get_or_create(rater=rater, text=text, defaults={"given_at": now})
        Rater.objects.filter(pk=rater.pk).update(agreed_text=text)
        rater.agreed_text = text
        if is_new:
            _log_agreement("consent.given", rater, text.version, by, now)


def acknowledge_guideline(*, rater: Rater, guideline: Guideline, by: User, now: dt.datetime) -> None:
    """The rater has read this version. Saying so twice changes nothing."""
    with transaction.atomic():
        _check_current(rater, guideline=guideline)
        _, is_new = GuidelineAcknowledgment.objects.get_or_create(
            rater=rater, guideline=guideline, defaults={"read_at": now}
        )
        Rater.objects.filter(pk=rater.pk).update(read_guideline=guideline)
        rater.read_guideline = guideline
        if is_new:
            _log_agreement("guideline.read", rater, guideline.version, by, now)


def _check_current(rater: Rater, **version: Model) -> None:
    """The project's row is held, so that nobody publishes in between."""
    project = Project.objects.select_for_update(no_key=True).filter(pk=rater.project_id, **version)
    if not project.exists():
        raise VersionSuperseded


def _log_agreement(what: str, rater: Rater, version: int, by: User, now: dt.datetime) -> None:
    detail = {"version": version}
    audit_log.log_event(what=what, by=by, now=now, project=rater.project_id, subject=f"rater:{rater.pk}", detail=detail)
