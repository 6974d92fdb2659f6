"""The strata of licenses: the domain and length of a trace, and whether the machine's label names an error. Pure.

Strata are fixed in advance, so that no stratum is chosen because its labels look good. Agreement with people comes from
traces with a consensus, weighed to represent the pool; the blind spots that people share come from hidden gold.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from labeling.quality.error_breakdowns import LENGTH_BUCKETS
from machines.passport_data import PassportTrace
from stats import machine_licenses
from stats.machine_licenses import StratumEvidence

PROMISES = (0.8, 0.85, 0.9, 0.95)


class Stratum(NamedTuple):
    domain: str
    shortest: int
    longest: int | None
    says_error: bool


def find_stratum(*, domain: str, n_steps: int, says_error: bool) -> Stratum:
    first, last = next((first, last) for first, last in LENGTH_BUCKETS if last is None or n_steps <= last)
    return Stratum(domain, first, last, says_error)


def build_strata(traces: Iterable[PassportTrace], weights: Mapping[int, float]) -> list[dict[str, Any]]:
    """Return the evidence of each stratum, and for each promise whether the machine keeps it there."""
    by_stratum: dict[Stratum, list[PassportTrace]] = defaultdict(list)
    for row in traces:
        if row.end is not None:
            key = find_stratum(domain=row.domain, n_steps=row.n_steps, says_error=row.end < row.n_steps)
            by_stratum[key].append(row)
    evidence = {key: _collect_evidence(rows, weights) for key, rows in by_stratum.items()}
    bounds = {promise: machine_licenses.bound_strata(evidence, promised=promise) for promise in PROMISES}
    described = []
    for key in sorted(evidence, key=lambda each: (each.domain, each.shortest, each.says_error)):
        known = bounds[PROMISES[0]][key]
        described.append(
            {
                "stratum": key._asdict(),
                "n_judged": len(by_stratum[key]),
                "n_people": known.n_people,
                "n_gold": known.n_gold,
                "agreement": known.agreement,
                "shared": known.shared,
                "bounds": [
                    {
                        "promised": promise,
                        "bound": bounds[promise][key].lower_bound,
                        "keeps": bounds[promise][key].keeps_promise,
                        "reason": bounds[promise][key].reason,
                    }
                    for promise in PROMISES
                ],
            }
        )
    return described


def _collect_evidence(rows: Sequence[PassportTrace], weights: Mapping[int, float]) -> StratumEvidence:
    labeled = [row for row in rows if row.reference is not None and not row.accepted and row.trace in weights]
    gold = [row for row in rows if row.accepted]
    return StratumEvidence(
        agrees=np.array([row.end == row.reference for row in labeled], dtype=np.bool_),
        problems=np.array([row.problem for row in labeled], dtype=np.int64),
        weights=np.array([weights[row.trace] for row in labeled], dtype=np.float64),
        is_shared=np.array([_is_shared(row) for row in gold], dtype=np.bool_),
        gold_problems=np.array([row.problem for row in gold], dtype=np.int64),
    )


def _is_shared(row: PassportTrace) -> bool:
    """Whether the machine is wrong on this gold, and people are not known to be right or wrong elsewhere."""
    if row.end in row.accepted:
        return False
    end, n = Counter(row.gold_answers).most_common(1)[0] if row.gold_answers else (row.end, 1)
    return end == row.end or 2 * n < len(row.gold_answers)
