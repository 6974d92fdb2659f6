"""What most readings of a trace say, in words, with its margin. Reads nothing."""

from collections.abc import Iterable
from typing import Protocol

from django.utils.translation import gettext as _

from charts import number_format
from labeling.models import Assignment, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterKind
from labeling.models.trace import TraceKind
from labeling.quality import submitted_readings
from stats import label_votes


class MajorityVoter(Protocol):
    """One reading with the number of the step that it saw the first error in."""

    @property
    def assignment(self) -> Assignment: ...
    @property
    def report(self) -> submitted_readings.RevisionReport | None: ...
    @property
    def error(self) -> int | None: ...


def describe_majority(trace: Trace, read: Iterable[MajorityVoter]) -> str:
    """Of the readings that have a vote; nothing where none has, or where no two are of the same steps."""
    if trace.kind == TraceKind.LIVE:
        return ""
    found = label_votes.find_leading_place([each.error for each in read if _counts_as_vote(each)])
    if found is None:
        return ""
    seen = {"n": found.n, "of": found.n_votes, "margin": number_format.format_share(found.margin)}
    if found.is_tied:
        return _("No majority: no place is named by more than %(n)d of %(of)d readings, margin %(margin)s.") % seen
    if found.place is None:
        return _("Majority: no error, by %(n)d of %(of)d readings, margin %(margin)s.") % seen
    seen["step"] = found.place
    return _("Majority: first error at step %(step)d, by %(n)d of %(of)d readings, margin %(margin)s.") % seen


def _counts_as_vote(each: MajorityVoter) -> bool:
    """Whoever was measured by it, saw scores, is a machine or was cut off names no place that counts."""
    row = each.assignment
    has_told = each.report is not None and not each.report.is_censored
    return (
        has_told
        and row.purpose == AssignmentPurpose.WORK
        and not row.is_assisted
        and row.rater.kind != RaterKind.MACHINE
    )
