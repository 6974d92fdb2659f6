"""The published tables that the statistics are checked against, as the shared data keeps them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from labeling.agreement import patterns
from labeling.agreement.patterns import Patterns


def tables(shared_data: Path) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((shared_data / "oracles" / "agreement.json").read_text())
    return loaded


def patterns_of(table: dict[str, Any]) -> Patterns:
    """The patterns of a table, whichever of its two ways of writing it uses."""
    if "unit_counts" in table:
        counts = table["unit_counts"]
        freq = table.get("freq", [1] * len(counts))
        rows = [(unit, row, units) for unit, (row, units) in enumerate(zip(counts, freq, strict=True))]
        return patterns.of_rows(rows, values=table["values"])
    rated = [
        (unit, table["values"].index(label))
        for row in table["raters_by_units"]
        for unit, label in enumerate(row)
        if label is not None
    ]
    units, labels = np.array(rated).T
    return patterns.of_ratings(units=units, labels=labels, values=table["values"])
