"""What came of the examples: rows, and how many were left out for which reason. Pure."""

from typing import Any

from msgspec import Struct, field


class Unwritable(Exception):
    """A row that the format cannot hold."""


class Tally(Struct):
    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)  # rows by their characters, in powers of two
    beside: list[dict[str, Any]] = field(default_factory=list)  # weights of rows not yet written

    def leave_out(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def add(self, labels: list[bool], n_characters: int) -> None:
        for label in labels:
            name = "positive" if label else "negative"
            self.labels[name] = self.labels.get(name, 0) + 1
        bucket = n_characters.bit_length()
        self.lengths[bucket] = self.lengths.get(bucket, 0) + 1
