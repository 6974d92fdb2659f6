"""Audit events of a trace as text for people."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from events.models import Event
from labeling.models.assignment import FinishReason
from labeling.models.gold import GoldUse
from labeling.quality import resolution_reasons

StepNumberer = Callable[[int], int]  # from a step's position to the number that people see

_EVENT_LABELS = {
    "submission.made": gettext_lazy("Submitted"),
    "trace.given_up": gettext_lazy("Given up"),
    "trace.not_settled": gettext_lazy("Problem reported as flawed"),
    "assignment.skipped": gettext_lazy("Skipped"),
    "assignment.released": gettext_lazy("Returned to the queue"),
    "assignment.end_known": gettext_lazy("Return confirmed by the annotator"),
    "assignment.reopened": gettext_lazy("Reopened for correction"),
    "correction.asked": gettext_lazy("Correction requested"),
    "correction.answered": gettext_lazy("Correction request answered"),
    "correction.discarded": gettext_lazy("Correction discarded"),
    "gold.made": gettext_lazy("Marked as gold"),
    "gold.corrected": gettext_lazy("Gold corrected"),
    "gold.retired": gettext_lazy("Gold retired"),
    "trace.contested": gettext_lazy("Contested"),
    "trace.decided": gettext_lazy("Adjudicated"),
    "trace.sent_back": gettext_lazy("Sent back for another label"),
    "trace.withdrawn": gettext_lazy("Withdrawn"),
    "trace.reinstated": gettext_lazy("Reinstated"),
    "writes.arrived_for_withdrawn_trace": gettext_lazy("Ratings received after the withdrawal, and kept"),
    "writes.arrived_from_removed_rater": gettext_lazy("Ratings received from a removed annotator, and kept"),
}


@dataclass(frozen=True)
class TraceEvent:
    event: Event
    by: str
    what: str
    detail: str


def describe_event(event: Event, by: str, number: StepNumberer) -> TraceEvent:
    what = str(_EVENT_LABELS.get(event.what, event.what))
    return TraceEvent(event, by, what, ". ".join(part for part in _describe_details(event, number) if part))


def _describe_details(event: Event, number: StepNumberer) -> list[str]:
    detail = event.detail
    if event.what == "trace.contested":
        reason = detail.get("reason", "")
        return [str(resolution_reasons.RESOLUTION_REASONS.get(reason, reason)).rstrip(".")]
    if event.what == "gold.corrected":
        places = {each: _describe_places(detail[each], number) for each in ("before", "after")}
        return [_("from %(before)s to %(after)s") % places]
    return [
        _describe_ending(detail),
        _describe_decision(event, number),
        _describe_gold_use(detail),
        str(detail.get("reason") or detail.get("note") or ""),
    ]


def _describe_ending(detail: Mapping[str, Any]) -> str:
    """Describe how a submission ended, with its revision and lateness."""
    reason, revision = detail.get("finish_reason"), detail.get("revision", 1)
    ending = str(FinishReason(reason).label) if reason in FinishReason.values else ""
    revised = _("revision %(n)d") % {"n": revision} if ending and revision > 1 else ""
    late = _("after the lease expired") if detail.get("was_late") else ""
    return ", ".join(part for part in (ending, revised, late) if part)


def _describe_decision(event: Event, number: StepNumberer) -> str:
    if event.what == "correction.answered":
        return _("corrected") if event.detail.get("was_corrected") else _("left unchanged")
    if event.what == "trace.decided" and "first_error" in event.detail:
        return _("First error: %(place)s") % {"place": _describe_places([event.detail["first_error"]], number)}
    return ""


def _describe_gold_use(detail: Mapping[str, Any]) -> str:
    return str(GoldUse(detail["use"]).label) if detail.get("use") in GoldUse.values else ""


def _describe_places(places: Sequence[int | None], number: StepNumberer) -> str:
    return ", ".join(_("no error") if place is None else _("step %(n)d") % {"n": number(place)} for place in places)
