"""One submission as a snapshot reads it from the database. This module makes no query itself.

Nearly all submissions are compact: every step is reasoning, and no rating has a comment. For these the database sends
all texts as one string and all ratings as another, which is fastest: PRM800K is written from these strings without an
object for each step. Other formats build the record on demand.
"""

import datetime as dt
from typing import Any, NamedTuple

from msgspec import UNSET

from formats.records import (
    JudgmentRecord,
    OptionRecord,
    ProblemRecord,
    ProvenanceRecord,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
    unpack_residue,
)

SEPARATOR = "\x1f"  # between texts; a submission whose texts contain it is not compact
ORIGIN_HERE = "here"  # the submission was made on our own pages
SCREENING_GENERATION = -1  # the generation of the screening set in PRM800K


class RowFacts(NamedTuple):
    """One submission without its steps. `labeling.datasets.row_reader` defines where each field comes from."""

    position: int  # in the manifest
    submission: int | None  # None for a trace without submissions
    revision: int | None
    consensus_revision: int | None
    score_version: str
    is_contested: bool | None
    trace: int
    problem_digest: str  # of the normalized text, so it ignores spelling
    purpose: str | None
    population: str | None
    origin: str | None
    is_assisted: bool | None
    saw_reference_answer: bool | None
    saw_final_verdict: bool | None
    guideline: int | None
    round: int | None  # the generation that assigned it
    opened_at: dt.datetime | None
    draw_arm: str | None
    lane_arm: str | None
    batch: int | None
    rank: int | None
    q: float | None
    n_left: int | None
    prm: str | None
    prm_score: float | None
    source: str | None
    licence: str | None
    submitted_at: dt.datetime | None
    finish_reason: str | None
    finish_note: str | None
    total_ms: int | None
    generation: int | None
    is_quality_control: bool | None
    is_screening: bool | None
    residue: Any
    labeler: str | None
    machine: str | None
    kind: str
    n_steps: int
    answer: str | None
    verifier_score: float | None
    is_right: bool | None
    ref: str
    outcome_by: str
    outcome_grader: str
    base_model: str | None
    policy: str | None
    scaffold: str | None
    segmenter: str | None
    text: str
    reference_answer: str | None
    reference_solution: str | None
    has_reference_answer: bool
    has_reference_solution: bool
    problem_ref: str
    domain: str

    @property
    def arm(self) -> str:
        return self.draw_arm or self.lane_arm or ""

    @property
    def exported_generation(self) -> int | None:
        """Return the generation in the file, or for a submission made here the generation that assigned it."""
        if self.origin != ORIGIN_HERE or self.generation is not None:
            return self.generation
        return SCREENING_GENERATION if self.is_screening else self.round or 0


class CompactRow(NamedTuple):
    """Texts and ratings of a compact submission as strings.

    `cells` has one item per judgment, separated by `;`: `shown,chosen,rating,flagged`, followed by the ids of step and
    option unless option 0 was the only one shown. The turns belong to the first steps of the trace, in order.
    """

    texts: str  # of all options, by step and position
    n_texts: int
    more: str | None  # "step_id:option_id" of each option except the first of each step
    first_step: int  # the id of the first step; the ids of the others follow without a gap
    times: str | None  # "step_id:milliseconds" of each judgment with an active time
    cells: str


class ExportRow:
    """One row of a manifest. The record is built on first use."""

    __slots__ = ("_record", "facts", "plain")

    def __init__(self, facts: RowFacts, plain: CompactRow | None, record: TraceRecord | None = None) -> None:
        self.facts = facts
        self.plain = plain
        self._record = record

    @property
    def record(self) -> TraceRecord:
        if self._record is None:
            self._record = _build_own_record(self.facts, self.plain)
        return self._record


def make_export_row(record: TraceRecord, **facts: Any) -> ExportRow:
    """Make the export row of the record's first submission without a database. `facts` override fields of the row."""
    submission = record.submissions[0] if record.submissions else None
    values: dict[str, Any] = dict.fromkeys(RowFacts._fields) | {
        "position": 0,
        "submission": 1 if submission else None,
        "score_version": "",
        "trace": 1,
        "problem_digest": "",
        "labeler": submission and submission.labeler,
        "machine": submission.machine if submission else "",
        "kind": record.kind,
        "n_steps": len(record.steps),
        "ref": record.ref,
        "outcome_by": record.outcome_by,
        "outcome_grader": record.outcome_grader,
        "text": record.problem.text,
        "has_reference_answer": record.problem.answer is not UNSET,
        "has_reference_solution": record.problem.solution is not UNSET,
        "problem_ref": record.problem.ref,
        "domain": record.problem.domain,
    }
    return ExportRow(RowFacts(**values | facts), None, record)


def _build_own_record(facts: RowFacts, plain: CompactRow | None) -> TraceRecord:
    if plain is None:
        return build_record(facts, [], [])
    steps = split_options(plain)
    own = [StepRecord([OptionRecord(text) for text in texts]) for texts in steps[: facts.n_steps]]
    times = dict(item.split(":") for item in plain.times.split(" ")) if plain.times else {}
    turns = [_build_turn(turn, steps, times.get(str(plain.first_step + turn.position))) for turn in split_turns(plain)]
    return build_record(facts, own, turns)


def build_record(facts: RowFacts, steps: list[StepRecord], turns: list[TurnRecord]) -> TraceRecord:
    return TraceRecord(
        problem=ProblemRecord(
            facts.text,
            facts.reference_answer if facts.has_reference_answer else UNSET,
            facts.reference_solution if facts.has_reference_solution else UNSET,
            facts.problem_ref,
            facts.domain,
        ),
        steps=steps,
        kind=facts.kind,
        ref=facts.ref,
        answer=facts.answer,
        verifier_score=facts.verifier_score,
        is_right=facts.is_right,
        outcome_by=facts.outcome_by,
        outcome_grader=facts.outcome_grader,
        provenance=_build_provenance(facts),
        submissions=[] if facts.submission is None else [_build_submission(facts, turns)],
        residue=None if facts.residue is None else unpack_residue(bytes(facts.residue)),
    )


def _build_provenance(facts: RowFacts) -> ProvenanceRecord | None:
    if facts.policy is None:
        return None
    return ProvenanceRecord(
        facts.base_model or "", facts.policy, scaffold=facts.scaffold or "", segmenter=facts.segmenter or ""
    )


def _build_submission(facts: RowFacts, turns: list[TurnRecord]) -> SubmissionRecord:
    return SubmissionRecord(
        turns,
        labeler=facts.labeler,
        machine=facts.machine or "",
        submitted_at=facts.submitted_at,
        generation=facts.generation,
        is_quality_control=facts.is_quality_control,
        is_screening=facts.is_screening,
        total_ms=facts.total_ms,
        finish_reason=facts.finish_reason,
        finish_note=facts.finish_note or "",
    )


# --- compact submissions -------------------------------------------------------------------------------------------


ShownOption = tuple[int, int | None, bool | None]  # place, rating, flag


class RatingCell(NamedTuple):
    """One judgment without the text of its option."""

    shown: str
    chosen: int | None
    rating: int | None
    flagged: bool | None
    place: str  # "step_id:option_id", or "" if only option 0 was shown


class CompactTurn(NamedTuple):
    position: int
    chosen: int | None
    shown: list[ShownOption]


def parse_cell(text: str) -> RatingCell:
    shown, chosen, rating, flagged, *place = text.split(",")
    return RatingCell(
        shown, int(chosen) if chosen else None, int(rating) if rating else None, _FLAGS[flagged], ":".join(place)
    )


_FLAGS = {"": None, "false": False, "true": True}


def split_options(plain: CompactRow) -> list[list[str]]:
    """Return the texts of the options of each step."""
    texts = plain.texts.split(SEPARATOR)
    if not plain.more:
        return [[text] for text in texts]
    extra: dict[int, int] = {}
    for item in plain.more.split(" "):
        position = int(item.partition(":")[0]) - plain.first_step
        extra[position] = extra.get(position, 0) + 1
    options: list[list[str]] = []
    at = 0
    while at < len(texts):
        stop = at + 1 + extra.get(len(options), 0)
        options.append(texts[at:stop])
        at = stop
    return options


def split_turns(plain: CompactRow) -> list[CompactTurn]:
    places = _option_places(plain)
    turns: list[CompactTurn] = []
    before: tuple[str, str] | None = None
    for item in plain.cells.split(";"):
        cell = _CELLS.get(item) or _parse_cached_cell(item)
        if not cell.place:
            turns.append(CompactTurn(len(turns), cell.chosen, [(0, cell.rating, cell.flagged)]))
            before = None
            continue
        step = cell.place.partition(":")[0]
        if before != (step, cell.shown):
            shown: list[ShownOption] = [(int(place), None, None) for place in cell.shown.split()]
            turns.append(CompactTurn(len(turns), cell.chosen, shown))
            before = (step, cell.shown)
        place = places.get(cell.place, 0)
        turns[-1].shown[:] = [
            (each[0], cell.rating, cell.flagged) if each[0] == place else each for each in turns[-1].shown
        ]
    return turns


def _option_places(plain: CompactRow) -> dict[str, int]:
    """Map "step_id:option_id" to the position of the option in its step."""
    places: dict[str, int] = {}
    step, place = "", 0
    for item in plain.more.split(" ") if plain.more else ():
        item_step = item.partition(":")[0]
        place = place + 1 if item_step == step else 1
        places[item], step = place, item_step
    return places


_CELLS: dict[str, RatingCell] = {}


def _parse_cached_cell(text: str) -> RatingCell:
    """Parse a cell and cache it if it names no option: there are only a few different ones."""
    cell = parse_cell(text)
    if not cell.place:
        _CELLS[text] = cell
    return cell


def _build_turn(turn: CompactTurn, steps: list[list[str]], active_ms: str | None) -> TurnRecord:
    texts = steps[turn.position]
    shown = [JudgmentRecord(texts[place], rating, flagged) for place, rating, flagged in turn.shown]
    return TurnRecord(turn.position, shown, turn.chosen, active_ms=None if active_ms is None else int(active_ms))
