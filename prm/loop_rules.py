"""How a project's traces are chosen. Alone changes LoopRules."""

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
    """Traces cannot be chosen like this."""


def load_loop_rules(project: Project | int) -> LoopRules:
    """Those that are kept, or the usual ones."""
    pk = project if isinstance(project, int) else project.pk
    return LoopRules.objects.filter(project=pk).first() or LoopRules(project_id=pk)


def effective_acquisition(rules: LoopRules) -> str:
    """The acquisition that a batch is drawn by: random after a fall-back, whatever was chosen."""
    return RANDOM if rules.fell_back_at else rules.acquisition


def change_loop_rules(*, project: Project, by: User | None, now: dt.datetime, **changed: Any) -> LoopRules:
    """A change of the acquisition ends a fall-back: somebody has looked at it."""
    rules = load_loop_rules(project)
    for name, value in changed.items():
        setattr(rules, name, value)
    try:
        acquisitions.find_acquisition(rules.acquisition)
    except acquisitions.UnknownAcquisition as error:
        raise InvalidLoopRule(str(error)) from None
    if not (rules.temperature > 0 and 0 < rules.domain_quota <= 1 and rules.batch_size >= 1):
        raise InvalidLoopRule(_("A batch needs a temperature above 0, a quota in (0, 1] and at least one trace."))
    rules.fell_back_at = None if "acquisition" in changed else rules.fell_back_at
    _save_rules(rules, "loop_rules.changed", by=by, now=now, detail=changed)
    return rules


def fall_back_to_random(*, project: Project, now: dt.datetime) -> None:
    """Choosing did not pay for three generations: draw at random, and say so."""
    rules = load_loop_rules(project)
    if rules.fell_back_at is None:
        rules.fell_back_at = now
        _save_rules(rules, "selection.fell_back", by=None, now=now, detail={"from": rules.acquisition})


def _save_rules(rules: LoopRules, what: str, *, by: User | None, now: dt.datetime, detail: dict[str, Any]) -> None:
    with transaction.atomic():
        rules.save()
        audit_log.log_event(what=what, by=by, now=now, project=rules.project_id, subject="loop_rules", detail=detail)
