"""Trains the builtin PRM from a manifest's labels. The reserve stays out, whatever the manifest holds."""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from labeling.agreement.arrays import Bools
from prm import labels as labels_
from prm.backends import builtin
from prm.backends.builtin import Scorer, Seen
from prm.labels import Labels
from prm.texts import Text

BATCH = 500  # traces between two signs of life


class Training:
    """What has been read so far; `scorer()` when all of it is."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []
        self._wrong: list[Bools] = []
        self.n_traces = 0

    def read(self, labels: Labels) -> Iterator[int]:
        """Batch by batch; says how many traces have been read."""
        for start in range(0, len(labels.traces), BATCH):
            part = labels.keep(_between(start, start + BATCH, len(labels.traces)))
            self.add(labels_.read(part), part)
            yield self.n_traces

    def add(self, texts: Sequence[Text], part: Labels) -> None:
        kept, wrong = labels_.labelled_steps(texts, part.first_errors)
        self._seen.append(builtin.keep(builtin.see([text.asked for text in texts]), kept))
        self._wrong.append(wrong)
        self.n_traces += len(texts)

    def scorer(self) -> Scorer:
        if not self._seen:
            raise builtin.TooFewLabels("there is no settled trace outside the reserve")
        return builtin.train(builtin.together(self._seen), np.concatenate(self._wrong))


def digest(weights: bytes) -> str:
    return hashlib.sha256(weights).hexdigest()


def _between(start: int, end: int, n: int) -> Bools:
    places = np.arange(n)
    return np.asarray((places >= start) & (places < end))
