"""The input of a table writer: one trace with its export rows and consensus. And its report: a tally of the rows."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field, structs

from formats import labeled_paths
from formats.columns import OutputRow
from formats.labeled_paths import LabeledPath, LabelRule
from formats.records import JudgmentRecord, SubmissionRecord, TraceRecord, TurnRecord
from formats.rows import ExportRow, RowFacts

WEIGHT_CAP = 10.0
CUT_OFF = ("give_up", "bad_problem")  # finish reasons after which the rest of the trace is unrated

# Why a trace has no row in a file.
GAVE_UP = "the rater gave up"
CONTESTED = "contested"
UNSETTLED = "contested or not settled yet"
NOT_RATED = "no rated step"


class UnwritableRow(Exception):
    """A row that the format cannot represent. The message is the reason that the tally counts."""


class RowTally(Struct):
    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)  # rows by the bit length of their number of characters
    weights: list[dict[str, Any]] = field(default_factory=list)  # of rows whose weights are not written yet

    def leave_out(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def count_labels(self, labels: list[bool], n_characters: int) -> None:
        for label in labels:
            name = "positive" if label else "negative"
            self.labels[name] = self.labels.get(name, 0) + 1
        bucket = n_characters.bit_length()
        self.lengths[bucket] = self.lengths.get(bucket, 0) + 1


class AgreedLabels(Struct, frozen=True):
    """One revision of the consensus.

    `labels` are tuples of step, option, rating, confidence, and raters at risk. None follows the first error.
    """

    revision: int
    first_error: int | None
    confidence: float | None
    labels: Sequence[tuple[int, int, int, float, int]]
    # P(first error) of each step, then of no error, from people who saw no score. None without a rater model.
    posterior: Sequence[float] | None = None
    # The same including machines and people who saw scores. None if only people without scores rated.
    assisted_posterior: Sequence[float] | None = None


class FirstErrorVote(Struct, frozen=True):
    """The first error in one submission, or None if the rater found no error before they stopped."""

    first_error: int | None
    is_censored: bool
    is_blind: bool = True  # by a person who saw no score


class TraceExample:
    """One trace with its export rows, in the order of the manifest."""

    def __init__(
        self,
        rows: list[ExportRow],
        *,
        agreed: AgreedLabels | None = None,
        is_consensus: bool = False,
        mean_weight: float = 1.0,
        step_scores: Sequence[float | None] = (),
        licence: str = "",
    ) -> None:
        self.rows = rows
        self.agreed = agreed
        self.is_consensus = is_consensus
        self.step_scores = step_scores  # by the PRM of the manifest
        self.licence = licence  # of the source
        self._mean_weight = mean_weight

    @property
    def facts(self) -> RowFacts:
        return self.rows[0].facts

    @cached_property
    def record(self) -> TraceRecord:
        return self.rows[0].record

    @property
    def submitted(self) -> list[ExportRow]:
        """The rows that are submissions. An unrated trace has a row without a submission."""
        return [row for row in self.rows if row.facts.submission is not None]

    @cached_property
    def first_errors(self) -> list[FirstErrorVote]:
        """The first error of each submission."""
        return [_find_first_error(row) for row in self.submitted]

    def votes(self, *, assisted: bool = False) -> list[int | None]:
        """Return the first errors of submissions that were not cut off.

        Blind submissions count. With `assisted`, all of them count; the list is empty if all are blind.
        """
        if assisted and all(vote.is_blind for vote in self.first_errors):
            return []
        return [vote.first_error for vote in self.first_errors if not vote.is_censored and (assisted or vote.is_blind)]

    @property
    def weight(self) -> float | None:
        return None if (raw := compute_raw_weight(self.facts)) is None else raw / self._mean_weight

    def labeled_records(self, rule: LabelRule, tally: RowTally) -> Iterator[tuple[RowFacts, TraceRecord]]:
        """Yield the records that make rows: the consensus as one record, or the record of each rater.

        The tally counts what the rule leaves out: contested and unsettled traces, and submissions that gave up.
        """
        if self.is_consensus:
            if self.agreed is None:
                tally.leave_out(UNSETTLED)
            else:
                yield self.facts, _make_agreed_record(self.record, self.agreed)
            return
        if self.facts.is_contested and not rule.takes_contested:
            tally.leave_out(CONTESTED)
            return
        for row in self.submitted:
            if not rule.takes_cut_off and row.record.submissions[0].finish_reason in CUT_OFF:
                tally.leave_out(GAVE_UP)
            else:
                yield row.facts, row.record


def write_paths(
    example: TraceExample, rule: LabelRule, tally: RowTally, make_row: Callable[[LabeledPath, str], OutputRow]
) -> Iterator[OutputRow]:
    """Write a row for each labeled path, for the formats that only have right and wrong steps.

    `make_row` gets a path and the domain of the problem. The weights of the rows go to the tally, row for row: these
    formats have no place for them.
    """
    for facts, record in example.labeled_records(rule, tally):
        path = None
        for path in labeled_paths.build_labeled_paths(record, rule):
            try:
                row = make_row(path, record.problem.domain)
            except UnwritableRow as error:
                tally.leave_out(str(error))
                continue
            tally.count_labels(path.labels, path.n_characters)
            rater = None if example.is_consensus else facts.labeler
            tally.weights.append(
                {"weight": example.weight, "q": facts.q, "arm": facts.arm, "trace": facts.trace, "rater": rater}
            )
            yield row
        if path is None:
            tally.leave_out(NOT_RATED)


def compute_raw_weight(facts: RowFacts) -> float | None:
    """Return the inverse probability of the draw relative to a uniform draw, capped at ten."""
    if facts.q is None or facts.n_left is None:
        return None
    return min(1.0 / (facts.q * facts.n_left), WEIGHT_CAP)


def _find_first_error(row: ExportRow) -> FirstErrorVote:
    submission = row.record.submissions[0]
    is_blind = not row.facts.is_assisted and not row.facts.machine
    n_rated = 0
    for turn in submission.turns:
        rating = get_taken_rating(turn)
        if rating == -1:
            return FirstErrorVote(turn.position, is_censored=False, is_blind=is_blind)
        n_rated += rating is not None
    is_complete = n_rated >= sum(step.is_rateable for step in row.record.steps)
    is_censored = submission.finish_reason in CUT_OFF or not is_complete
    return FirstErrorVote(None, is_censored=is_censored, is_blind=is_blind)


def get_taken_rating(turn: TurnRecord) -> int | None:
    """Return the rating of the chosen option, or of the first option if none was chosen."""
    if not turn.shown:
        return None
    return turn.shown[turn.chosen if turn.chosen is not None else 0].rating


def _make_agreed_record(record: TraceRecord, agreed: AgreedLabels) -> TraceRecord:
    """Make the record of a single rater who gave the consensus labels."""
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
    """Show the trace's own option first, labeled or not, then the alternatives that have a label."""
    options = [0, *sorted(set(labels) - {0})]
    shown = [JudgmentRecord(texts[option], labels.get(option)) for option in options if option < len(texts)]
    return TurnRecord(position, shown, 0 if labels.get(0, -1) >= 0 else None)
