"""Consent and guideline: each rater agrees to or reads each version once, with its time."""

import datetime as dt

from django.db import transaction
from django.db.models import Model

from accounts.models import User
from labeling import raters
from labeling.models import Consent, ConsentText, Guideline, GuidelineAcknowledgment, Project, Rater


class VersionSuperseded(Exception):
    """A newer version was published while this one was on screen."""


def give_consent(*, rater: Rater, text: ConsentText, by: User, now: dt.datetime) -> None:
    """Record that the rater agrees to this version. Repeating it changes nothing. Raises VersionSuperseded."""
    with transaction.atomic():
        _check_current(rater, consent_text=text)
        _, is_new = Consent.objects.get_or_create(rater=rater, text=text, defaults={"given_at": now})
        Rater.objects.filter(pk=rater.pk).update(agreed_text=text)
        rater.agreed_text = text
        if is_new:
            raters.log_rater_event("consent.given", rater, by, now, version=text.version)


def acknowledge_guideline(*, rater: Rater, guideline: Guideline, by: User, now: dt.datetime) -> None:
    """Record that the rater has read this version. Repeating it changes nothing. Raises VersionSuperseded."""
    with transaction.atomic():
        _check_current(rater, guideline=guideline)
        _, is_new = GuidelineAcknowledgment.objects.get_or_create(
            rater=rater, guideline=guideline, defaults={"read_at": now}
        )
        Rater.objects.filter(pk=rater.pk).update(read_guideline=guideline)
        rater.read_guideline = guideline
        if is_new:
            raters.log_rater_event("guideline.read", rater, by, now, version=guideline.version)


def _check_current(rater: Rater, **version: Model) -> None:
    """Lock the project, so that no version is published in the meantime."""
    project = Project.objects.select_for_update(no_key=True).filter(pk=rater.project_id, **version)
    if not project.exists():
        raise VersionSuperseded
