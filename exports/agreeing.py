"""How far the raters of a snapshot's own rows agree. Reads only.

The population is that of the project's headline (`labeling.quality.tallies`): the first two scheduled readings of a
trace, blind, in their first revision. Here both must be rows of the manifest; where a policy chose traces, the audit
slice alone counts.
"""

from typing import Any

from labeling.models import Manifest, ManifestRow, Tally
from labeling.quality import estimates, populations
from labeling.quality.tallied import Meetings

MOST_DOMAINS = 12


def of_rows(frozen: Manifest) -> dict[str, Any] | None:
    """None where no trace has both its readings among the rows."""
    within = _read_twice(frozen)
    drawn = populations.slice_of(frozen.project_id)
    if drawn is not None:
        within = sorted(set(within) & set(drawn))
    if not within:
        return None
    tallied = populations.read(project_id=frozen.project_id).only(within)
    meetings = tallied.meetings
    return {
        "steps": estimates.of_steps(tallied.all_steps(), with_bootstrap=True),
        "first_error": estimates.of_first_errors(meetings.reports(meetings.every())),
        "domains": _domains(meetings),
        "n_traces": len(meetings),
        "is_audit_slice": drawn is not None,
    }


def _read_twice(frozen: Manifest) -> list[int]:
    own = ManifestRow.objects.filter(manifest=frozen, submission__isnull=False)
    assignments = own.values("submission__assignment")
    tallied = Tally.objects.filter(project=frozen.project_id, trace__in=own.values("trace"))
    both = tallied.filter(first__in=assignments, second__in=assignments)
    return sorted(set(both.values_list("trace", flat=True)))


def _domains(meetings: Meetings) -> list[dict[str, Any]]:
    """Those with most traces first."""
    found = sorted(meetings.by("domain").items(), key=lambda each: (-len(each[1]), each[0]))
    return [
        {"key": key, "n_traces": len(rows), **estimates.of_first_errors(meetings.reports(rows))}
        for key, rows in found[:MOST_DOMAINS]
    ]
