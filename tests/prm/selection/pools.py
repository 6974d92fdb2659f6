"""Generated pools."""

import numpy as np

from prm.selection.acquisitions import Pool


def make_pool(*, n: int = 30, seed: int = 0, problems: int | None = None, domains: int = 1) -> Pool:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 9, n)
    steps = int(lengths.sum())
    return Pool(
        lengths=lengths,
        hazards=random.beta(0.5, 3, steps),
        words=random.integers(3, 60, steps),
        characters=random.integers(10, 400, steps),
        problems=np.arange(n) if problems is None else random.integers(0, problems, n),
        domains=random.integers(0, domains, n),
        is_answer_wrong=(outcomes := random.integers(0, 3, n)) == 0,
        is_answer_right=outcomes == 1,
    )


def make_one_trace_pool(hazards: list[float]) -> Pool:
    steps = len(hazards)
    return Pool(
        lengths=np.array([steps]),
        hazards=np.array(hazards),
        words=np.full(steps, 10),
        characters=np.full(steps, 50),
        problems=np.zeros(1, dtype=np.int64),
        domains=np.zeros(1, dtype=np.int64),
        is_answer_wrong=np.ones(1, dtype=np.bool_),
        is_answer_right=np.zeros(1, dtype=np.bool_),
    )
