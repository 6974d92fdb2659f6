"""The order for a snapshot, and its validation. The order is stored with the snapshot."""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from exports.exclusions import BENCHMARK_PREFIX, OVERRIDABLE_EXCLUSIONS
from formats.catalog import OUTPUT_FORMATS
from formats.labeled_paths import LabelRule
from labeling.datasets.selection import ManifestFilters

Ending = Literal["jsonl", "jsonl.gz", "jsonl.zst", "parquet"]
ENDINGS: tuple[Ending, ...] = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")
YEARS = (1970, 9000)  # converting a time near the ends of the calendar to another zone overflows


class InvalidOrder(Exception):
    """The snapshot cannot be made as ordered. `code` names the problem; the message explains it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class SnapshotOrder(Struct):
    formats: list[str]
    filters: ManifestFilters = field(default_factory=ManifestFilters)
    rule: LabelRule = field(default_factory=LabelRule)
    ending: Ending = "jsonl"
    # Shares of problems for validation and test; the rest is for training.
    validation: float = 0.0
    test: float = 0.0
    without_duplicates: bool = False
    # Exclusion reasons to override in a training snapshot (`exports.exclusions`). They need a `reason`.
    taken_in: list[str] = field(default_factory=list)
    reason: str = ""
    deliver_to: list[str] = field(default_factory=list)  # names of destinations

    @property
    def by_trace(self) -> bool:
        """Whether the rows of a trace must be next to each other."""
        return self.filters.is_consensus or any(OUTPUT_FORMATS[name].is_table for name in self.formats)

    @property
    def is_split(self) -> bool:
        return self.validation + self.test > 0


def validate_order(order: SnapshotOrder) -> None:
    """Raise InvalidOrder if the parts of an order do not fit together."""
    for is_invalid, code, message in _check_order(order):
        if is_invalid:
            raise InvalidOrder(code, message)


def _check_order(order: SnapshotOrder) -> Iterator[tuple[bool, str, str]]:
    formats, reasons = ", ".join(OUTPUT_FORMATS), ", ".join(OVERRIDABLE_EXCLUSIONS)
    unknown = ", ".join(name for name in order.formats if name not in OUTPUT_FORMATS)
    yield not order.formats, "format", f"No format is selected. Use one or more of: {formats}."
    yield bool(unknown), "format", f"Unknown format {unknown}. Use one of: {formats}."
    yield (
        bool(order.taken_in) and not order.reason.strip(),
        "reason",
        "Overriding an exclusion needs a reason. It is printed in the dataset card.",
    )
    for name in order.taken_in:
        is_known = name in OVERRIDABLE_EXCLUSIONS or name.startswith(BENCHMARK_PREFIX)
        yield not is_known, "exclusion", f"Unknown exclusion reason {name}. Use one of: {reasons}, benchmark:NAME."
    yield (
        not 0 <= order.validation + order.test < 1 or min(order.validation, order.test) < 0,
        "shares",
        "The shares for validation and test must not be negative, and must add up to less than 1.",
    )
    times = [time for time in (order.filters.submitted_from, order.filters.submitted_until) if time]
    yield (
        any(not YEARS[0] <= time.year <= YEARS[1] for time in times),
        "dates",
        f"Submission dates must be between the years {YEARS[0]} and {YEARS[1]}.",
    )
    yield (
        order.filters.is_consensus and "prm800k" in order.formats,
        "consensus",
        "PRM800K has the ratings of single raters. Choose another format for the consensus.",
    )
    yield (
        order.ending == "parquet" and "prm800k" in order.formats,
        "ending",
        "PRM800K is exported byte for byte as JSON Lines. Order it in a separate snapshot.",
    )
    yield (
        len({OUTPUT_FORMATS[name].wants_raters for name in order.formats}) > 1,
        "unit",
        "Outcomes describe traces, not ratings. Order them in a separate snapshot.",
    )
