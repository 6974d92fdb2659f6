"""Load two public crowdsourcing data sets with known truth from a local folder: which of two birds a picture shows, and
whether two offers are for the same product."""

import csv
from pathlib import Path

import numpy as np
import yaml

from stats.arrays import Ints
from stats.label_votes import LabelVotes

_BASE_URL = Path("oracles") / "aggregation"


def load_bluebirds(data: Path) -> tuple[LabelVotes, Ints]:
    """Return the votes and the true label of every task."""
    folder = data / _BASE_URL
    labels = yaml.safe_load((folder / "bb_labels.yaml").read_text())
    truth = yaml.safe_load((folder / "bb_gt.yaml").read_text())
    place = {task: n for n, task in enumerate(truth)}
    rows = [(place[task], worker, vote) for worker, votes in enumerate(labels.values()) for task, vote in votes.items()]
    tasks, workers, votes = np.array(rows, dtype=np.int64).T
    return LabelVotes(tasks, workers, votes, 2), np.array(list(truth.values()), dtype=np.int64)


def load_products(data: Path) -> tuple[LabelVotes, Ints]:
    folder = data / _BASE_URL
    with (folder / "d_jn-product_truth.csv").open() as file:
        truth = {row["question"]: int(row["truth"]) for row in csv.DictReader(file)}
    with (folder / "d_jn-product_answer.csv").open() as file:
        answers = list(csv.DictReader(file))
    place = {task: n for n, task in enumerate(truth)}
    workers: dict[str, int] = {}
    votes = LabelVotes(
        tasks=np.array([place[row["question"]] for row in answers]),
        workers=np.array([workers.setdefault(row["worker"], len(workers)) for row in answers]),
        labels=np.array([int(row["answer"]) for row in answers]),
        k=2,
    )
    return votes, np.array(list(truth.values()))
