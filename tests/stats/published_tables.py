"""Published tables in the shared data, with which the statistics are compared."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from stats import rating_patterns
from stats.rating_patterns import PairSums, RatingPatterns


def load_tables(shared_data: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((shared_data / "oracles" / "agreement.json").read_text())
    return loaded


def table_patterns(table: dict[str, Any]) -> RatingPatterns:
    """Return the patterns of a table, in either of its two notations."""
    if "unit_counts" in table:
        counts = table["unit_counts"]
        freq = table.get("freq", [1] * len(counts))
        rows = [(unit, row, units) for unit, (row, units) in enumerate(zip(counts, freq, strict=True))]
        return rating_patterns.patterns_from_rows(rows, values=table["values"])
    rated = [
        (unit, table["values"].index(label))
        for row in table["raters_by_units"]
        for unit, label in enumerate(row)
        if label is not None
    ]
    units, labels = np.array(rated).T
    return rating_patterns.count_patterns(units=units, labels=labels, values=table["values"])


def sum_all_pairs(patterns: RatingPatterns) -> PairSums:
    """Return the pair sums over all problems and their copies."""
    pairs = rating_patterns.sum_pairs(patterns)
    return pairs.put(patterns.copies @ pairs.matrix)
