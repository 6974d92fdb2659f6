"""A project's selection settings: how batches are drawn and when generations start.

Only this module changes LoopRules.
"""

import datetime as dt
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling.models import Project
from prm.models import LoopRules
from prm.selection import acquisitions

RANDOM = "random"


class InvalidLoopRule(ValueError):
    """The settings would make drawing impossible. The message is for the person who saves them."""


def load_loop_rules(project: Project | int) -> LoopRules:
    """Return the saved settings, or unsaved defaults."""
    pk = project if isinstance(project, int) else project.pk
    return LoopRules.objects.filter(project=pk).first() or LoopRules(project_id=pk)


def effective_acquisition(rules: LoopRules) -> str:
    """Return the acquisition function for the next batch: random after a fallback, else the chosen one."""
    return RANDOM if rules.fell_back_at else rules.acquisition


def change_loop_rules(*, project: Project, by: User | None, now: dt.datetime, **changed: Any) -> LoopRules:
    """Save settings. Choosing an acquisition function ends a fallback to random."""
    rules = load_loop_rules(project)
    for name, value in changed.items():
        setattr(rules, name, value)
    try:
        acquisitions.find_acquisition(rules.acquisition)
    except acquisitions.UnknownAcquisition as error:
        raise InvalidLoopRule(str(error)) from None
    if not (rules.temperature > 0 and 0 < rules.domain_quota <= 1 and rules.batch_size >= 1):
        raise InvalidLoopRule(
            _("Enter a temperature above 0, a quota above 0 and at most 1, and a batch size of at least 1.")
        )
    rules.fell_back_at = None if "acquisition" in changed else rules.fell_back_at
    _save_rules(rules, "loop_rules.changed", by=by, now=now, detail=changed)
    return rules


def fall_back_to_random(*, project: Project, now: dt.datetime) -> None:
    """Draw at random from now on, because active selection showed no gain."""
    rules = load_loop_rules(project)
    if rules.fell_back_at is None:
        rules.fell_back_at = now
        _save_rules(rules, "selection.fell_back", by=None, now=now, detail={"from": rules.acquisition})


def _save_rules(rules: LoopRules, what: str, *, by: User | None, now: dt.datetime, detail: dict[str, Any]) -> None:
    with transaction.atomic():
        rules.save()
        audit_log.log_event(what=what, by=by, now=now, project=rules.project_id, subject="loop_rules", detail=detail)
