"""Both halves of a pair never go to the same rater. `claim.sql` applies the rule and records who got which half."""

from collections.abc import Collection

from labeling.models import Assignment, PairReader


def record_imported_readers(*, trace_ids: Collection[int]) -> None:
    """Record the labelers of a file as readers of the halves that they rated. Of a labeler with both halves, the first
    is recorded."""
    rated = Assignment.objects.filter(trace__in=trace_ids, trace__pairing__isnull=False)
    rated = rated.order_by("rater_id", "trace_id")
    rows = rated.values_list("rater_id", "trace__pairing__pair", "trace__pairing__half")
    PairReader.objects.bulk_create(
        (PairReader(rater_id=rater, pair=pair, half=half) for rater, pair, half in rows), ignore_conflicts=True
    )
