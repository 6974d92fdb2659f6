"""How long annotators take to label a trace, fitted to the active time of a manifest's submissions.

Step sizes are stored with the scores, so no text is read.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labeling.models import Manifest
from prm import score_encoding, trace_labels
from prm.models import PRM, Score
from prm.selection import cost
from prm.selection.cost import ReadingRates

_TRACES_PER_QUERY = 2000


@dataclass(frozen=True)
class ReadingPace:
    """`is_fitted` is false if too few submissions were timed and the rates are the defaults."""

    reading: ReadingRates
    n: int
    is_fitted: bool

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self.reading), "n": self.n, "is_fitted": self.is_fitted}


def fit_reading_pace(manifest: Manifest, prm: PRM) -> ReadingPace:
    times = trace_labels.load_reading_times(manifest)
    words = _load_cumulative_words(prm, sorted({time.trace for time in times}))
    rows = [
        (time.seconds, time.n_steps, words[time.trace][time.n_steps])
        for time in times
        if time.trace in words and time.n_steps < len(words[time.trace])
    ]
    if len(rows) < cost.MIN_TIMED_READINGS:
        return ReadingPace(ReadingRates(), len(rows), False)
    seconds, steps_read, words_read = np.array(rows, dtype=np.float64).T
    rates = cost.fit_reading_rates(
        seconds=seconds, steps_read=steps_read.astype(np.int64), words_read=words_read.astype(np.int64)
    )
    return ReadingPace(rates, len(rows), True)


def _load_cumulative_words(prm: PRM, traces: list[int]) -> dict[int, list[int]]:
    """Return, for each trace that this PRM has scored, the words of its first 0, 1, 2 … steps."""
    cumulative: dict[int, list[int]] = {}
    for start in range(0, len(traces), _TRACES_PER_QUERY):
        rows = Score.objects.filter(prm=prm, trace__in=traces[start : start + _TRACES_PER_QUERY])
        for trace, numbers in rows.values_list("trace_id", "numbers"):
            words = score_encoding.decode_scores([bytes(numbers)])[0][:, 1]
            cumulative[trace] = [0, *np.cumsum(words).astype(int).tolist()]
    return cumulative
