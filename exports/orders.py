"""What somebody asks a snapshot to be. Pure: kept with the snapshot as it was asked for."""

from typing import Literal

from msgspec import Struct, field

from formats.catalog import OUTPUT_FORMATS
from formats.labeled_paths import LabelRule
from labeling.datasets.selection import ManifestFilters

Ending = Literal["jsonl", "jsonl.gz", "jsonl.zst", "parquet"]
ENDINGS: tuple[Ending, ...] = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")
OVERRIDABLE_EXCLUSIONS = ("reserve", "screening", "gold", "training", "canary", "benchmark", "overlap")


YEARS = (1970, 9000)  # at the ends of the calendar a zone leads beyond it


class InvalidOrder(Exception):
    """What was asked for cannot be made. Says why."""


class SnapshotOrder(Struct):
    formats: list[str]
    filters: ManifestFilters = field(default_factory=ManifestFilters)
    rule: LabelRule = field(default_factory=LabelRule)
    ending: Ending = "jsonl"
    # Shares of problems for validation and test; what is left is for training. A problem never changes sides.
    validation: float = 0.0
    test: float = 0.0
    without_duplicates: bool = False
    # Reasons for which traces are left out of training, and which are taken in nevertheless. Asks for `reason`.
    taken_in: list[str] = field(default_factory=list)
    reason: str = ""
    deliver_to: list[str] = field(default_factory=list)  # destinations by name, once it is built

    @property
    def by_trace(self) -> bool:
        """Whether readings of one trace must stand together."""
        return self.filters.is_consensus or any(OUTPUT_FORMATS[name].is_table for name in self.formats)

    @property
    def is_split(self) -> bool:
        return self.validation + self.test > 0


def validate_order(order: SnapshotOrder) -> None:
    unknown = [name for name in order.formats if name not in OUTPUT_FORMATS]
    if unknown or not order.formats:
        raise InvalidOrder(
            f"There is no format {', '.join(unknown) or 'named'}. There are: {', '.join(OUTPUT_FORMATS)}."
        )
    if order.taken_in and not order.reason.strip():
        raise InvalidOrder("Taking in what judges models or raters needs a reason: it stands in the card.")
    other = [
        name for name in order.taken_in if name not in OVERRIDABLE_EXCLUSIONS and not name.startswith("benchmark:")
    ]
    if other:
        raise InvalidOrder(
            f"Unknown exclusion reason {other[0]}. Use one of: {', '.join(OVERRIDABLE_EXCLUSIONS)}, benchmark:NAME."
        )
    if not 0 <= order.validation + order.test < 1 or min(order.validation, order.test) < 0:
        raise InvalidOrder("The shares for validation and test must leave something for training.")
    _validate_times(order.filters)
    if order.filters.is_consensus and "prm800k" in order.formats:
        raise InvalidOrder("PRM800K holds what single raters said. For consensus choose another format.")
    if order.ending == "parquet" and "prm800k" in order.formats:
        raise InvalidOrder("PRM800K comes back byte for byte, as JSON Lines: ask for it in a snapshot of its own.")
    without_raters = [name for name in order.formats if not OUTPUT_FORMATS[name].wants_raters]
    if without_raters and len(without_raters) < len(order.formats):
        raise InvalidOrder("Outcomes are of traces, not of ratings: ask for them in a snapshot of their own.")


def _validate_times(filters: ManifestFilters) -> None:
    moments = (filters.submitted_from, filters.submitted_until)
    if any(moment and not YEARS[0] <= moment.year <= YEARS[1] for moment in moments):
        raise InvalidOrder(f"Submissions are looked for between the years {YEARS[0]} and {YEARS[1]}.")
