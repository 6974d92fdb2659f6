"""ProcessBench's files as the shared data keeps them, and a small made-up set of labelled steps."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labeling.agreement.arrays import Bools, Ints
from prm.evaluation.steps import Labelled


@dataclass(frozen=True)
class Traces:
    problems: list[str]
    steps: list[list[str]]
    first_errors: Ints
    is_answer_right: Bools


def processbench(shared_data: Path, name: str) -> Traces:
    rows = json.loads((shared_data / "processbench" / f"{name}.json").read_text())
    return Traces(
        problems=[row["problem"] for row in rows],
        steps=[row["steps"] for row in rows],
        first_errors=np.array([row["label"] for row in rows]),
        is_answer_right=np.array([row["final_answer_correct"] for row in rows]),
    )


def labelled(*, n: int = 60, problems: int = 9, seed: int = 0, scores: int = 8) -> Labelled:
    """Few different scores, lengths and strata, so that ties and matches abound."""
    random = np.random.default_rng(seed)
    return Labelled(
        p_wrong=random.integers(0, scores, n) / scores,
        is_wrong=random.random(n) < 0.3,
        log_characters=np.asarray(random.integers(0, 12, n) * 0.06 + 3, dtype=np.float64),
        indexes=random.integers(0, 3, n),
        traces=np.arange(n),
        problems=random.integers(0, problems, n),
        sources=random.integers(0, 2, n),
    )
