"""A trace as the work page's scripts receive it, without gold, sampling source, scores or other raters' labels.

A plain trace takes one query."""

import datetime as dt
from collections import defaultdict
from typing import Any, NamedTuple

import orjson
from django.urls import reverse
from django.utils.translation import gettext as _

import rawsql
from labeling import onboarding
from labeling.models import Assignment, Judgment, OptionPart, StepReview
from labeling.models.assignment import AssignmentPurpose, AssignmentState
from labeling.models.trace import StepKind
from labeling.projects import protocols

_TRACE_SQL = rawsql.load_sql(__file__, "trace_payload.sql")
_AGENT_KINDS = {StepKind.SYSTEM, StepKind.USER, StepKind.ACTION, StepKind.OBSERVATION}


class _Row(NamedTuple):
    """The columns of trace_payload.sql, in its order."""

    assignment: int
    trace: int
    version: int
    revision: int
    state: str
    purpose: str
    is_correction: bool
    lease_ends_at: dt.datetime | None
    protocol: str
    reveals_one_step_at_a_time: bool
    asks_error_category: bool
    asks_reason: bool
    asks_corrected_step: bool
    text: str
    domain: str
    reference_answer: str | None
    shows_reference_answer: bool
    is_right: bool | None
    shows_final_verdict: bool
    has_parts: bool
    steps: str | None


def build_payload(assignment_id: int) -> dict[str, Any]:
    row = _Row(*rawsql.fetch_rows(_TRACE_SQL, {"assignment": assignment_id})[0])
    steps = _steps(orjson.loads(row.steps or "[]"))
    is_agent = any(step["kind"] in _AGENT_KINDS for step in steps)
    if row.has_parts:
        _add_parts(row.trace, steps)
    return {
        **_assignment_fields(row),
        "is_agent": is_agent,
        "problem": _problem(row),
        "after": None,
        "steps": steps,
        "turns": _turns(row) if row.version else [],
        **_onboarding_fields(row),
    }


def _assignment_fields(row: _Row) -> dict[str, Any]:
    return {
        "assignment": row.assignment,
        "version": row.version,
        "revision": row.revision,
        "state": row.state,
        "is_correction": row.is_correction,
        "is_submitted": row.state == AssignmentState.SUBMITTED and not row.is_correction,
        "lease_ends_at": row.lease_ends_at,
        "rule": protocols.RULES[row.protocol]._asdict(),
        "reveals_one_step_at_a_time": row.reveals_one_step_at_a_time,
        "asks_error_category": row.asks_error_category,
        "asks_reason": row.asks_reason,
        "asks_corrected_step": row.asks_corrected_step,
    }


def _problem(row: _Row) -> dict[str, Any]:
    return {
        "text": row.text,
        "domain": row.domain,
        "reference_answer": row.reference_answer if row.shows_reference_answer else None,
        "is_answer_right": row.is_right if row.shows_final_verdict else None,
    }


def _onboarding_fields(row: _Row) -> dict[str, Any]:
    """Return a label for training and screening, and the page that follows the trace, if it is not the next trace."""
    if row.is_correction:
        return {"after": reverse("annotate:history")}
    if row.purpose not in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
        return {}
    assignment = Assignment.objects.select_related("rater", "project").get(pk=row.assignment)
    number, total = onboarding.position_in_set(assignment)
    after: str | None
    if row.purpose == AssignmentPurpose.TRAINING:
        label, after = _("Training, trace %(number)d of %(total)d"), reverse("annotate:lesson", args=[row.assignment])
    else:
        label = _("Screening, trace %(number)d of %(total)d")
        after = reverse("annotate:enter", args=[assignment.project.slug]) if number == total else None
    return {"problem": {**_problem(row), "domain": label % {"number": number, "total": total}}, "after": after}


def _steps(rows: list[Any]) -> list[dict[str, Any]]:
    steps: dict[int, dict[str, Any]] = {}
    for position, kind, is_rateable, option, text in sorted(rows, key=lambda row: (row[0], row[3])):
        step = steps.setdefault(
            position, {"position": position, "kind": kind, "is_rateable": is_rateable, "options": []}
        )
        step["options"].append({"position": option, "text": text, "parts": []})
    return list(steps.values())


def _add_parts(trace_id: int, steps: list[dict[str, Any]]) -> None:
    parts = defaultdict(list)
    for part in (
        OptionPart.objects.filter(option__step__trace=trace_id).select_related("option__step").order_by("position")
    ):
        url = None if part.data is None else reverse("annotate:part", args=[part.pk])
        key = (part.option.step.position, part.option.position)
        parts[key].append({"kind": part.kind, "text": part.text, "name": part.name, "url": url})
    for step in steps:
        for option in step["options"]:
            option["parts"] = parts[step["position"], option["position"]]


def _turns(row: _Row) -> list[dict[str, Any]]:
    """Return the rater's reviews of the steps in the current revision, with their ratings."""
    reviews = StepReview.objects.filter(assignment=row.assignment, revision=row.revision)
    columns = reviews.order_by("step__position").values_list("pk", "step__position", "comment", "written_text")
    turns: dict[int, dict[str, Any]] = {
        pk: {"step": step, "comment": comment, "written": written, "judgments": []}
        for pk, step, comment, written in columns
    }
    judgments = Judgment.objects.filter(turn__in=reviews).order_by("turn__step__position", "option__position")
    for turn, option, *values in judgments.values_list("turn_id", "option__position", *_JUDGMENT_FIELDS):
        turns[turn]["judgments"].append({"option": option, **dict(zip(_JUDGMENT_FIELDS, values, strict=True))})
    return list(turns.values())


_JUDGMENT_FIELDS = ("rating", "flagged", "category", "reason")
