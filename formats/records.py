"""The record types that readers produce and writers consume.

An absent field is `UNSET`; a null field is None.
"""

import datetime as dt

import zstandard
from msgspec import UNSET, Struct, UnsetType

PREGENERATED = "pregenerated"
LIVE = "live"
MAX_RESIDUE_BYTES = 64 * 1024 * 1024  # more than a line may have


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
    """A step of the trace with its options. The first option is the trace's own text."""

    options: list[OptionRecord]
    kind: str = "reasoning"
    is_rateable: bool = True
    separator: str = ""
    source_position: int | None = None


class JudgmentRecord(Struct, gc=False):
    """An option that was shown, and its rating."""

    text: str
    rating: int | None = None
    flagged: bool | None = None
    category: str = ""
    reason: str = ""
    value: float | None = None
    rollouts: int | None = None
    successes: int | None = None


class WrittenStep(Struct, gc=False):
    """A step that the rater wrote."""

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
        """Return the rating of the chosen option, or of the trace's own option if none was chosen or written."""
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
    ref: str = ""  # the id in the file
    answer: str | None = None
    verifier_score: float | None = None
    is_right: bool | None = None
    outcome_by: str = ""
    outcome_grader: str = ""
    provenance: ProvenanceRecord | None = None
    submissions: list[SubmissionRecord] = []
    line: int | None = None
    digest: str = ""  # SHA-256 of the bytes of the record
    residue: bytes | None = None  # those bytes, if the fields above do not reproduce them


class BadLine(Struct, frozen=True, gc=False):
    """An invalid record. Lines and columns count from 1, columns in characters."""

    line: int
    column: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.reason}"


def pack_residue(line: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=6).compress(line)


def unpack_residue(packed: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_RESIDUE_BYTES)
