"""The record types that readers produce and writers consume, and functions that make them.

An absent field is `UNSET`; a null field is None.
"""

import datetime as dt
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import zstandard
from msgspec import UNSET, Meta, Struct, UnsetType

from formats import segmenters

PREGENERATED = "pregenerated"
LIVE = "live"
MAX_RESIDUE_BYTES = 64 * 1024 * 1024  # more than a line may have

# The name of a trace, a problem or a model. Two short names and their separator fit into one name.
RecordName = Annotated[str, Meta(max_length=200)]
ShortRecordName = Annotated[str, Meta(max_length=80)]


class ImageRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    """An image of a text: where it is, until it is loaded, then the digest of its pixels."""

    source: str = ""  # a data URI, or the path of a file beside the records
    description: str = ""
    digest: str = ""


class LoadedImage(Struct, frozen=True, gc=False):
    """An image as it is stored: a PNG without metadata."""

    digest: str  # of its pixels
    width: int
    height: int
    data: bytes
    original_sha256: str  # of the file that it was made of


class ProblemRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    text: str  # with a placeholder for each image
    answer: str | UnsetType | None = UNSET
    solution: str | UnsetType | None = UNSET
    ref: str = ""
    domain: str = ""
    images: tuple[ImageRecord, ...] = ()  # in the order of their placeholders


class ProvenanceRecord(Struct, frozen=True, gc=False):
    base_model: str = ""
    policy: str = ""
    sampler: dict[str, object] = {}
    scaffold: str = ""
    segmenter: str = ""
    reasoning: str = ""  # what the trace shows of it: raw, summarised, partly_hidden or none
    reasoning_by: str = ""  # who summarized or hid it


class PartRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    kind: str
    text: str = ""
    name: str = ""
    call_ref: str = ""
    media_type: str = ""
    source: str = ""  # of an image, until it is loaded; its text is a placeholder with the description
    digest: str = ""  # of the pixels of an image


class OptionRecord(Struct, frozen=True, gc=False, omit_defaults=True):
    text: str
    origin: str = "model"
    parts: tuple[PartRecord, ...] = ()


class StepRecord(Struct, gc=False, omit_defaults=True):
    """A step of the trace with its options. The first option is the trace's own text."""

    options: list[OptionRecord]
    kind: str = "reasoning"
    is_rateable: bool = True
    separator: str = ""
    source_position: int | None = None
    agent: str = ""  # the subagent, as a path of names; the main agent has none


class EvidenceRecord(Struct, gc=False, omit_defaults=True):
    """A quote that shows an error. Files may say what kind of error each quote shows."""

    text: str
    start: int | None = None  # characters of the option's text; None if the text does not contain the quote
    end: int | None = None
    kind: str = ""
    severity: int | None = None
    reason: str = ""
    number: int | None = None  # its place in the file's list of all errors of the trace


class CitationRecord(Struct, gc=False, omit_defaults=True):
    """A clause of a guideline or policy that a rating cites. The digest is that of the clause's text."""

    clause: str
    digest: str = ""
    version: str = ""  # of the guideline


class JudgmentRecord(Struct, gc=False, omit_defaults=True):
    """An option that was shown, and its rating."""

    text: str
    rating: int | None = None
    flagged: bool | None = None
    category: str = ""
    reason: str = ""
    error_link: str = ""  # how the step relates to an earlier error (`formats.label_sets`)
    severity: int | None = None  # of an error, from 1 (low) to 3 (high)
    value: float | None = None
    rollouts: int | None = None
    successes: int | None = None
    evidence: list[EvidenceRecord] = []
    citations: list[CitationRecord] = []


class WrittenStep(Struct, gc=False, omit_defaults=True):
    """A step that the rater wrote."""

    text: str
    rating: int | None = None
    flagged: bool | None = None
    corrected_rating: int | None = None


class TurnRecord(Struct, gc=False, omit_defaults=True):
    position: int
    shown: list[JudgmentRecord] | None = None
    chosen: int | None = None
    written: WrittenStep | None = None
    comment: str = ""
    active_ms: int | None = None
    missing: str = ""  # what the trace leaves out after this step

    def path_rating(self) -> int | None:
        """Return the rating of the chosen option, or of the trace's own option if none was chosen or written."""
        if not self.shown or (self.chosen is None and self.written is not None):
            return None
        return self.shown[self.chosen or 0].rating


class SubmissionRecord(Struct, gc=False, omit_defaults=True):
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
    protocol: str = ""  # that the ratings follow; "" if the file does not say
    answers: dict[str, str] = {}  # to questions on the whole trace, by the code of the question


class StepChange(Struct, frozen=True):
    """A change of one step by hand: where its text is cut, and whether it is merged with the step before it."""

    position: int
    cuts: tuple[int, ...] = ()  # characters of the text before each cut
    merges: bool = False


class OriginalRecord(Struct, frozen=True, gc=False):
    """The record as the file has it, without labels, for a format that cannot be written from the steps."""

    format: str
    content: bytes  # JSON


class TraceRecord(Struct, gc=False, omit_defaults=True):
    problem: ProblemRecord
    steps: list[StepRecord]
    kind: str = PREGENERATED
    ref: str = ""  # the id in the file
    answer: str | None = None
    verifier_score: float | None = None
    is_right: bool | None = None
    outcome_by: str = ""  # "file" if the outcome is known and the format does not say more
    outcome_grader: str = ""
    provenance: ProvenanceRecord | None = None
    pair: str = ""  # of traces that differ by an intervention
    pair_half: str = ""  # "with" or "without" the intervention
    metadata: dict[str, object] = {}  # fields of the file that the format does not define
    original: OriginalRecord | None = None
    step_changes: tuple[StepChange, ...] = ()  # that a person made before the import
    submissions: list[SubmissionRecord] = []
    images: list[LoadedImage] = []  # that problem and steps refer to by their digests
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


def make_steps(texts: Iterable[str]) -> list[StepRecord]:
    return [StepRecord([OptionRecord(text)]) for text in texts]


def cut_steps(text: str, *, segmenter: str) -> list[StepRecord]:
    pieces = segmenters.cut_text(text, segmenter=segmenter)
    return [StepRecord([OptionRecord(piece.text)], separator=piece.separator) for piece in pieces]


def make_turns(texts: Sequence[str], ratings: Sequence[int | None]) -> list[TurnRecord]:
    """Make one turn for each rating. The texts after the last rating are unrated."""
    return [make_turn(position, texts[position], rating) for position, rating in enumerate(ratings)]


def make_submission_to_first_error(
    texts: Sequence[str], index: int | None, *, labeler: str, finish_note: str = ""
) -> SubmissionRecord:
    """Rate every step before the first error positive and none after it. With None, all steps are positive."""
    return SubmissionRecord(
        make_turns(texts, [1] * len(texts) if index is None else [1] * index + [-1]),
        labeler=labeler,
        finish_reason="solution" if index is None else "found_error",
        finish_note=finish_note,
    )


def make_turn(position: int, text: str, rating: int | None) -> TurnRecord:
    chosen = None if rating == -1 else 0
    return TurnRecord(position, shown=[JudgmentRecord(text, rating)], chosen=chosen)


def join_content(content: object) -> str:
    """Return the content of a message as text. Pieces that are not text are shown as JSON."""
    pieces = content if isinstance(content, list) else [] if content is None else [content]
    texts = (piece.get("text") if isinstance(piece, dict) else piece for piece in pieces)
    return "\n".join(
        text if isinstance(text, str) else msgspec.json.encode(piece).decode()
        for text, piece in zip(texts, pieces, strict=True)
    )


def keep_original(format: str, members: Mapping[str, object], *, labels: Collection[str]) -> OriginalRecord:
    """Keep the members of a record that are no labels."""
    kept = {key: value for key, value in members.items() if key not in labels}
    return OriginalRecord(format, json.dumps(kept, ensure_ascii=False, allow_nan=False).encode())


def load_original(record: TraceRecord, format: str) -> dict[str, Any] | None:
    """Load the members that `keep_original` kept, None if the trace has none of this format."""
    original = record.original
    return json.loads(original.content) if original is not None and original.format == format else None


def pack_residue(line: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=6).compress(line)


def unpack_residue(packed: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MAX_RESIDUE_BYTES)
