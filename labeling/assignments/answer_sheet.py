"""The input of a merge: a batch of edits as a client sends it, and the answer sheet that the batch belongs to.

The answer sheet holds everything that decides what an edit or a submit does; one statement reads it.
"""

import datetime as dt
import itertools
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson
from django.utils.translation import gettext as _

import rawsql
from formats import integers
from labeling.assignments.errors import AssignmentUnknown, BatchRefused, EditRefused
from labeling.models.assignment import AssignmentState, ErrorLink, RatingEditKind, Severity
from labeling.models.trace import TraceKind
from labeling.projects import protocols, trace_questions
from labeling.projects.trace_questions import TraceQuestion

BATCH_LIMIT = 1000
TEXT_LIMIT = 20_000
CATEGORY_LIMIT = 500  # all kinds of a step together
CLIENT_LENGTH = 32
EVIDENCE_LIMIT = 20  # quotes of a step
QUOTE_LIMIT = 2000  # characters
CITATION_LIMIT = 20  # clauses of a rating
_MAX_INTEGER = 2**31 - 1
_MAX_OPTION = 2**15 - 1
_DAY_MS = 24 * 60 * 60 * 1000
_MS, _CLOCK_TOLERANCE = dt.timedelta(milliseconds=1), dt.timedelta(seconds=5)
_RANGES = (
    ("sequence", 1, _MAX_INTEGER),
    ("seen", 0, _MAX_INTEGER),
    ("step", 0, _MAX_INTEGER),
    ("option", 0, _MAX_OPTION),
    ("active_ms", 0, _DAY_MS),
    ("severity", int(Severity.LOW), int(Severity.HIGH)),
)
_READ = rawsql.load_sql(__file__, "answer_sheet.sql")

PARTS: dict[str, str] = {  # the part of an answer sheet that each kind of edit changes
    RatingEditKind.RATE.value: "rating",
    RatingEditKind.UNDO.value: "rating",
    RatingEditKind.CHOOSE.value: "chosen",
    RatingEditKind.WRITE_STEP.value: "written",
    RatingEditKind.COMMENT.value: "comment",
    RatingEditKind.MISSING.value: "missing",
    RatingEditKind.ANSWER.value: "answer",
}


class EditTarget(NamedTuple):
    """The value that an edit changes. Edits of different targets never conflict."""

    part: str
    step: int
    option: int | None
    question: str = ""


def edit_target(kind: str, step: int, option: int | None, question: str) -> EditTarget:
    part = PARTS[kind]
    if part == "answer":  # of the whole trace
        return EditTarget(part, 0, None, question)
    return EditTarget(part, step, option if part == "rating" else None)


class Quote(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of an option's text, by the characters where it begins and ends; None if the text does not contain it."""

    text: str
    start: int | None = None
    end: int | None = None


class Citation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A clause that a rating cites: its number, the digest of its text, and the version of the guideline."""

    clause: str
    digest: str
    version: str


class IncomingEdit(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a rater. `rate` and `undo` name an option, `choose` the option that the path continues with, and
    `answer` the question on the whole trace."""

    sequence: int  # grows by one with each edit of the client
    seen: int  # the assignment's version that the client knew at the time
    kind: str
    step: int  # position
    option: int | None = None  # position
    question: str = ""  # its code
    rating: int | None = None  # for `undo` the previous one, if any
    flagged: bool | None = None
    category: str = ""
    error_link: str = ""  # how the step relates to an earlier error
    severity: int | None = None
    evidence: list[Quote] | None = None  # of a negative rating
    citations: list[Citation] | None = None
    text: str = ""  # the reason of a rating, the rater's own step, the comment, what is missing, or the answer
    active_ms: int = 0
    made_at: dt.datetime | None = None

    def stored_evidence(self) -> list[dict[str, Any]] | None:
        """Return the quotes as a row stores them."""
        return msgspec.to_builtins(self.evidence) if self.evidence else None

    def stored_citations(self) -> list[dict[str, Any]] | None:
        """Return the cited clauses as a row stores them."""
        return msgspec.to_builtins(self.citations) if self.citations else None

    @property
    def target(self) -> EditTarget:
        return edit_target(self.kind, self.step, self.option, self.question)


class EditBatch(NamedTuple):
    """A message of one client."""

    assignment_id: int
    rater_id: int
    client: str
    edits: tuple[IncomingEdit, ...]


def validate_batch(assignment_id: int, rater_id: int, client: str, edits: Sequence[IncomingEdit]) -> EditBatch:
    """Return the batch. Raises BatchRefused or EditRefused for values that no row can store."""
    if not 0 < len(client) <= CLIENT_LENGTH or not _is_storable_text(client):
        raise BatchRefused(_("The client ID must have 1 to %(limit)d characters.") % {"limit": CLIENT_LENGTH})
    if len(edits) > BATCH_LIMIT:
        raise BatchRefused(_("A batch can have at most %(limit)d edits.") % {"limit": BATCH_LIMIT})
    sequences: set[int] = set()
    for index, edit in enumerate(edits):
        fault = _find_fault(edit) or (
            ("sequence", _("another edit has the same sequence number")) if edit.sequence in sequences else None
        )
        if fault:
            refuse_edit(edit, index, *fault)
        sequences.add(edit.sequence)
    return EditBatch(assignment_id, rater_id, client, tuple(edits))


def validate_reason(reason: str) -> str:
    """Return the rater's reason for ending a trace. Raises BatchRefused if no row can store it."""
    if len(reason) > TEXT_LIMIT:
        raise BatchRefused(_("The reason is longer than %(limit)d characters.") % {"limit": TEXT_LIMIT})
    if not _is_storable_text(reason):
        raise BatchRefused(_("The reason contains an invalid character (NUL or an unpaired surrogate)."))
    return reason


def refuse_edit(edit: IncomingEdit, index: int, field: str, fault: str) -> None:
    # Without the number of the step: people count the steps that can be rated, and programs get the index.
    message = _("This edit was not saved: %(fault)s.") % {"fault": fault}
    raise EditRefused(message, index=index, sequence=edit.sequence, field=field)


def _find_fault(edit: IncomingEdit) -> tuple[str, str] | None:
    if edit.kind not in PARTS:
        return "kind", _("unknown kind of edit %(kind)s") % {"kind": edit.kind[:40]}
    return _find_number_fault(edit) or _find_text_fault(edit)


def _find_number_fault(edit: IncomingEdit) -> tuple[str, str] | None:
    if edit.rating is not None and edit.rating not in (-1, 0, 1):
        return "rating", _("%(rating)s is not a rating; use -1, 0 or 1") % {"rating": edit.rating}
    if PARTS[edit.kind] == "rating" and edit.option is None:
        return "option", _("a rating must name its option")
    for field, least, most in _RANGES:
        value = getattr(edit, field)
        if value is not None and not least <= value <= most:
            return field, _("%(field)s is out of range") % {"field": field}
    if (edit.kind == RatingEditKind.ANSWER) != bool(edit.question):
        return "question", _("an answer, and no other edit, must name its question")
    return None


def _find_text_fault(edit: IncomingEdit) -> tuple[str, str] | None:
    if edit.error_link and edit.error_link not in ErrorLink.values:
        return "error_link", _("unknown mark %(mark)s") % {"mark": edit.error_link[:40]}
    if len(edit.category) > CATEGORY_LIMIT:
        return "category", _("the error category is longer than %(limit)d characters") % {"limit": CATEGORY_LIMIT}
    if edit.evidence and not _is_storable_evidence(edit.evidence):
        return "evidence", _("a quote is empty, too long, or not within the text, or there are too many")
    citations = edit.citations or ()
    if len(citations) > CITATION_LIMIT or len(set(citations)) < len(citations):
        return "citations", _("a clause is cited twice, or there are too many")
    if edit.question and (len(edit.question) > trace_questions.MAX_CODE_LENGTH or not _is_storable_text(edit.question)):
        return "question", _("the question has an invalid code")
    if len(edit.text) > TEXT_LIMIT:
        return "text", _("the text is longer than %(limit)d characters") % {"limit": TEXT_LIMIT}
    if not _is_storable_text(edit.text) or not _is_storable_text(edit.category):
        return "text", _("the text contains an invalid character (NUL or an unpaired surrogate)")
    return None


def _is_storable_evidence(quotes: Sequence[Quote]) -> bool:
    def is_within(start: int | None, end: int | None) -> bool:
        if start is None or end is None:
            return start is None and end is None
        return 0 <= start < end <= _MAX_INTEGER

    return len(quotes) <= EVIDENCE_LIMIT and all(
        0 < len(quote.text) <= QUOTE_LIMIT and _is_storable_text(quote.text) and is_within(quote.start, quote.end)
        for quote in quotes
    )


def _is_storable_text(text: str) -> bool:
    """Return whether PostgreSQL can store the text: no NUL and no unpaired surrogate."""
    if not text:
        return True
    try:
        return "\x00" not in text and (text.isascii() or bool(text.encode()))
    except UnicodeEncodeError:
        return False


class StepRow(NamedTuple):
    id: int
    is_rateable: bool
    options: tuple[int, ...]  # ids by position


class StepReviewRow(NamedTuple):
    shown: str | None = None
    chosen: int | None = None
    written_text: str | None = None
    comment: str = ""
    active_ms: int | None = None
    missing: str = ""


class JudgmentRow(NamedTuple):
    rating: int | None = None
    flagged: bool | None = None
    category: str = ""
    reason: str = ""
    error_link: str = ""
    severity: int | None = None
    evidence: list[dict[str, Any]] | None = None
    citations: list[dict[str, Any]] | None = None


class AnswerRow(NamedTuple):
    """The answer to a question on the whole trace; "" for none."""

    value: str = ""
    active_ms: int | None = None


class HistoryEdit(NamedTuple):
    """An earlier edit, with the columns that a merge compares."""

    client: str
    sequence: int
    seen: int
    version: int
    kind: str
    step: int
    option: int | None
    question: str
    was_applied: bool


class AssignmentFacts(NamedTuple):
    """Columns of assignment, project, trace and rater."""

    assignment: int
    project: int
    trace: int
    version: int
    state: str
    revision: int
    submitted_revision: int
    is_reopened: bool
    holds_slot: bool
    purpose: str
    protocol: str
    requires_kind: bool
    clause_rule: str  # empty if the rater's version of the guideline has no clauses
    clauses: str | None  # of the versions of the guideline that the batch cites, as JSON
    questions: str | None  # on the whole trace, as JSON; None if the project has none
    lease_seconds: int
    trace_kind: str
    is_removed: bool
    is_withdrawn: bool
    lease_ends_at: dt.datetime | None
    first_held_at: dt.datetime | None
    opened_at: dt.datetime | None
    is_assisted: bool

    def max_active_ms(self, now: dt.datetime) -> int:
        """Return the time since the rater first got the trace, which limits active time.

        The client's clock may be wrong; small differences between the two clocks are tolerated.
        """
        begun_at = self.first_held_at or self.opened_at
        return _MAX_INTEGER if begun_at is None else int((now - begun_at + _CLOCK_TOLERANCE) / _MS)


class AnswerSheet(NamedTuple):
    """An assignment with the requested steps, their current reviews and judgments, and their earlier edits."""

    facts: AssignmentFacts
    steps: dict[int, StepRow]
    reviews: dict[int, StepReviewRow]
    judgments: dict[tuple[int, int], JudgmentRow]
    answers: dict[str, AnswerRow]  # by the code of the question
    history: tuple[HistoryEdit, ...]

    @property
    def is_closed(self) -> bool:
        """Whether it is submitted and not being corrected, so that new edits are late."""
        return self.facts.state == AssignmentState.SUBMITTED and not self.facts.is_reopened

    @property
    def is_pregenerated(self) -> bool:
        return self.facts.trace_kind == TraceKind.PREGENERATED

    def with_changes(
        self,
        reviews: dict[int, StepReviewRow],
        judgments: dict[tuple[int, int], JudgmentRow],
        answers: dict[str, AnswerRow],
    ) -> "AnswerSheet":
        return self._replace(
            reviews={**self.reviews, **reviews},
            judgments={**self.judgments, **judgments},
            answers={**self.answers, **answers},
        )

    def load_questions(self) -> tuple[TraceQuestion, ...]:
        return trace_questions.parse_questions(_decode(self.facts.questions))

    def has_clause(self, citation: Citation) -> bool:
        """Return whether that version of the guideline has the cited clause, with this text."""
        cited = (citation.version, citation.clause, citation.digest)
        return any(
            cited == (str(version), code, digest)
            for version, clauses in _decode(self.facts.clauses)
            for code, _title, digest, *_excerpt in clauses or ()
        )

    def count_unanswered(self) -> int:
        """Return how many questions on the whole trace still need an answer."""
        if self.facts.questions is None:
            return 0
        values = {code: answer.value for code, answer in self.answers.items()}
        return len(trace_questions.find_unanswered(self.load_questions(), values))

    def number_steps(self) -> dict[int, int]:
        """Return the numbers of the rateable steps by position."""
        rateable = sorted(position for position, step in self.steps.items() if step.is_rateable)
        return {position: number for number, position in enumerate(rateable, 1)}

    def protocol_steps(self) -> list[protocols.ProtocolStep]:
        unrated = JudgmentRow()
        return [
            protocols.ProtocolStep(
                position,
                step.is_rateable,
                tuple(self.judgments.get((position, n), unrated).rating for n in range(len(step.options))),
                bool(self.judgments.get((position, 0), unrated).category),
                bool(self.judgments.get((position, 0), unrated).citations),
            )
            for position, step in sorted(self.steps.items())
        ]


def load_answer_sheet(batch: EditBatch, *, steps: Collection[int] | None) -> AnswerSheet:
    """Read the answer sheet from the first to the last of these positions (None: all), with the earlier edits of these
    steps and those that the batch repeats. Raises AssignmentUnknown."""
    first, last = (0, _MAX_INTEGER) if steps is None else (min(steps, default=0), max(steps, default=-1))
    rows = rawsql.fetch_rows(
        _READ,
        {
            "assignment": batch.assignment_id,
            "rater": batch.rater_id,
            "first_step": first,
            "last_step": last,
            "client": batch.client,
            "sequences": [edit.sequence for edit in batch.edits],
            "cited_versions": sorted(_list_versions(batch.edits)),
        },
    )
    if not rows:
        raise AssignmentUnknown
    *facts, steps_json, reviews_json, answers_json, edits_json = rows[0]
    steps = {
        position: StepRow(pk, is_rateable, tuple(option for _, option in sorted(options or ())))
        for pk, position, is_rateable, options in _decode(steps_json)
    }
    reviews, judgments = {}, {}
    for position, *review, judgment_rows in _decode(reviews_json):
        reviews[position] = StepReviewRow(*review)
        for option, *judgment in judgment_rows or ():
            judgments[position, option] = JudgmentRow(*judgment)
    history = tuple(itertools.starmap(HistoryEdit, _decode(edits_json)))
    answers = {question: AnswerRow(*answer) for question, *answer in _decode(answers_json)}
    return AnswerSheet(AssignmentFacts(*facts), steps, reviews, judgments, answers, history)


def _list_versions(edits: Sequence[IncomingEdit]) -> set[int]:
    texts = (citation.version for edit in edits for citation in edit.citations or ())
    versions = (integers.parse_integer(text, digits=9) for text in texts)
    return {version for version in versions if version is not None}


def _decode(text: str | None) -> list[Any]:
    return orjson.loads(text) if text and text != "[]" else []
