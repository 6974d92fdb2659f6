"""How long people take to read: the cost by which traces are weighed, from the active time of what a manifest holds.
Reads alone. Sizes of steps are kept with the scores, so that no text is read again."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labeling.models import Manifest
from prm import score_encoding, trace_labels
from prm.models import PRM, Score
from prm.selection import cost
from prm.selection.cost import ReadingRates

_CHUNK = 2000


@dataclass(frozen=True)
class ReadingPace:
    """`is_fitted` is false where too few readings were timed, and the rates are the usual ones."""

    reading: ReadingRates
    n: int
    is_fitted: bool

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self.reading), "n": self.n, "is_fitted": self.is_fitted}


def fit_reading_pace(manifest: Manifest, prm: PRM) -> ReadingPace:
    timed = trace_labels.load_reading_times(manifest)
    before = _cumulative_words(prm, sorted({trace for trace, _, _ in timed}))
    rows = [
        (seconds, steps, before[trace][steps])
        for trace, steps, seconds in timed
        if trace in before and steps < len(before[trace])
    ]
    if len(rows) < cost.MIN_TIMED_READINGS:
        return ReadingPace(ReadingRates(), len(rows), False)
    seconds, steps, words = np.array(rows, dtype=np.float64).T
    found = cost.fit_reading_rates(
        seconds=seconds, steps_read=steps.astype(np.int64), words_read=words.astype(np.int64)
    )
    return ReadingPace(found, len(rows), True)


def _cumulative_words(prm: PRM, traces: list[int]) -> dict[int, list[int]]:
    """Of each trace that this PRM has scored: the words of its first 0, 1, 2 … steps."""
    found: dict[int, list[int]] = {}
    for start in range(0, len(traces), _CHUNK):
        rows = Score.objects.filter(prm=prm, trace__in=traces[start : start + _CHUNK])
        for trace, kept in rows.values_list("trace_id", "numbers"):
            words = score_encoding.decode_scores([bytes(kept)])[0][:, 1]
            found[trace] = [0, *np.cumsum(words).astype(int).tolist()]
    return found
