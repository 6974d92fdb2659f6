"""Readings that saw scores, and those of machines: they have no vote, and no place in what is learned of people. Reads
only."""

from django.db.models import Q, QuerySet

from labeling.models import Assignment
from labeling.models.assignment import Purpose
from labeling.models.rater import RaterKind
from labeling.quality import first_errors
from labeling.quality.posteriors import Seen

IS_ASSISTED = Q(is_assisted=True) | Q(rater__kind=RaterKind.MACHINE)


def rater_of(rater_id: int, kind: str) -> int:
    """Whoever saw scores errs otherwise than blind: under another number they are another rater."""
    return rater_id if kind == RaterKind.MACHINE else -rater_id


def readings(*, project_id: int, limit: int) -> list[Seen]:
    """The latest of a project."""
    rows = _submitted().filter(project=project_id).order_by("-pk")
    columns = ("pk", "submitted_revision", "trace_id", "rater_id", "rater__kind")
    found = {
        pk: (revision, trace, rater_of(rater, kind))
        for pk, revision, trace, rater, kind in rows.values_list(*columns)[:limit]
    }
    told = first_errors.of_revisions([(pk, one[0]) for pk, one in found.items()])
    return [Seen(*found[each.assignment_id][1:], each.position, each.n_passed, each.is_censored) for each in told]


def _submitted() -> QuerySet[Assignment]:
    return Assignment.objects.submitted().filter(IS_ASSISTED, purpose=Purpose.WORK)
