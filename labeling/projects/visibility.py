"""Turn visibility conditions on and off, and hide what a rater must not see. Only this module changes VisibilityPlan.

At least a tenth of the work shows everything: hidden gold always does, and must not be recognizable by that.
"""

import datetime as dt
import secrets
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from events import audit_log
from labeling.models import (
    Assignment,
    Option,
    OptionPart,
    ProblemImage,
    Project,
    SuggestionPlan,
    VisibilityDraw,
    VisibilityPlan,
)
from labeling.models.trace import PartKind, StepKind
from labeling.models.visibility import VisibilityCondition

MIN_BOTH_SHARE = 0.1
_HIDDEN_KINDS = {
    VisibilityCondition.REASONING: {StepKind.ACTION, StepKind.OBSERVATION, StepKind.ANSWER},
    VisibilityCondition.ACTIONS: {StepKind.REASONING},
}
NOTICES: dict[str, Promise] = {
    VisibilityCondition.REASONING: gettext_lazy("Reasoning only: actions are hidden"),
    VisibilityCondition.ACTIONS: gettext_lazy("Actions only: reasoning is hidden"),
}


class VisibilityRefused(Exception):
    """The conditions cannot be turned on. The message is for the person who asked."""


def find_plan(project_id: int) -> VisibilityPlan | None:
    """Return the plan in force, otherwise the latest one."""
    plans = VisibilityPlan.objects.filter(project=project_id).select_related("began_by", "project")
    return plans.active().first() or plans.order_by("-pk").first()


def start_visibility(
    *,
    project: Project,
    reasoning_share: float,
    actions_share: float,
    by: User | None,
    now: dt.datetime,
    seed: str = "",
) -> VisibilityPlan:
    """Show only reasoning and only actions to these shares of the work. The plan replaces the one in force. `seed`
    determines the draws; without it a random one is used."""
    partial = reasoning_share + actions_share
    if not (reasoning_share >= 0 and actions_share >= 0 and 0 < partial <= 1 - MIN_BOTH_SHARE + 1e-9):
        raise VisibilityRefused(
            _("The shares must be above 0 together, and leave at least %(share)s of the work with everything visible.")
            % {"share": f"{MIN_BOTH_SHARE:.0%}"}
        )
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # one plan at a time
        if SuggestionPlan.objects.active().filter(project=project).exists():
            raise VisibilityRefused(_("Turn off suggestions first: they would show labels of hidden steps."))
        for earlier in VisibilityPlan.objects.active().filter(project=project):
            _end_plan(earlier, by, now)
        plan = VisibilityPlan.objects.create(
            project=project,
            reasoning_share=reasoning_share,
            actions_share=actions_share,
            seed=seed or secrets.token_hex(8),
            began_at=now,
            began_by=by,
        )
        detail = {"reasoning": reasoning_share, "actions": actions_share, "seed": plan.seed}
        _log_event("visibility.started", plan, by, now, **detail)
    return plan


def stop_visibility(*, plan: VisibilityPlan, by: User | None, now: dt.datetime) -> bool:
    """Draw no more conditions. Traces already assigned keep theirs. Return False if the plan has already ended."""
    with transaction.atomic():
        return _end_plan(plan, by, now)


def is_hidden(condition: str | None, kind: str) -> bool:
    """Return whether steps of this kind are hidden, and cannot be rated. `answer_sheet.sql` applies the same rule."""
    return condition in _HIDDEN_KINDS and kind in _HIDDEN_KINDS[VisibilityCondition(condition)]


def is_part_hidden(condition: str | None, kind: str, part_kind: str) -> bool:
    """Return whether a part of a step is hidden. The texts of an action, such as thoughts beside a call, are
    reasoning."""
    if kind == StepKind.ACTION and condition in _HIDDEN_KINDS:
        return (part_kind == PartKind.TEXT) != (condition == VisibilityCondition.REASONING)
    return is_hidden(condition, kind)


def hide_steps(steps: Iterable[dict[str, Any]], condition: str | None) -> list[dict[str, Any]]:
    """Return the visible steps of a work page's trace. What is hidden is removed, so that it never reaches a browser.
    An action with thoughts shows only these if actions are hidden, and only the rest if reasoning is."""
    visible = []
    for step in steps:
        is_mixed = step["kind"] == StepKind.ACTION and any(option["parts"] for option in step["options"])
        if condition in _HIDDEN_KINDS and is_mixed:
            step = _hide_parts(step, condition)
        elif is_hidden(condition, step["kind"]):
            continue
        if step["options"]:
            visible.append(step)
    return visible


def list_visible(options: QuerySet[Option], condition: str | None) -> list[Option]:
    """Return the visible options with their visible parts. Those of a step that is not rated are context."""
    if condition not in _HIDDEN_KINDS:
        return list(options.prefetch_related(Prefetch("parts", OptionPart.objects.with_images())))
    parts = OptionPart.objects.with_images()
    is_action, is_text = Q(option__step__kind=StepKind.ACTION), Q(kind=PartKind.TEXT)
    hidden = is_text if condition == VisibilityCondition.ACTIONS else ~is_text
    has_parts = Exists(OptionPart.objects.filter(option=OuterRef("pk")))
    rows = options.annotate(is_mixed=has_parts).prefetch_related(Prefetch("parts", parts.exclude(is_action & hidden)))
    visible: list[Option] = []
    for option in rows:
        step, shown = option.step, [part.text for part in option.parts.all()]
        step.is_rateable &= not is_hidden(condition, step.kind)
        if step.kind == StepKind.ACTION and option.is_mixed:
            option.text = "\n".join(shown)
            visible += [option] if shown else []
        elif not is_hidden(condition, step.kind):
            visible.append(option)
    return visible


def may_see_image(*, user_id: int, image_id: int) -> bool:
    """Return whether a trace that is or was assigned to the user shows the image. It may be hidden from the user in one
    trace and shown in another."""
    assigned = Assignment.objects.filter(rater__user=user_id)
    if ProblemImage.objects.filter(image=image_id, problem__traces__in=assigned.values("trace")).exists():
        return True
    parts = OptionPart.objects.filter(image=image_id, option__step__trace__in=assigned.values("trace"))
    places = list(parts.order_by().distinct().values_list("option__step__trace", "option__step__kind"))
    draws = VisibilityDraw.objects.filter(
        assignment__in=assigned, assignment__trace__in={trace for trace, _kind in places}
    )
    conditions: dict[int, set[str]] = {}
    for trace, condition in draws.values_list("assignment__trace", "condition"):
        conditions.setdefault(trace, set()).add(condition)
    return any(
        not any(is_part_hidden(condition, kind, PartKind.IMAGE) for condition in conditions.get(trace, ()))
        for trace, kind in places
    )


def _hide_parts(step: dict[str, Any], condition: str | None) -> dict[str, Any]:
    is_rateable = step["is_rateable"] and not is_hidden(condition, step["kind"])
    options = []
    for option in step["options"]:
        parts = [part for part in option["parts"] if not is_part_hidden(condition, step["kind"], part["kind"])]
        if parts:
            options.append({**option, "parts": parts, "text": "\n".join(part["text"] for part in parts)})
        elif is_rateable and not option["parts"]:
            options.append(option)
    return {**step, "options": options, "is_rateable": is_rateable}


def _end_plan(plan: VisibilityPlan, by: User | None, now: dt.datetime) -> bool:
    has_ended = VisibilityPlan.objects.active().filter(pk=plan.pk).update(ended_at=now)
    if has_ended:
        _log_event("visibility.stopped", plan, by, now)
    return bool(has_ended)


def _log_event(what: str, plan: VisibilityPlan, by: User | None, now: dt.datetime, **detail: object) -> None:
    audit_log.log_event(what=what, by=by, now=now, project=plan.project_id, subject=plan.subject, detail=detail)
