"""Audit events of a trace as text for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import security_log
from dashboard.trace_steps import StepNumberer, describe_error_places
from events.models import Event
from labeling.models import Trace
from labeling.models.assignment import FinishReason
from labeling.models.gold import GoldUse
from labeling.quality import settlements

_EVENT_LABELS = {
    "submission.made": gettext_lazy("Submitted"),
    "trace.given_up": gettext_lazy("Given up"),
    "trace.not_settled": gettext_lazy("Problem reported as bad"),
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
    "trace.adjudication_assigned": gettext_lazy("Adjudication assigned"),
    "trace.chosen": gettext_lazy("Moved to the front of the queue"),
    "trace.unchosen": gettext_lazy("Returned to its usual place in the queue"),
    "trace.contested": gettext_lazy("Contested"),
    "trace.decided": gettext_lazy("Adjudicated"),
    "trace.reopened": gettext_lazy("Reopened"),
    "trace.sent_back": gettext_lazy("Sent back for another label"),
    "trace.withdrawn": gettext_lazy("Withdrawn"),
    "trace.reinstated": gettext_lazy("Reinstated"),
    "trace.made_by_hand": gettext_lazy("Steps changed by hand"),
    "trace.changed_in_preview": gettext_lazy("Steps changed by hand before the import"),
    "trace.replaced": gettext_lazy("Replaced by a trace with changed steps"),
    "trace.restored": gettext_lazy("Change of steps undone"),
    "writes.arrived_for_withdrawn_trace": gettext_lazy("Late ratings kept after the trace was withdrawn"),
    "writes.arrived_from_removed_rater": gettext_lazy("Late ratings kept after the annotator was removed"),
}


# The first word of an event's name, for filters.
AREA_LABELS = {
    "project": gettext_lazy("Project and settings"),
    "guideline": gettext_lazy("Guideline"),
    "member": gettext_lazy("Members"),
    "invitation": gettext_lazy("Invitations"),
    "message": gettext_lazy("Messages"),
    "rater": gettext_lazy("Annotators"),
    "screening": gettext_lazy("Screening"),
    "training": gettext_lazy("Training"),
    "assignment": gettext_lazy("Assignments"),
    "submission": gettext_lazy("Submissions"),
    "correction": gettext_lazy("Corrections"),
    "trace": gettext_lazy("Traces"),
    "labels": gettext_lazy("Labels set aside"),
    "group": gettext_lazy("Groups"),
    "rule": gettext_lazy("Rules"),
    "gold": gettext_lazy("Gold"),
    "import": gettext_lazy("Imports"),
    "snapshot": gettext_lazy("Snapshots and downloads"),
    "prm": gettext_lazy("PRMs"),
    "generation": gettext_lazy("Generations"),
    "judge": gettext_lazy("Judges"),
    "judge_run": gettext_lazy("Judge runs"),
    "canaries": gettext_lazy("Gaming canaries"),
    "arena": gettext_lazy("Arena"),
    "machine_budget": gettext_lazy("Judge cost caps"),
    "live": gettext_lazy("Live labeling"),
    "problems": gettext_lazy("Problems"),
    "machine_license": gettext_lazy("Licenses of machines"),
    "consensus_route": gettext_lazy("Consensus routes"),
    "passport": gettext_lazy("Passports of machines"),
    "suggestions": gettext_lazy("Suggestions"),
    "visibility": gettext_lazy("Visibility conditions"),
    "scores": gettext_lazy("Scores"),
    "job": gettext_lazy("Jobs"),
    "webhook": gettext_lazy("Webhooks"),
    "download": gettext_lazy("Downloads"),
    "account": gettext_lazy("Accounts"),
    "user": gettext_lazy("Erased people"),
    "backup": gettext_lazy("Backups"),
}
_OTHER_LABELS = {
    **security_log.EVENT_LABELS,
    "arena.closed": gettext_lazy("Arena closed"),
    "arena.confirmed": gettext_lazy("Edit of the arena confirmed"),
    "arena.opened": gettext_lazy("Arena opened"),
    "arena.rejected": gettext_lazy("Edit of the arena rejected"),
    "backup.revocations_repeated": gettext_lazy("Access revoked again after a backup was restored"),
    "backup.restored": gettext_lazy("Backup restored"),
    "canaries.easier_to_fool": gettext_lazy("A version is easier to fool than the one before"),
    "canaries.frozen": gettext_lazy("Gaming canaries frozen"),
    "consensus_route.closed": gettext_lazy("Consensus route closed"),
    "consensus_route.opened": gettext_lazy("Consensus route opened"),
    "consent.given": gettext_lazy("Consent given"),
    "download.made": gettext_lazy("File downloaded"),
    "figures.drifted": gettext_lazy("Statistics corrected by the nightly check"),
    "generation.done": gettext_lazy("Generation finished"),
    "generation.judged": gettext_lazy("Generation evaluated"),
    "generation.started": gettext_lazy("Generation started"),
    "generation.stopped": gettext_lazy("Generation stopped"),
    "group.deleted": gettext_lazy("Group deleted"),
    "group.saved": gettext_lazy("Group saved"),
    "guideline.published": gettext_lazy("Guideline published"),
    "guideline.read": gettext_lazy("Guideline read"),
    "import.done": gettext_lazy("Import finished"),
    "import.undone": gettext_lazy("Import undone"),
    "invitation.accepted": gettext_lazy("Invitation accepted"),
    "invitation.made": gettext_lazy("Invitation created"),
    "invitation.revoked": gettext_lazy("Invitation revoked"),
    "job.failed": gettext_lazy("Job failed"),
    "job.asked": gettext_lazy("Job requested"),
    "judge.added": gettext_lazy("Judge added"),
    "live.added": gettext_lazy("Live policy added"),
    "live.closed": gettext_lazy("Live policy closed"),
    "live.opened": gettext_lazy("Live policy opened"),
    "problems.added": gettext_lazy("Problems added"),
    "judge_run.cancelled": gettext_lazy("Judge run canceled"),
    "judge_run.done": gettext_lazy("Judge run finished"),
    "judge_run.paused": gettext_lazy("Judge run paused"),
    "judge_run.resumed": gettext_lazy("Judge run resumed"),
    "judge_run.started": gettext_lazy("Judge run started"),
    "machine_budget.set": gettext_lazy("Judge cost caps changed"),
    "machine_license.ended": gettext_lazy("Machine’s license ended"),
    "machine_license.granted": gettext_lazy("Machine licensed"),
    "machine_license.returned": gettext_lazy("Traces settled by a machine returned to people"),
    "passport.expired": gettext_lazy("Machine’s passport expired"),
    "passport.issued": gettext_lazy("Machine’s passport issued"),
    "visibility.started": gettext_lazy("Visibility conditions turned on"),
    "visibility.stopped": gettext_lazy("Visibility conditions turned off"),
    "suggestions.started": gettext_lazy("Suggestions turned on"),
    "suggestions.stopped": gettext_lazy("Suggestions turned off"),
    "labels.restored": gettext_lazy("Labels restored"),
    "labels.set_aside": gettext_lazy("Labels set aside"),
    "lane.closed": gettext_lazy("Sampling source closed"),
    "member.began_rating": gettext_lazy("Started rating"),
    "member.joined": gettext_lazy("Joined the project"),
    "member.device_added": gettext_lazy("Signed link opened in another browser"),
    "member.device_released": gettext_lazy("Crowd worker’s browser allowed"),
    "member.device_shared": gettext_lazy("Second worker ID used in the same browser"),
    "member.device_waiting": gettext_lazy("Worker ID rejected: already used in another browser"),
    "member.left": gettext_lazy("Left the project"),
    "member.notices_chosen": gettext_lazy("Email notices changed"),
    "member.removed": gettext_lazy("Member removed"),
    "member.reset_link_made": gettext_lazy("Password link created"),
    "member.restored": gettext_lazy("Member restored"),
    "member.role_changed": gettext_lazy("Role changed"),
    "message.answered": gettext_lazy("Message answered"),
    "message.asked": gettext_lazy("Question asked"),
    "message.read": gettext_lazy("Message read"),
    "message.written": gettext_lazy("Message sent"),
    "prm.evaluated_on_file": gettext_lazy("PRM evaluated on a file"),
    "prm.gate_overridden": gettext_lazy("PRM promoted, overriding the gate"),
    "prm.made_current": gettext_lazy("PRM promoted"),
    "prm.registered": gettext_lazy("PRM registered"),
    "prm.rolled_back": gettext_lazy("PRM rolled back"),
    "problem.reported": gettext_lazy("Problem reported"),
    "project.archived": gettext_lazy("Project archived"),
    "project.budget_reached": gettext_lazy("Budget reached"),
    "project.budget_set": gettext_lazy("Budget changed"),
    "project.budget_warned": gettext_lazy("Budget 80% spent"),
    "project.changed": gettext_lazy("Settings changed"),
    "project.cloned": gettext_lazy("Project cloned"),
    "project.closed": gettext_lazy("Project closed"),
    "project.created": gettext_lazy("Project created"),
    "project.gold_bar_set": gettext_lazy("Gold threshold set"),
    "project.paused": gettext_lazy("Project paused"),
    "project.resumed": gettext_lazy("Project resumed"),
    "rater.admitted": gettext_lazy("Annotator admitted"),
    "rater.paused": gettext_lazy("Annotator paused"),
    "rater.proven": gettext_lazy("Annotator trusted"),
    "rater.resumed": gettext_lazy("Annotator resumed"),
    "raters.fitted": gettext_lazy("Rater model refitted"),
    "rule.made": gettext_lazy("Rule created"),
    "rule.stopped": gettext_lazy("Rule stopped"),
    "scores.pushed": gettext_lazy("Scores uploaded"),
    "screening.allowed_again": gettext_lazy("Screening attempt allowed"),
    "screening.begun_again": gettext_lazy("Screening restarted"),
    "screening.not_passed": gettext_lazy("Screening not passed"),
    "screening.passed": gettext_lazy("Screening passed"),
    "screening.set_taken": gettext_lazy("Screening set saved"),
    "selection.fell_back": gettext_lazy("Selection switched back to random"),
    "snapshot.built": gettext_lazy("Snapshot built"),
    "snapshot.rebuilt": gettext_lazy("Snapshot files rewritten"),
    "snapshot.delivered": gettext_lazy("Snapshot delivered"),
    "snapshot.delivery_asked": gettext_lazy("Delivery requested"),
    "snapshot.downloaded": gettext_lazy("Snapshot file downloaded"),
    "snapshot.ordered": gettext_lazy("Snapshot requested"),
    "statement.made": gettext_lazy("Dataset card edited"),
    "trace.tagged": gettext_lazy("Tag added"),
    "trace.untagged": gettext_lazy("Tag removed"),
    "training.asked_again": gettext_lazy("Retraining required"),
    "training.finished": gettext_lazy("Training finished"),
    "webhook.deleted": gettext_lazy("Webhook deleted"),
    "webhook.made": gettext_lazy("Webhook created"),
    "user.erased": gettext_lazy("Person erased"),
}


def label_event(what: str) -> str:
    """Return the words for an event; its name if it has none."""
    return str(_EVENT_LABELS.get(what) or _OTHER_LABELS.get(what) or what)


@dataclass(frozen=True)
class TraceEvent:
    event: Event
    by: str
    what: str
    detail: str


def describe_event(event: Event, by: str, number: StepNumberer) -> TraceEvent:
    return TraceEvent(
        event, by, label_event(event.what), ". ".join(part for part in _describe_details(event, number) if part)
    )


def describe_import(trace: Trace, n_labels: int) -> TraceEvent:
    """Describe how the trace came into the project. The log has one event for its whole file."""
    labels = ngettext("%(n)d imported label", "%(n)d imported labels", n_labels) % {"n": n_labels} if n_labels else ""
    source = trace.source.name if trace.source else ""
    added = Event(what="trace.added", at=trace.added_at)
    return TraceEvent(added, "", _("Added to the project"), ", ".join(part for part in (source, labels) if part))


def _describe_details(event: Event, number: StepNumberer) -> list[str]:
    detail = event.detail
    if event.what == "trace.contested":
        reason = detail.get("reason", "")
        return [str(settlements.RESOLUTION_REASONS.get(reason, reason)).rstrip(".")]
    if event.what == "gold.corrected":
        places = {each: describe_error_places(detail[each], number) for each in ("before", "after")}
        return [_("from %(before)s to %(after)s") % places]
    return [
        _describe_ending(detail),
        _describe_decision(event, number),
        _describe_step_changes(detail),
        str(GoldUse(detail["use"]).label) if detail.get("use") in GoldUse.values else "",
        str(detail.get("reason") or detail.get("note") or ""),
    ]


def _describe_step_changes(detail: Mapping[str, Any]) -> str:
    """Describe how the steps of a trace were changed, with the other trace."""
    other = next((detail[key] for key in ("of", "replaced_by", "instead_of") if detail.get(key)), None)
    changes = detail.get("changes", [])
    cuts, merged = sum(len(each["cuts"]) for each in changes), sum(each["merges"] for each in changes)
    parts = (
        _("trace %(n)d") % {"n": other} if other else "",
        ngettext("%(n)d split", "%(n)d splits", cuts) % {"n": cuts} if cuts else "",
        ngettext("%(n)d step merged", "%(n)d steps merged", merged) % {"n": merged} if merged else "",
    )
    return ", ".join(part for part in parts if part)


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
        return _("First error: %(place)s") % {"place": describe_error_places([event.detail["first_error"]], number)}
    return ""
