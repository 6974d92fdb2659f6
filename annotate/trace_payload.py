"""What a rater sees of a trace, as the work page's scripts read it. One statement for a plain trace; nothing of gold,
arms, scores or other raters is in it."""

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
    """One row each of assignment, project, trace and problem, and the steps as JSON."""

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
        **_head(row),
        "is_agent": is_agent,
        "problem": _problem(row),
        "after": None,
        "steps": steps,
        "turns": _turns(row) if row.version else [],
        **_onboarding_fields(row),
    }


def _head(row: _Row) -> dict[str, Any]:
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
    """Training and screening say what they are, and which page comes `after` the trace, if it is not the next one."""
    if row.is_correction:
        return {"after": reverse("annotate:history")}
    if row.purpose not in (AssignmentPurpose.TRAINING, AssignmentPurpose.SCREENING):
        return {}
    assignment = Assignment.objects.select_related("rater", "project").get(pk=row.assignment)
    number, total = onboarding.position_in_set(assignment)
    told = {"number": number, "total": total}
    if row.purpose == AssignmentPurpose.TRAINING:
        domain, after = _("Training, trace %(number)d of %(total)d"), reverse("annotate:lesson", args=[row.assignment])
    else:
        domain, after = (
            _("Screening, trace %(number)d of %(total)d"),
            _result_url(assignment) if number == total else "",
        )
    return {"problem": {**_problem(row), "domain": domain % told}, "after": after or None}


def _result_url(assignment: Assignment) -> str:
    return reverse("annotate:enter", args=[assignment.project.slug])


def _steps(rows: list[Any]) -> list[dict[str, Any]]:
    steps: dict[int, dict[str, Any]] = {}
    for position, kind, is_rateable, option, text in sorted(rows, key=_position_key):
        step = steps.setdefault(
            position, {"position": position, "kind": kind, "is_rateable": is_rateable, "options": []}
        )
        step["options"].append({"position": option, "text": text, "parts": []})
    return list(steps.values())


def _position_key(row: Any) -> tuple[int, int]:
    return row[0], row[3]


def _add_parts(trace_id: int, steps: list[dict[str, Any]]) -> None:
    parts = defaultdict(list)
    for part in (
        OptionPart.objects.filter(option__step__trace=trace_id).select_related("option__step").order_by("position")
    ):
        place = (part.option.step.position, part.option.position)
        parts[place].append({"kind": part.kind, "text": part.text, "name": part.name, "url": _image_url(part)})
    for step in steps:
        for option in step["options"]:
            option["parts"] = parts[step["position"], option["position"]]


def _image_url(part: OptionPart) -> str | None:
    return None if part.data is None else reverse("annotate:part", args=[part.pk])


def _turns(row: _Row) -> list[dict[str, Any]]:
    turns = StepReview.objects.filter(assignment=row.assignment, revision=row.revision)
    found: dict[int, dict[str, Any]] = {
        pk: {"step": step, "comment": comment, "written": written, "judgments": []}
        for pk, step, comment, written in turns.order_by("step__position").values_list(*_TURN)
    }
    columns = ("turn_id", "option__position", "rating", "flagged", "category", "reason")
    judgments = Judgment.objects.filter(turn__in=turns).order_by("turn__step__position", "option__position")
    for turn, *judged in judgments.values_list(*columns):
        found[turn]["judgments"].append(dict(zip(_JUDGED, judged, strict=True)))
    return list(found.values())


_JUDGED = ("option", "rating", "flagged", "category", "reason")
_TURN = ("pk", "step__position", "comment", "written_text")
