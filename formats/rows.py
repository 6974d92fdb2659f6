"""One submission as a snapshot reads it from the database. This module makes no query itself.

Nearly all submissions are compact: every step is reasoning, and no rating has a comment. For these the database sends
all texts as one string and all ratings as another, which is fastest: PRM800K is written from these strings without an
object for each step. Other formats build the record on demand.
"""

import datetime as dt
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, NamedTuple

from msgspec import UNSET

from formats.records import (
    LIVE,
    ImageRecord,
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


class MachineIdentity(NamedTuple):
    """The machine that made a submission on the platform, and what the submission cost."""

    kind: str  # judge, monte_carlo or prm
    name: str
    version: int
    model: str
    prompt_digest: str
    endpoint_family: str
    votes: int
    cost: float  # in the currency of the project
    progress: Mapping[int, float] = {}  # of a prover: the change of its value at each step, by position


PARTIAL_VIEWS = ("reasoning_only", "actions_only")


class RowFacts(NamedTuple):
    """One submission without its steps. `labeling/datasets/row_facts.sql` defines where each field comes from."""

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
    exposure: str | None  # the arm of suggestions, or a partial view; None if neither was drawn
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
    protocol: str | None  # of the submission
    total_ms: int | None
    generation: int | None
    is_quality_control: bool | None
    is_screening: bool | None
    answers: str | None  # to questions on the whole trace, as JSON
    residue: Any
    labeler: str | None
    machine: str | None
    rater_kind: str | None
    label_source: str | None  # the file that the submission was imported from
    label_kind: str | None  # what the importer said about the labels of that file
    identity: MachineIdentity | None  # filled in by the package that exports; no column has it
    kind: str
    n_steps: int
    answer: str | None
    verifier_score: float | None
    is_right: bool | None
    metadata: str | None  # JSON
    ref: str
    outcome_by: str
    outcome_grader: str
    base_model: str | None
    policy: str | None
    scaffold: str | None
    segmenter: str | None
    reasoning: str | None
    reasoning_by: str | None
    pair: str | None
    pair_half: str | None
    text: str
    reference_answer: str | None
    reference_solution: str | None
    has_reference_answer: bool
    has_reference_solution: bool
    problem_ref: str
    domain: str
    images: str | None  # of the problem: digest and description of each, as JSON

    @property
    def is_partial_view(self) -> bool:
        """Return whether some steps were hidden from the rater."""
        return self.exposure in PARTIAL_VIEWS

    @property
    def arm(self) -> str:
        return self.draw_arm or self.lane_arm or ""

    @property
    def exported_generation(self) -> int | None:
        """Return the generation in the file, or for a submission made here the generation that assigned it. Live
        traces have none."""
        if self.kind == LIVE or self.origin != ORIGIN_HERE or self.generation is not None:
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


@dataclass(slots=True)
class ExportRow:
    """One row of a manifest. The record is built on first use."""

    facts: RowFacts
    plain: CompactRow | None
    _record: TraceRecord | None = None

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
        "protocol": submission.protocol if submission else None,
        "answers": json.dumps(submission.answers) if submission and submission.answers else None,
        "rater_kind": "machine" if submission and submission.machine else "imported" if submission else None,
        "kind": record.kind,
        "n_steps": len(record.steps),
        "metadata": json.dumps(record.metadata) if record.metadata else None,
        "ref": record.ref,
        "pair": record.pair or None,
        "pair_half": record.pair_half or None,
        "outcome_by": record.outcome_by,
        "outcome_grader": record.outcome_grader,
        "text": record.problem.text,
        "has_reference_answer": record.problem.answer is not UNSET,
        "has_reference_solution": record.problem.solution is not UNSET,
        "problem_ref": record.problem.ref,
        "domain": record.problem.domain,
        "images": json.dumps([[each.digest, each.description] for each in record.problem.images]),
    }
    return ExportRow(RowFacts(**values | facts), None, record)


def _build_own_record(facts: RowFacts, plain: CompactRow | None) -> TraceRecord:
    if plain is None:
        return build_record(facts, [], [])
    steps = _split_options(plain)
    own = [StepRecord([OptionRecord(text) for text in texts]) for texts in steps[: facts.n_steps]]
    return build_record(facts, own, _build_turns(plain, steps))


def build_record(facts: RowFacts, steps: list[StepRecord], turns: list[TurnRecord]) -> TraceRecord:
    provenance = None
    if facts.policy is not None:
        provenance = ProvenanceRecord(
            facts.base_model or "",
            facts.policy,
            scaffold=facts.scaffold or "",
            segmenter=facts.segmenter or "",
            reasoning=facts.reasoning or "",
            reasoning_by=facts.reasoning_by or "",
        )
    return TraceRecord(
        problem=ProblemRecord(
            facts.text,
            facts.reference_answer if facts.has_reference_answer else UNSET,
            facts.reference_solution if facts.has_reference_solution else UNSET,
            facts.problem_ref,
            facts.domain,
            _parse_images(facts.images) if facts.images else (),
        ),
        steps=steps,
        kind=facts.kind,
        ref=facts.ref,
        answer=facts.answer,
        verifier_score=facts.verifier_score,
        is_right=facts.is_right,
        outcome_by=facts.outcome_by,
        outcome_grader=facts.outcome_grader,
        provenance=provenance,
        pair=facts.pair or "",
        pair_half=facts.pair_half or "",
        metadata=json.loads(facts.metadata) if facts.metadata else {},
        submissions=[] if facts.submission is None else [_build_submission(facts, turns)],
        residue=None if facts.residue is None else unpack_residue(bytes(facts.residue)),
    )


def _parse_images(images: str) -> tuple[ImageRecord, ...]:
    return tuple(ImageRecord(digest=digest, description=description) for digest, description in json.loads(images))


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
        protocol=facts.protocol or "",
        answers=json.loads(facts.answers) if facts.answers else {},
    )


# --- compact submissions -------------------------------------------------------------------------------------------


class RatingCell(NamedTuple):
    """One judgment without the text of its option."""

    shown: tuple[int, ...]
    chosen: int | None
    rating: int | None
    flagged: bool | None
    place: str  # "step_id:option_id", or "" if only option 0 was shown


_FLAGS = {"": None, "false": False, "true": True}


@lru_cache(maxsize=2000)  # nearly all cells name no option, and there are only a few different ones
def parse_cell(text: str) -> RatingCell:
    shown, chosen, rating, flagged, *place = text.split(",")
    return RatingCell(
        tuple(map(int, shown.split())),
        int(chosen) if chosen else None,
        int(rating) if rating else None,
        _FLAGS[flagged],
        ":".join(place),
    )


def _split_options(plain: CompactRow) -> list[list[str]]:
    """Return the texts of the options of each step."""
    texts = iter(plain.texts.split(SEPARATOR))
    if not plain.more:
        return [[text] for text in texts]
    n_more = Counter(int(item.partition(":")[0]) - plain.first_step for item in plain.more.split(" "))
    options: list[list[str]] = []
    for text in texts:
        options.append([text, *islice(texts, n_more[len(options)])])
    return options


def _build_turns(plain: CompactRow, steps: list[list[str]]) -> list[TurnRecord]:
    places = _option_places(plain)
    times = dict(item.split(":") for item in plain.times.split(" ")) if plain.times else {}
    turns: list[TurnRecord] = []
    before: tuple[str, tuple[int, ...]] | None = None
    for item in plain.cells.split(";"):
        cell = parse_cell(item)
        key = (cell.place.partition(":")[0], cell.shown) if cell.place else None
        if key is None or key != before:
            texts, active_ms = steps[len(turns)], times.get(str(plain.first_step + len(turns)))
            shown = [JudgmentRecord(texts[place]) for place in cell.shown]
            turns.append(TurnRecord(len(turns), shown, cell.chosen, active_ms=int(active_ms) if active_ms else None))
            before = key
        rated = places.get(cell.place, 0)
        if rated in cell.shown:  # a review without ratings names no option
            judgment = shown[cell.shown.index(rated)]
            judgment.rating, judgment.flagged = cell.rating, cell.flagged
    return turns


def _option_places(plain: CompactRow) -> dict[str, int]:
    """Map "step_id:option_id" to the position of the option in its step, without first options."""
    by_step = groupby(plain.more.split(" ") if plain.more else (), key=lambda item: item.partition(":")[0])
    return {item: place for _, items in by_step for place, item in enumerate(items, start=1)}
