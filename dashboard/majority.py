"""The majority of the submissions of a trace in words, with its margin."""

from collections.abc import Iterable
from typing import Protocol

from django.utils.translation import gettext as _

from charts import number_format
from labeling.models import Assignment, Trace
from labeling.models.assignment import AssignmentPurpose
from labeling.models.rater import RaterKind
from labeling.models.trace import TraceKind
from labeling.quality import submitted_reports
from stats import label_votes


class MajorityVoter(Protocol):
    """A submission, with the number of the step that has its first error."""

    @property
    def assignment(self) -> Assignment: ...
    @property
    def report(self) -> submitted_reports.RevisionReport | None: ...
    @property
    def error(self) -> int | None: ...


def describe_majority(trace: Trace, voters: Iterable[MajorityVoter]) -> str:
    """Return one sentence, or "" without votes. Live traces have none: no two submissions have the same steps."""
    if trace.kind == TraceKind.LIVE:
        return ""
    leading = label_votes.find_leading_place([voter.error for voter in voters if _counts_as_vote(voter)])
    if leading is None:
        return ""
    values = {"n": leading.n, "total": leading.n_votes, "margin": number_format.format_share(leading.margin)}
    if leading.is_tied:
        return _("No majority: no result has more than %(n)d of %(total)d votes (margin %(margin)s).") % values
    if leading.place is None:
        return _("Majority: no error, %(n)d of %(total)d votes (margin %(margin)s).") % values
    values["step"] = leading.place
    return _("Majority: first error at step %(step)d, %(n)d of %(total)d votes (margin %(margin)s).") % values


def _counts_as_vote(voter: MajorityVoter) -> bool:
    """Gold answers, machines, raters who saw scores, and submissions that ended early do not vote."""
    row = voter.assignment
    return (
        voter.report is not None
        and not voter.report.is_censored
        and row.purpose == AssignmentPurpose.WORK
        and not row.is_assisted
        and row.rater.kind != RaterKind.MACHINE
    )
