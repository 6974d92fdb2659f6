"""What a rater sees of a trace, as the work page's scripts read it. Three statements for a plain trace; nothing of
gold, arms, scores or other raters is in it."""

from collections import defaultdict
from typing import Any

from django.urls import reverse

from labeling.models import Assignment, Judgment, Option, Part, Turn
from labeling.models.assignment import AssignmentState
from labeling.models.trace import StepKind

_AGENT_KINDS = {StepKind.SYSTEM, StepKind.USER, StepKind.ACTION, StepKind.OBSERVATION}


def of(assignment_id: int) -> dict[str, Any]:
    assignment = Assignment.objects.select_related("project", "trace__problem").get(pk=assignment_id)
    steps = _steps(assignment.trace_id)
    is_agent = any(step["kind"] in _AGENT_KINDS for step in steps)
    if is_agent:
        _add_parts(assignment.trace_id, steps)
    return {
        **_head(assignment),
        "is_agent": is_agent,
        "problem": _problem(assignment),
        "steps": steps,
        "turns": _turns(assignment) if assignment.version else [],
    }


def _head(assignment: Assignment) -> dict[str, Any]:
    project = assignment.project
    return {
        "assignment": assignment.pk,
        "version": assignment.version,
        "revision": assignment.revision,
        "state": assignment.state,
        "is_correction": assignment.reopened_at is not None,
        "is_submitted": assignment.state == AssignmentState.SUBMITTED and assignment.reopened_at is None,
        "lease_ends_at": assignment.lease_ends_at,
        "protocol": project.protocol,
        "reveals_one_step_at_a_time": project.reveals_one_step_at_a_time,
        "asks_error_category": project.asks_error_category,
        "asks_reason": project.asks_reason,
        "asks_corrected_step": project.asks_corrected_step,
    }


def _problem(assignment: Assignment) -> dict[str, Any]:
    """What is shown was fixed when the trace was opened; before that, the project says it."""
    problem, saw = assignment.trace.problem, assignment.saw_reference_answer
    is_shown = assignment.project.shows_reference_answer if saw is None else saw
    return {
        "text": problem.text,
        "domain": problem.domain,
        "reference_answer": problem.reference_answer if is_shown else None,
    }


def _steps(trace_id: int) -> list[dict[str, Any]]:
    columns = ("step__position", "step__kind", "step__is_rateable", "position", "text")
    rows = Option.objects.filter(step__trace=trace_id).order_by("step__position", "position").values_list(*columns)
    steps: dict[int, dict[str, Any]] = {}
    for position, kind, is_rateable, option, text in rows:
        step = steps.setdefault(
            position, {"position": position, "kind": kind, "is_rateable": is_rateable, "options": []}
        )
        step["options"].append({"position": option, "text": text, "parts": []})
    return list(steps.values())


def _add_parts(trace_id: int, steps: list[dict[str, Any]]) -> None:
    parts = defaultdict(list)
    for part in Part.objects.filter(option__step__trace=trace_id).select_related("option__step").order_by("position"):
        place = (part.option.step.position, part.option.position)
        parts[place].append({"kind": part.kind, "text": part.text, "name": part.name, "url": _image_url(part)})
    for step in steps:
        for option in step["options"]:
            option["parts"] = parts[step["position"], option["position"]]


def _image_url(part: Part) -> str | None:
    return None if part.data is None else reverse("annotate:part", args=[part.pk])


def _turns(assignment: Assignment) -> list[dict[str, Any]]:
    turns = Turn.objects.filter(assignment=assignment, revision=assignment.revision)
    found: dict[int, dict[str, Any]] = {
        pk: {"step": step, "comment": comment, "judgments": []}
        for pk, step, comment in turns.order_by("step__position").values_list("pk", "step__position", "comment")
    }
    columns = ("turn_id", "option__position", "rating", "flagged", "category", "reason")
    rows = Judgment.objects.filter(turn__in=turns).order_by("turn__step__position", "option__position")
    for turn, *judged in rows.values_list(*columns):
        found[turn]["judgments"].append(dict(zip(_JUDGED, judged, strict=True)))
    return list(found.values())


_JUDGED = ("option", "rating", "flagged", "category", "reason")
