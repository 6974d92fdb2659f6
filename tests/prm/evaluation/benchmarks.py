"""ProcessBench's files from the shared data, and small generated sets of labeled steps."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prm.evaluation.labeled_steps import LabeledSteps
from stats.arrays import Bools, Ints


@dataclass(frozen=True)
class BenchmarkTraces:
    problems: list[str]
    steps: list[list[str]]
    first_errors: Ints
    is_answer_right: Bools


def load_processbench(shared_data: Path, name: str) -> BenchmarkTraces:
    rows = json.loads((shared_data / "processbench" / f"{name}.json").read_text())
    return BenchmarkTraces(
        problems=[row["problem"] for row in rows],
        steps=[row["steps"] for row in rows],
        first_errors=np.array([row["label"] for row in rows]),
        is_answer_right=np.array([row["final_answer_correct"] for row in rows]),
    )


def make_labeled_steps(*, n: int = 60, problems: int = 9, seed: int = 0, scores: int = 8) -> LabeledSteps:
    """Generate steps with few distinct scores, lengths and strata, so that there are many ties and matches."""
    random = np.random.default_rng(seed)
    return LabeledSteps(
        p_wrong=random.integers(0, scores, n) / scores,
        is_wrong=random.random(n) < 0.3,
        log_characters=np.asarray(random.integers(0, 12, n) * 0.06 + 3, dtype=np.float64),
        indexes=random.integers(0, 3, n),
        traces=np.arange(n),
        problems=random.integers(0, problems, n),
        sources=random.integers(0, 2, n),
    )
