"""Turn suggestions on and off: whether some raters see a machine's labels. Only this module changes SuggestionPlan.

They are off by default. At least a tenth of the work stays blind, as the control group that every effect is compared
with.
"""

import datetime as dt
import secrets

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from labeling.models import Project, Rater, SuggestionPlan, VisibilityPlan
from labeling.models.rater import RaterKind
from labeling.models.suggestion import SuggestionEnd

MIN_BLIND_SHARE = 0.1


class SuggestionsRefused(Exception):
    """The suggestions cannot be turned on. The message is for the person who asked."""


def find_plan(project_id: int, plan: int | None = None) -> SuggestionPlan | None:
    """Return the plan with this id; without an id the plan in force, otherwise the latest one."""
    plans = SuggestionPlan.objects.filter(project=project_id).select_related("machine", "began_by", "project")
    if plan is not None:
        return plans.filter(pk=plan).first()
    return plans.active().first() or plans.order_by("-pk").first()


def start_suggestions(
    *,
    project: Project,
    machine: Rater,
    reveal_share: float,
    suggest_share: float,
    by: User | None,
    now: dt.datetime,
    seed: str = "",
) -> SuggestionPlan:
    """Show the labels of a machine to these shares of the work. The plan replaces the one in force. `seed` determines
    the draws; without it a random one is used."""
    exposed = reveal_share + suggest_share
    if machine.project_id != project.pk or machine.kind != RaterKind.MACHINE:
        raise SuggestionsRefused(_("Choose a machine rater of this project."))
    if not (reveal_share >= 0 and suggest_share >= 0 and 0 < exposed <= 1 - MIN_BLIND_SHARE + 1e-9):
        raise SuggestionsRefused(
            _("The shares must be above 0 together, and leave at least %(share)s of the work blind.")
            % {"share": f"{MIN_BLIND_SHARE:.0%}"}
        )
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # one plan at a time
        if VisibilityPlan.objects.active().filter(project=project).exists():
            raise SuggestionsRefused(_("Turn off visibility conditions first: suggestions would show hidden steps."))
        for earlier in SuggestionPlan.objects.active().filter(project=project):
            _end_plan(earlier, SuggestionEnd.CHANGED, by, now)
        plan = SuggestionPlan.objects.create(
            project=project,
            machine=machine,
            reveal_share=reveal_share,
            suggest_share=suggest_share,
            seed=seed or secrets.token_hex(8),
            began_at=now,
            began_by=by,
        )
        detail = {"machine": machine.machine, "reveal": reveal_share, "suggest": suggest_share, "seed": plan.seed}
        _log_event("suggestions.started", plan, by, now, **detail)
    return plan


def stop_suggestions(
    *, plan: SuggestionPlan, because: SuggestionEnd, by: User | None, now: dt.datetime, **evidence: object
) -> bool:
    """Show the labels to no one from now on. Return False if the plan has already ended."""
    with transaction.atomic():
        return _end_plan(plan, because, by, now, **evidence)


def _end_plan(
    plan: SuggestionPlan, because: SuggestionEnd, by: User | None, now: dt.datetime, **evidence: object
) -> bool:
    has_ended = SuggestionPlan.objects.active().filter(pk=plan.pk).update(ended_at=now, ended_because=because)
    if has_ended:
        _log_event("suggestions.stopped", plan, by, now, machine=plan.machine.machine, why=because.value, **evidence)
    return bool(has_ended)


def _log_event(what: str, plan: SuggestionPlan, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=plan.project_id, subject=plan.subject, detail=detail)
