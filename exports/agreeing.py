"""How far the raters of a snapshot's own rows agree. Reads only.

The population is that of the project's headline (`labeling.quality.tallies`): the first two scheduled readings of a
trace, blind, in their first revision. Here both must be rows of the manifest; where a policy chose traces, the audit
slice alone counts.
"""

from typing import Any

import numpy as np

from labeling.agreement.arrays import Bools
from labeling.models import Manifest, ManifestRow, Tally
from labeling.quality import estimates, populations
from labeling.quality.populations import Meetings

MOST_DOMAINS = 12


def of_rows(frozen: Manifest) -> dict[str, Any] | None:
    """None where no trace has both its readings among the rows."""
    within = _read_twice(frozen)
    drawn = populations.slice_of(frozen.project_id)
    if drawn is not None:
        within = sorted(set(within) & set(drawn))
    if not within:
        return None
    meetings = populations.of_first_errors(project_id=frozen.project_id, within=within)
    patterns = populations.of_steps(project_id=frozen.project_id, within=within).get((0,), populations.NOTHING)
    everything = np.ones(len(meetings.n_steps), dtype=np.bool_)
    return {
        "steps": estimates.of_steps(patterns, with_bootstrap=True),
        "first_error": _first_errors(meetings, everything),
        "domains": _domains(meetings),
        "n_traces": len(meetings.n_steps),
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
    keys = meetings.keys["domain"]
    found = [(str(key), np.asarray(keys == key)) for key in set(keys)]
    found.sort(key=lambda each: (-int(each[1].sum()), each[0]))
    return [
        {"key": key, "n_traces": int(chosen.sum()), **_first_errors(meetings, chosen)}
        for key, chosen in found[:MOST_DOMAINS]
    ]


def _first_errors(meetings: Meetings, chosen: Bools) -> dict[str, Any]:
    return estimates.of_first_errors(meetings.reports(chosen))
