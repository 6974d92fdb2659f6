"""Two public crowds of which the truth is known, from where somebody has put them: which of two birds a picture shows,
and whether two offers are of one product."""

import csv
from pathlib import Path

import numpy as np
import yaml

from labeling.agreement.arrays import Ints
from labeling.agreement.votes import Votes

_PLACE = Path("oracles") / "aggregation"


def bluebirds(data: Path) -> tuple[Votes, Ints]:
    """The votes, and the true label of every task."""
    folder = data / _PLACE
    labels = yaml.safe_load((folder / "bb_labels.yaml").read_text())
    truth = yaml.safe_load((folder / "bb_gt.yaml").read_text())
    place = {task: n for n, task in enumerate(truth)}
    rows = [(place[task], worker, said) for worker, told in enumerate(labels.values()) for task, said in told.items()]
    tasks, workers, said = np.array(rows, dtype=np.int64).T
    return Votes(tasks, workers, said, 2), np.array(list(truth.values()), dtype=np.int64)


def products(data: Path) -> tuple[Votes, Ints]:
    folder = data / _PLACE
    with (folder / "d_jn-product_truth.csv").open() as file:
        truth = {row["question"]: int(row["truth"]) for row in csv.DictReader(file)}
    with (folder / "d_jn-product_answer.csv").open() as file:
        answers = list(csv.DictReader(file))
    place = {task: n for n, task in enumerate(truth)}
    workers: dict[str, int] = {}
    votes = Votes(
        tasks=np.array([place[row["question"]] for row in answers]),
        workers=np.array([workers.setdefault(row["worker"], len(workers)) for row in answers]),
        labels=np.array([int(row["answer"]) for row in answers]),
        k=2,
    )
    return votes, np.array(list(truth.values()))
