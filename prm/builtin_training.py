"""Trains the builtin PRM from a manifest's labels. The reserve stays out, whatever the manifest holds."""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from prm import trace_labels as labels_
from prm.backends import builtin
from prm.backends.builtin import BuiltinScorer, StepFeatures
from prm.trace_labels import TraceLabels
from prm.trace_texts import TraceText
from stats.arrays import Bools

BATCH = 500  # traces between two signs of life


class BuiltinTraining:
    """What has been read so far; `scorer()` when all of it is."""

    def __init__(self) -> None:
        self._seen: list[StepFeatures] = []
        self._wrong: list[Bools] = []
        self.n_traces = 0

    def read(self, labels: TraceLabels) -> Iterator[int]:
        """Batch by batch; says how many traces have been read."""
        for start in range(0, len(labels.traces), BATCH):
            part = labels.keep(_range_mask(start, start + BATCH, len(labels.traces)))
            self.add(labels_.load_texts_of_labels(part), part)
            yield self.n_traces

    def add(self, texts: Sequence[TraceText], part: TraceLabels) -> None:
        kept, wrong = labels_.mask_labeled_steps(texts, part.first_errors)
        self._seen.append(builtin.take_steps(builtin.extract_features([text.asked for text in texts]), kept))
        self._wrong.append(wrong)
        self.n_traces += len(texts)

    def scorer(self) -> BuiltinScorer:
        if not self._seen:
            raise builtin.TooFewLabels("there is no settled trace outside the reserve")
        return builtin.train_scorer(builtin.concatenate_features(self._seen), np.concatenate(self._wrong))


def weights_digest(weights: bytes) -> str:
    return hashlib.sha256(weights).hexdigest()


def _range_mask(start: int, end: int, n: int) -> Bools:
    places = np.arange(n)
    return np.asarray((places >= start) & (places < end))
