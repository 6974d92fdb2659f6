"""The input of a table writer: one trace with its export rows and consensus. Its output: columns, rows, and a tally.

Formats that only have right and wrong steps are written from labeled paths:

- A path ends at the first error and before a step without a rating. Labels are never filled in. With a label set that
  labels later steps (`formats.label_sets`), it ends before the first step that the set does not label.
- A neutral step is right by default. `LabelRule.neutral` makes it wrong, or ends the path before it.
- Each alternative that was not chosen makes a path of its own: the steps before it, then the alternative.
- A path ends before a step that the rater wrote, unless `LabelRule.human_steps` counts such steps as right.
- In an agent's trace, each step is a path of its own; everything before it, observations included, is its prompt.
- A path has at least one step.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field, structs

from formats import label_sets
from formats.label_sets import LabelSet
from formats.records import CitationRecord, EvidenceRecord, JudgmentRecord, SubmissionRecord, TraceRecord, TurnRecord
from formats.rows import ExportRow, RowFacts

if TYPE_CHECKING:
    import pyarrow

# A type is a name, a list of one type ["string"], or an object {"role": "string"}.
ColumnType = str | list[Any] | dict[str, Any]

WEIGHT_CAP = 10.0
CUT_OFF = ("give_up", "bad_problem")  # finish reasons after which the rest of the trace is unrated

# Who gave the labels of a row: the kind of rater, the name of a machine, the file that the labels came from, whether
# the rater was blind, when the rater saw the labels of a machine, and what the machine is. PRM800K and ProcessBench
# have these keys only in rows of machines and of people who saw their labels, so that others are as published.
MACHINE_COLUMNS: dict[str, ColumnType] = {
    "rater_kind": "string",
    "rater_name": "string",
    "label_source": "string",
    "is_blind": "bool",
    "exposure": "string",
    "machine": {
        "kind": "string",
        "name": "string",
        "version": "int64",
        "model": "string",
        "prompt_digest": "string",
        "endpoint_family": "string",
        "votes": "int64",
        "cost": "float64",
    },
}
RATER_COLUMNS: dict[str, ColumnType] = {"rater": "string", **MACHINE_COLUMNS}  # with the pseudonym
_IMPORTED_MACHINES = ("judge", "monte_carlo")
_IDENTITY_FIELDS = (*("kind", "name", "version", "model", "prompt_digest", "endpoint_family"), "votes", "cost")
CONSENSUS_KIND = "consensus"
EVIDENCE_COLUMNS: dict[str, ColumnType] = {
    "text": "string",
    "start": "int64",
    "end": "int64",
    "kind": "string",
    "severity": "int64",
    "reason": "string",
    "number": "int64",
}

CITATION_COLUMNS: dict[str, ColumnType] = {"clause": "string", "digest": "string", "version": "string"}

# Why a trace has no row in a file.
GAVE_UP = "the rater gave up"
CONTESTED = "contested"
UNSETTLED = "contested or not settled yet"
NOT_RATED = "no rated step"
UNDETERMINED = "the ratings do not determine the label set"

Columns = Mapping[str, ColumnType]
OutputRow = dict[str, Any]


def describe_rater(facts: RowFacts) -> OutputRow:
    """Return the values of `RATER_COLUMNS` for one submission."""
    return {
        "rater": facts.labeler,
        "rater_kind": facts.rater_kind,
        "rater_name": facts.machine or None,
        "label_source": facts.label_source,
        "is_blind": is_blind_row(facts),
        "exposure": facts.exposure,
        "machine": _describe_identity(facts),
    }


def is_blind_row(facts: RowFacts) -> bool | None:
    """Return whether a person saw no scores or suggestions, or a machine no reference answer; None if unknown."""
    if facts.machine:
        return None if facts.saw_reference_answer is None else not facts.saw_reference_answer
    return None if facts.is_assisted is None else not facts.is_assisted


def _describe_identity(facts: RowFacts) -> OutputRow | None:
    if not facts.machine:
        return None
    found: OutputRow = dict.fromkeys(_IDENTITY_FIELDS)
    if facts.identity is not None:
        return {name: getattr(facts.identity, name) for name in found}
    kind = facts.label_kind if facts.label_kind in _IMPORTED_MACHINES else None
    return found | {"kind": kind, "name": facts.machine}


def write_evidence(evidence: Sequence[EvidenceRecord]) -> list[OutputRow]:
    return [structs.asdict(quote) for quote in evidence]


def write_citations(citations: Sequence[CitationRecord]) -> list[OutputRow]:
    return [structs.asdict(citation) for citation in citations]


def write_answers(answers: Mapping[str, str]) -> str | None:
    """Return the answers of one submission to questions on the whole trace, as JSON text."""
    return json.dumps(answers, ensure_ascii=False) if answers else None


def describe_machine(facts: RowFacts) -> OutputRow:
    """Return the values of `MACHINE_COLUMNS` if a machine made the submission, or a rater who saw the labels of one or
    only a part of the trace. Otherwise return nothing."""
    rater, is_plain = describe_rater(facts), not (facts.machine or facts.is_assisted or facts.is_partial_view)
    return {} if is_plain else {name: rater[name] for name in MACHINE_COLUMNS}


class LabelRule(Struct, frozen=True, forbid_unknown_fields=True):
    neutral: Literal["positive", "negative", "drop"] = "positive"
    human_steps: Literal["omit", "positive"] = "omit"
    has_alternatives: bool = True
    takes_cut_off: bool = True  # the rated part of submissions that gave up
    takes_contested: bool = True  # each rater's labels of contested traces
    # `as_rated` keeps the ratings; paths of right and wrong steps still end at the first error.
    label_set: LabelSet = "as_rated"


class LabeledPath(Struct, frozen=True):
    prompt: str
    steps: list[str]
    labels: list[bool]


class UnwritableRow(Exception):
    """A row that the format cannot represent. The message is the reason that the tally counts."""


class RowTally(Struct):
    rows: int = 0
    left_out: dict[str, int] = field(default_factory=Counter)
    labels: dict[str, int] = field(default_factory=Counter)
    lengths: dict[int, int] = field(default_factory=Counter)  # rows by the bit length of their number of characters
    weights: list[dict[str, Any]] = field(default_factory=list)  # of rows whose weights are not written yet

    def leave_out(self, reason: str) -> None:
        self.left_out[reason] += 1

    def count_path(self, path: LabeledPath) -> None:
        for label in path.labels:
            self.labels["positive" if label else "negative"] += 1
        n_characters = len(path.prompt) + sum(map(len, path.steps))
        self.lengths[n_characters.bit_length()] += 1


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


@dataclass
class TraceExample:
    """One trace with its export rows, in the order of the manifest."""

    rows: list[ExportRow]
    agreed: AgreedLabels | None = None
    is_consensus: bool = False
    mean_weight: float = 1.0
    step_scores: Sequence[float | None] = ()  # by the PRM of the manifest
    licence: str = ""  # of the source

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

    @property
    def decisive_errors(self) -> list[FirstErrorVote]:
        """The decisive error of each submission. It is censored if the ratings do not determine it."""
        return [_find_decisive_error(row) for row in self.submitted]

    def votes(self, *, assisted: bool = False) -> list[int | None]:
        """Return the first errors of submissions that were not cut off.

        Blind submissions count. With `assisted`, all of them count; the list is empty if all are blind.
        """
        if assisted and all(vote.is_blind for vote in self.first_errors):
            return []
        return [vote.first_error for vote in self.first_errors if not vote.is_censored and (assisted or vote.is_blind)]

    def describe_rater(self, facts: RowFacts) -> OutputRow:
        """Return the values of `RATER_COLUMNS` for a labeled record."""
        if self.is_consensus:
            return {**dict.fromkeys(RATER_COLUMNS), "rater_kind": CONSENSUS_KIND}
        return describe_rater(facts)

    @property
    def weight(self) -> float | None:
        """The inverse probability of the draw relative to a uniform draw, capped and divided by the mean weight. None
        if a person moved the trace to the front: its label did not come by the draw."""
        if self.facts.q is None or self.facts.n_left is None or self.facts.population == "chosen":
            return None
        return min(1.0 / (self.facts.q * self.facts.n_left), WEIGHT_CAP) / self.mean_weight

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
            elif rule.label_set == "as_rated":
                yield row.facts, row.record
            else:
                record, derived = label_sets.relabel_record(row.record, rule.label_set)
                if derived.is_complete or any(label is not None for label in derived.labels):
                    yield row.facts, record
                else:
                    tally.leave_out(UNDETERMINED)


def write_paths(
    example: TraceExample, rule: LabelRule, tally: RowTally, make_row: Callable[[LabeledPath, str], OutputRow]
) -> Iterator[OutputRow]:
    """Write a row for each labeled path, for the formats that only have right and wrong steps.

    `make_row` gets a path and the domain of the problem. The weights of the rows go to the tally, row for row: these
    formats have no place for them.
    """
    for facts, record in example.labeled_records(rule, tally):
        path = None
        for path in build_labeled_paths(record, rule):
            try:
                row = make_row(path, record.problem.domain)
            except UnwritableRow as error:
                tally.leave_out(str(error))
                continue
            tally.count_path(path)
            rater = example.describe_rater(facts)
            weight = {"weight": example.weight, "q": facts.q, "arm": facts.arm, "trace": facts.trace}
            tally.weights.append({**weight, "rater": rater["rater"]})
            yield row | rater
        if path is None:
            tally.leave_out(NOT_RATED)


def _find_first_error(row: ExportRow) -> FirstErrorVote:
    submission = row.record.submissions[0]
    is_blind = not row.facts.is_assisted and not row.facts.machine
    n_rated = 0
    for turn in submission.turns:
        rating = get_taken_rating(turn)
        if rating == -1 and not row.facts.is_partial_view:  # who saw a part cannot tell where the first error is
            return FirstErrorVote(turn.position, is_censored=False, is_blind=is_blind)
        n_rated += rating is not None
    is_complete = n_rated >= sum(step.is_rateable for step in row.record.steps)
    is_censored = submission.finish_reason in CUT_OFF or not is_complete or row.facts.is_partial_view
    return FirstErrorVote(None, is_censored=is_censored, is_blind=is_blind)


def _find_decisive_error(row: ExportRow) -> FirstErrorVote:
    record, derived = label_sets.relabel_record(row.record, "decisive_error")
    turns = record.submissions[0].turns
    error = next((turn.position for turn in turns if get_taken_rating(turn) == -1), None)
    return FirstErrorVote(error, is_censored=not derived.is_complete)


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


# --- labeled paths ---------------------------------------------------------------------------------------------------


def build_labeled_paths(record: TraceRecord, rule: LabelRule) -> Iterator[LabeledPath]:
    """Yield the paths of the first submission: the taken path, and one for each alternative along it."""
    if any(not step.is_rateable for step in record.steps):
        yield from _build_agent_paths(record, rule)
        return
    steps: list[str] = []
    labels: list[bool] = []
    for turn in record.submissions[0].turns if record.submissions else ():
        taken = _label_taken_step(turn, rule)
        if rule.has_alternatives:
            for text, is_right in _label_alternatives(turn, rule):
                yield LabeledPath(record.problem.text, [*steps, text], [*labels, is_right])
        if taken is None:
            break
        steps.append(taken[0])
        labels.append(taken[1])
        if not (taken[1] or rule.label_set in label_sets.SETS_PAST_ERRORS):
            break
    if steps:
        yield LabeledPath(record.problem.text, steps, labels)


def _build_agent_paths(record: TraceRecord, rule: LabelRule) -> Iterator[LabeledPath]:
    turns = {turn.position: turn for submission in record.submissions[:1] for turn in submission.turns}
    prompt = record.problem.text
    for position, step in enumerate(record.steps):
        taken = _label_taken_step(turns[position], rule) if position in turns else None
        if taken:
            yield LabeledPath(prompt, [taken[0]], [taken[1]])
        if step.is_rateable and not (taken and (taken[1] or rule.label_set in label_sets.SETS_PAST_ERRORS)):
            return
        prompt += "\n\n" + (taken[0] if taken else step.options[0].text)


def _label_taken_step(turn: TurnRecord, rule: LabelRule) -> tuple[str, bool] | None:
    """Return the step on the path and whether it is right, or None if the path ends before it."""
    judgment = get_taken_judgment(turn)
    if judgment is not None:
        return _label_judgment(judgment, rule)
    if turn.written is not None and rule.human_steps == "positive":
        return turn.written.text, True
    return None


def get_taken_judgment(turn: TurnRecord) -> JudgmentRecord | None:
    """Return the judgment of the chosen option. If no step was chosen or written, it is the first one if negative."""
    if not turn.shown:
        return None
    if turn.chosen is not None:
        return turn.shown[turn.chosen]
    return None if turn.written is not None or turn.shown[0].rating != -1 else turn.shown[0]


def _label_alternatives(turn: TurnRecord, rule: LabelRule) -> Iterator[tuple[str, bool]]:
    taken = get_taken_judgment(turn)
    for judgment in turn.shown or ():
        if judgment is not taken and (labeled := _label_judgment(judgment, rule)):
            yield labeled


def _label_judgment(judgment: JudgmentRecord, rule: LabelRule) -> tuple[str, bool] | None:
    if judgment.rating is None or (judgment.rating == 0 and rule.neutral == "drop"):
        return None
    return judgment.text, judgment.rating > 0 or (judgment.rating == 0 and rule.neutral == "positive")


# --- columns ---------------------------------------------------------------------------------------------------------


def describe_features(columns: Columns) -> dict[str, Any]:
    """Return the features as the library `datasets` stores them."""
    return {name: _describe_feature(kind) for name, kind in columns.items()}


def _describe_feature(kind: ColumnType) -> Any:
    if isinstance(kind, str):
        return {"dtype": kind, "_type": "Value"}
    return [_describe_feature(kind[0])] if isinstance(kind, list) else describe_features(kind)


def make_arrow_schema(columns: Columns) -> "pyarrow.Schema":
    """Return the schema, with the Hugging Face features as metadata: they also type a column without values."""
    import pyarrow  # slow, and most processes never write Parquet

    metadata = json.dumps({"info": {"features": describe_features(columns)}})
    return pyarrow.schema(_make_arrow_type(dict(columns)).fields, metadata={"huggingface": metadata})


def _make_arrow_type(kind: ColumnType) -> "pyarrow.DataType":
    import pyarrow

    if isinstance(kind, str):
        return pyarrow.type_for_alias(kind)
    if isinstance(kind, list):
        return pyarrow.list_(_make_arrow_type(kind[0]))
    return pyarrow.struct([(name, _make_arrow_type(inner)) for name, inner in kind.items()])
