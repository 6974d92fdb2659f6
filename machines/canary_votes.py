"""Which gaming canaries a machine rater has not judged yet."""

from django.db.models import Exists, OuterRef, QuerySet

from machines.models import CanaryVerdict, Judge
from prm import canaries
from prm.models import GamingCanary


def select_missing(judge: Judge) -> QuerySet[GamingCanary]:
    """Return the canaries that this judge has not judged yet."""
    row = canaries.find_set(judge.project_id)
    if row is None:
        return GamingCanary.objects.none()
    if judge.prm is not None:
        return canaries.select_unscored(judge.prm, row)
    judged = CanaryVerdict.objects.filter(judge=judge, canary=OuterRef("pk"))
    return row.canaries.filter(~Exists(judged)).order_by("pk")
