"""Both halves of a pair never go to the same person. `claim.sql` applies the rule to raters and records who got which
half; people who judge the labels of others reserve the half that they read."""

from collections.abc import Collection

from django.db.models import Exists, OuterRef, Q

from accounts.models import User
from labeling.models import Assignment, PairedTrace, PairReader, PairReviewer, Rater, Trace


def record_imported_readers(*, trace_ids: Collection[int]) -> None:
    """Record the labelers of a file as readers of the halves that they rated. Of a labeler with both halves, the first
    is recorded."""
    rated = Assignment.objects.filter(trace__in=trace_ids, trace__pairing__isnull=False)
    rated = rated.order_by("rater_id", "trace_id")
    rows = rated.values_list("rater_id", "trace__pairing__pair", "trace__pairing__half")
    PairReader.objects.bulk_create(
        (PairReader(rater_id=rater, pair=pair, half=half) for rater, pair, half in rows), ignore_conflicts=True
    )


def reserve_half(*, trace: Trace, user: User) -> bool:
    """Record that this person reads a trace in order to judge it. Return False if the other half is theirs."""
    own: PairedTrace | None = getattr(trace, "pairing", None)
    if own is None:
        return True
    rater = Rater.objects.filter(project=own.project_id, user=user).first()
    as_reviewer = PairReviewer.objects.filter(project=own.project_id, user=user, pair=own.pair)
    as_rater = PairReader.objects.filter(rater=rater, pair=own.pair)
    if as_rater.exclude(half=own.half).exists():
        return False
    reviewed = PairReviewer(project_id=own.project_id, user=user, pair=own.pair, half=own.half)
    PairReviewer.objects.bulk_create([reviewed], ignore_conflicts=True)
    if as_reviewer.exclude(half=own.half).exists():
        return False
    if rater is not None:
        PairReader.objects.bulk_create([PairReader(rater=rater, pair=own.pair, half=own.half)], ignore_conflicts=True)
    return not as_rater.exclude(half=own.half).exists()  # a claim may have been faster


def record_reviewed_halves(*, rater: Rater) -> None:
    """Record the halves that a new rater read as a reviewer."""
    rows = PairReviewer.objects.filter(project=rater.project_id, user=rater.user_id).values_list("pair", "half")
    PairReader.objects.bulk_create(
        (PairReader(rater=rater, pair=pair, half=half) for pair, half in rows), ignore_conflicts=True
    )


def is_other_half(user: User) -> Q:
    """Return the condition that the other half of the pair of a row's `trace` is this person's."""
    given = PairReader.objects.filter(
        rater__user=user, rater__project=OuterRef("trace__project"), pair=OuterRef("trace__pairing__pair")
    )
    reviewed = PairReviewer.objects.filter(
        user=user, project=OuterRef("trace__project"), pair=OuterRef("trace__pairing__pair")
    )
    other = {"half": OuterRef("trace__pairing__half")}
    return Q(Exists(given.exclude(**other))) | Q(Exists(reviewed.exclude(**other)))


def may_read_traces(user: User) -> Q:
    """Return the condition that a trace is no half of a pair, or the half of this person."""
    pair = {"pair": OuterRef("pairing__pair"), "half": OuterRef("pairing__half")}
    given = PairReader.objects.filter(rater__user=user, rater__project=OuterRef("project"), **pair)
    reviewed = PairReviewer.objects.filter(user=user, project=OuterRef("project"), **pair)
    return Q(pairing=None) | Exists(given) | Exists(reviewed)
