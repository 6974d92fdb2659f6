"""What came of the examples: rows, and how many were left out for which reason. Pure."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field, structs

from formats.labeled_paths import LabelRule
from formats.records import JudgmentRecord, SubmissionRecord, TraceRecord, TurnRecord
from formats.rows import ExportRow, RowFacts


class UnwritableRow(Exception):
    """A row that the format cannot hold."""


class RowTally(Struct):
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


# One trace as it is written: what its raters said, what the project stands behind, how it was chosen. Pure.


CUT_OFF = ("give_up", "bad_problem")  # nothing is known behind the last rating
GAVE_UP = "its rater gave up"
CONTESTED = "contested"
UNSETTLED = "contested, or not settled yet"


class AgreedLabels(Struct, frozen=True):
    """One revision of the consensus. `labels` hold [step, option, rating, confidence, raters at risk] each, and none
    behind the first error."""

    revision: int
    first_error: int | None
    confidence: float | None
    labels: Sequence[tuple[int, int, int, float, int]]
    # P(first error) of each step, then of none, by people who saw no score; None without a fit.
    posterior: Sequence[float] | None = None
    # The same with machines and whoever saw scores; None too where none of them has read the trace.
    assisted_posterior: Sequence[float] | None = None


class FirstErrorVote(Struct, frozen=True):
    """Where one reading saw the first error; None: nowhere, as far as it went."""

    first_error: int | None
    is_censored: bool
    is_blind: bool = True  # of a person who saw no score


class TraceExample:
    """The readings of one trace that a manifest names, in its order."""

    def __init__(
        self,
        readings: list[ExportRow],
        *,
        agreed: AgreedLabels | None = None,
        is_consensus: bool = False,
        mean_weight: float = 1.0,
        step_scores: Sequence[float | None] = (),
        licence: str = "",
    ) -> None:
        self.readings = readings
        self.agreed = agreed
        self.is_consensus = is_consensus
        self.step_scores = step_scores  # of the PRM that the manifest names
        self.licence = licence  # of its source
        self._mean_weight = mean_weight

    @property
    def facts(self) -> RowFacts:
        return self.readings[0].facts

    @cached_property
    def record(self) -> TraceRecord:
        return self.readings[0].record

    @cached_property
    def said(self) -> list[FirstErrorVote]:
        return [_locate_first_error(each) for each in self.readings if each.facts.submission is not None]

    def votes(self, *, assisted: bool = False) -> list[int | None]:
        """The places that readings name which were not cut off: of people who saw no score, or of all. Nothing of all
        where there are no others."""
        if assisted and all(each.is_blind for each in self.said):
            return []
        return [each.first_error for each in self.said if not each.is_censored and (assisted or each.is_blind)]

    @property
    def weight(self) -> float | None:
        return None if (raw := compute_raw_weight(self.facts)) is None else raw / self._mean_weight

    def labelled(self, rule: LabelRule, tally: RowTally) -> Iterator[tuple[RowFacts, TraceRecord]]:
        """What makes rows: the one record that all stand behind, or that of each rater. A contested trace has none of
        the first, and in training none of the second either; what was given up has none in training."""
        if self.is_consensus and self.agreed is None:
            tally.leave_out(UNSETTLED)
        elif self.is_consensus and self.agreed is not None:
            yield self.facts, _make_agreed_record(self.record, self.agreed)
        elif self.facts.is_contested and not rule.takes_contested:
            tally.leave_out(CONTESTED)
        else:
            yield from self._told(rule, tally)

    def _told(self, rule: LabelRule, tally: RowTally) -> Iterator[tuple[RowFacts, TraceRecord]]:
        for each in self.readings:
            if each.facts.submission is None:
                continue
            if not rule.takes_cut_off and each.record.submissions[0].finish_reason in CUT_OFF:
                tally.leave_out(GAVE_UP)
            else:
                yield each.facts, each.record


WEIGHT_CAP = 10.0


def compute_raw_weight(facts: RowFacts) -> float | None:
    """How many traces one that was drawn stands for, as against a draw at random; no more than ten."""
    if facts.q is None or facts.n_left is None:
        return None
    return min(1.0 / (facts.q * facts.n_left), WEIGHT_CAP)


def _locate_first_error(reading: ExportRow) -> FirstErrorVote:
    submission = reading.record.submissions[0]
    is_blind = not reading.facts.is_assisted and not reading.facts.machine
    rated = 0
    for turn in submission.turns:
        own = get_taken_rating(turn)
        if own == -1:
            return FirstErrorVote(turn.position, is_censored=False, is_blind=is_blind)
        rated += own is not None
    is_whole = rated >= sum(step.is_rateable for step in reading.record.steps)
    is_censored = submission.finish_reason in CUT_OFF or not is_whole
    return FirstErrorVote(None, is_censored=is_censored, is_blind=is_blind)


def get_taken_rating(turn: TurnRecord) -> int | None:
    """What was said of the step that the path takes: the chosen one; where none was, the first that was shown."""
    if not turn.shown:
        return None
    return turn.shown[turn.chosen if turn.chosen is not None else 0].rating


def _make_agreed_record(record: TraceRecord, agreed: AgreedLabels) -> TraceRecord:
    """The trace as if one rater had said what all stand behind."""
    labels: dict[int, dict[int, int]] = {}
    for step, option, rating, *_ in agreed.labels:
        labels.setdefault(step, {})[option] = rating
    last = max(labels, default=-1)
    turns = [
        _make_agreed_turn(position, [option.text for option in step.options], labels.get(position, {}))
        for position, step in enumerate(record.steps[: last + 1])
        if step.is_rateable and step.options
    ]
    finish = "solution" if agreed.first_error is None else "found_error"
    return structs.replace(record, submissions=[SubmissionRecord(turns, finish_reason=finish)], residue=None)


def _make_agreed_turn(position: int, texts: list[str], labels: dict[int, int]) -> TurnRecord:
    """The step's own option first, labelled or not; of the others those that have a label."""
    places = [0, *sorted(set(labels) - {0})]
    shown = [JudgmentRecord(texts[place], labels.get(place)) for place in places if place < len(texts)]
    return TurnRecord(position, shown, 0 if labels.get(0, -1) >= 0 else None)
