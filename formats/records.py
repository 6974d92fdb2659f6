"""What a reader makes of one record of a file, and what a writer makes a record from. Pure: no Django, no models.

A field that the file leaves out is `UNSET`; a field that it has as null is None.
"""

import datetime as dt

from msgspec import UNSET, Struct, UnsetType

PREGENERATED = "pregenerated"
LIVE = "live"


class ProblemRecord(Struct, frozen=True, gc=False):
    text: str
    answer: str | UnsetType | None = UNSET
    solution: str | UnsetType | None = UNSET
    ref: str = ""
    domain: str = ""


class ProvenanceRecord(Struct, frozen=True, gc=False):
    base_model: str = ""
    policy: str = ""
    sampler: dict[str, object] = {}
    scaffold: str = ""
    segmenter: str = ""
    reasoning: str = ""


class PartRecord(Struct, frozen=True, gc=False):
    kind: str
    text: str = ""
    name: str = ""
    call_ref: str = ""
    media_type: str = ""
    data: bytes | None = None


class OptionRecord(Struct, frozen=True, gc=False):
    text: str
    origin: str = "model"
    parts: tuple[PartRecord, ...] = ()


class StepRecord(Struct, gc=False):
    """A step of the trace itself, with the options that it came with."""

    options: list[OptionRecord]
    kind: str = "reasoning"
    is_rateable: bool = True
    separator: str = ""
    source_position: int | None = None


class JudgmentRecord(Struct, gc=False):
    """One option as it was shown, and what the rater said of it."""

    text: str
    rating: int | None = None
    flagged: bool | None = None
    category: str = ""
    reason: str = ""
    value: float | None = None
    rollouts: int | None = None
    successes: int | None = None


class WrittenStep(Struct, gc=False):
    """A step in the rater's own words."""

    text: str
    rating: int | None = None
    flagged: bool | None = None
    corrected_rating: int | None = None


class TurnRecord(Struct, gc=False):
    position: int
    shown: list[JudgmentRecord] | None = None
    chosen: int | None = None
    written: WrittenStep | None = None
    comment: str = ""
    active_ms: int | None = None

    def path_rating(self) -> int | None:
        """The rating of the option that was chosen; where none was, of the first, which is the trace's own."""
        if not self.shown or (self.chosen is None and self.written is not None):
            return None
        return self.shown[self.chosen or 0].rating


class SubmissionRecord(Struct, gc=False):
    turns: list[TurnRecord]
    labeler: str | None = None
    machine: str = ""
    submitted_at: dt.datetime | None = None
    generation: int | None = None
    is_quality_control: bool | None = None
    is_screening: bool | None = None
    total_ms: int | None = None
    finish_reason: str | None = None
    finish_note: str = ""


class TraceRecord(Struct, gc=False):
    problem: ProblemRecord
    steps: list[StepRecord]
    kind: str = PREGENERATED
    ref: str = ""  # what the file calls it
    answer: str | None = None
    verifier_score: float | None = None
    is_right: bool | None = None
    outcome_by: str = ""
    outcome_grader: str = ""
    provenance: ProvenanceRecord | None = None
    submissions: list[SubmissionRecord] = []
    line: int | None = None
    digest: str = ""  # of the bytes of the record
    residue: bytes | None = None  # those bytes, where the fields above do not give them back


class BadLine(Struct, frozen=True, gc=False):
    """A record that was refused: where, and why. Lines and columns count from 1, columns in characters."""

    line: int
    column: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.reason}"
