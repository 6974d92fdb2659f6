"""Find or make the rows of one chunk of an import: problems, traces, steps and options, then submissions.

Call everything inside one transaction, after `lock_project_import`. Existing rows are found by digests of named
fields in a fixed order, never of whole structs, so that a new field of a record does not change the identity of rows
that are already imported.
"""

import datetime as dt
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from django.db import connection
from django.db.models import Max
from msgspec import UNSET, Struct

import rawsql
from formats import near_duplicates
from formats.records import (
    LIVE,
    PREGENERATED,
    OptionRecord,
    PartRecord,
    ProblemRecord,
    ProvenanceRecord,
    StepRecord,
    SubmissionRecord,
    TraceRecord,
    TurnRecord,
    WrittenStep,
    pack_residue,
)
from labeling import raters
from labeling.models import (
    Assignment,
    Judgment,
    OptionPart,
    PairedTrace,
    Problem,
    ProblemImage,
    Project,
    Provenance,
    Rater,
    Source,
    Step,
    StepReview,
    Submission,
    Trace,
    TraceAnswer,
    TraceOriginal,
)
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, AssignmentState
from labeling.traces import packed_rows, stored_images
from rawsql import BulkRow, BulkTable, foreign_keys

PROBLEM = BulkTable(
    Problem,
    *("id", "project_id", "digest", "normal_digest", "ref", "domain", "text", "reference_answer"),
    *("reference_solution", "has_reference_answer", "has_reference_solution", "is_reserve", "source_id"),
)
TRACE = BulkTable(
    Trace,
    *("id", "project_id", "problem_id", "digest", "kind", "n_steps", "ref", "answer", "verifier_score"),
    *("is_right", "outcome_by", "outcome_grader", "provenance_id", "source_id", "source_line", "added_at"),
    "metadata",
)
PAIRED = BulkTable(PairedTrace, "trace_id", "project_id", "pair", "half")
ORIGINAL = BulkTable(TraceOriginal, "trace_id", "project_id", "format", "content")
PART = BulkTable(
    OptionPart, "id", "option_id", "position", "kind", "text", "name", "call_ref", "media_type", "image_id"
)
PROBLEM_IMAGE = BulkTable(ProblemImage, "id", "problem_id", "position", "image_id", "description")
ASSIGNMENT = BulkTable(
    Assignment,
    *("id", "project_id", "rater_id", "trace_id", "purpose", "attempt", "origin", "state", "submitted_at"),
    *("finish_reason", "submitted_revision"),
)
SUBMISSION = BulkTable(
    Submission,
    *("id", "project_id", "assignment_id", "revision", "submitted_at", "finish_reason", "finish_note", "total_ms"),
    *("generation", "is_quality_control", "is_screening", "source_id", "record_digest", "record_occurrence", "residue"),
    "protocol",
)
TURN = BulkTable(
    StepReview,
    *("id", "assignment_id", "revision", "step_id", "shown", "chosen", "written_text", "written_rating"),
    *("written_flagged", "written_corrected_rating", "comment", "active_ms", "missing"),
)
JUDGMENT = BulkTable(
    Judgment,
    *("id", "turn_id", "option_id", "rating", "flagged", "category", "reason", "error_link", "severity", "value"),
    *("rollouts", "successes", "evidence", "citations"),
)
ANSWER = BulkTable(TraceAnswer, "id", "assignment_id", "revision", "question", "value")
# Parents first.
PARENT_TABLES = (PROBLEM, TRACE)
CHILD_TABLES = (PAIRED, ORIGINAL, PROBLEM_IMAGE, PART, ASSIGNMENT, SUBMISSION, TURN, JUDGMENT, ANSWER)


def digest_problem(problem: ProblemRecord) -> str:
    """Digest text, answer, solution and images. An absent value differs from null."""
    answer = None if problem.answer is UNSET else [problem.answer]
    solution = None if problem.solution is UNSET else [problem.solution]
    shown = [[image.digest for image in problem.images]] if problem.images else []
    return _digest([problem.text, answer, solution, *shown])


def digest_normalized_problem(problem: ProblemRecord) -> str:
    """Digest the normalized text. Problems with the same text and different images are different problems."""
    return near_duplicates.digest_normalized("\n".join([problem.text, *(image.digest for image in problem.images)]))


def digest_trace(record: TraceRecord, *, problem: str, occurrence: int) -> str:
    """Digest a trace. A live trace is identified by its record, any other by its content without the labels."""
    if record.kind == LIVE:
        return _digest(["live", record.digest, occurrence])
    steps = [(step.kind, len(step.options)) for step in record.steps]
    options = [option for step in record.steps for option in step.options]
    texts = [option.text for option in options]
    parts = [(place, _part_fields(option)) for place, option in enumerate(options) if option.parts]
    segmenter = record.provenance.segmenter if record.provenance else ""
    pair = [[record.pair, record.pair_half]] if record.pair else []  # the halves of a pair may have the same steps
    return _digest([problem, steps, texts, parts, record.answer, record.verifier_score, segmenter, *pair])


def is_in_reserve(normal_digest: str, share: float) -> bool:
    """Tell whether a problem belongs to the held-out set. Depends only on its text and the share."""
    return int(normal_digest[:16], 16) < share * 2.0**64


def _match_options(texts: list[str], known: list[str]) -> list[int]:
    """Return the position of each text among the options of a step. New texts are appended to `known`.

    The n-th occurrence of a text is the n-th option with that text: duplicates are never merged.
    """
    if texts == known[: len(texts)]:
        return list(range(len(texts)))
    free: defaultdict[str, list[int]] = defaultdict(list)
    for place in range(len(known) - 1, -1, -1):
        free[known[place]].append(place)
    return [_take_place(text, free[text], known) for text in texts]


def _take_place(text: str, free: list[int], known: list[str]) -> int:
    if free:
        return free.pop()
    known.append(text)
    return len(known) - 1


def _part_fields(option: OptionRecord) -> list[object]:
    return [
        [part.kind, part.text, part.name, part.call_ref, part.media_type, part.digest or None] for part in option.parts
    ]


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()


class NumberedRecord(NamedTuple):
    """A record, and how often an identical record came before it in the file."""

    record: TraceRecord
    occurrence: int


class ImportRows:
    """The collected rows by table, and the generators of their ids."""

    def __init__(self) -> None:
        tables = (*PARENT_TABLES, *CHILD_TABLES)
        self.by_table: dict[BulkTable, list[BulkRow]] = {table: [] for table in tables}
        self.new_id = {table: rawsql.new_ids(table.name).__next__ for table in tables}
        self.steps: list[bytes] = []
        self.options: list[bytes] = []
        self.has_old_parents = False  # steps of traces, or options of steps, that this transaction did not insert

    def insert(self) -> None:
        for table in PARENT_TABLES:
            table.insert(self.by_table[table])
        self._insert_texts()
        for table in CHILD_TABLES:
            table.insert(self.by_table[table])

    def _insert_texts(self) -> None:
        """Insert steps and options. If their parents were inserted just now, PostgreSQL need not look for them."""
        tables = (packed_rows.STEP, self.steps), (packed_rows.OPTION, self.options)
        may_skip = not self.has_old_parents and all(foreign_keys.may_skip_row_checks(table.name) for table, _ in tables)
        with foreign_keys.row_checks_skipped() if may_skip else nullcontext():
            for table, rows in tables:
                table.insert(rows)


def lock_project_import(project_id: int) -> None:
    """Allow only one import at a time to write to a project, until the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('labeling.traces'), %s)", [project_id])


UNDONE_REASON = "the import was undone"  # traces withdrawn for this reason come back when their file is imported again


@dataclass(slots=True)
class StepRef:
    """A step with the ids and texts of its options by position."""

    pk: int
    texts: list[str]
    option_ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class TraceRef:
    pk: int
    kind: str
    is_new: bool
    is_reserve: bool = False
    new: tuple[Sequence[int], Sequence[int], list[StepRecord]] = ((), (), [])  # ids of steps and options; the steps
    _steps: dict[int, StepRef] | None = None

    @property
    def steps(self) -> dict[int, StepRef]:
        """The steps by position. Most new traces have no ratings, so their steps are never looked up."""
        if self._steps is None:
            self._steps = dict(enumerate(_make_step_refs(*self.new)))
        return self._steps


def _make_step_refs(step_ids: Sequence[int], option_ids: Sequence[int], records: list[StepRecord]) -> Iterator[StepRef]:
    at = 0
    for pk, record in zip(step_ids, records, strict=True):
        texts = [option.text for option in record.options]
        yield StepRef(pk, texts, list(option_ids[at : at + len(texts)]))
        at += len(texts)


class TraceRows:
    """The traces of one chunk: `by_record` has one for each record, `added` the new ones."""

    def __init__(self, project: Project, source: Source, now: dt.datetime, rows: ImportRows) -> None:
        self._project = project
        self._source = source
        self._added_at = now
        self._rows = rows
        self._step_ids = rawsql.new_ids(packed_rows.STEP.name)  # of those that ratings add
        self._option_ids = rawsql.new_ids(packed_rows.OPTION.name)
        self._provenances: dict[str, int] = {}
        self._images: dict[str, int] = {}  # ids by digest
        self.by_record: list[TraceRef] = []
        self.added: list[TraceRef] = []
        self.undone: list[int] = []  # existing traces whose import was undone
        self.withdrawn_met = 0  # existing traces that were withdrawn for another reason

    def find_or_add(self, numbered: Sequence[NumberedRecord]) -> None:
        """Find or make the trace of each record."""
        if images := [image for record, _ in numbered for image in record.images]:
            self._images = stored_images.find_or_add_images(project_id=self._project.pk, images=images)
        problem_digests = [digest_problem(record.problem) for record, _ in numbered]
        problems = self._find_or_add_problems(problem_digests, [record.problem for record, _ in numbered])
        digests = [
            digest_trace(record, problem=problem, occurrence=occurrence)
            for (record, occurrence), problem in zip(numbered, problem_digests, strict=True)
        ]
        known = self._find(digests)
        new: dict[str, tuple[TraceRecord, str]] = {}
        for (record, _), digest, problem in zip(numbered, digests, problem_digests, strict=True):
            if digest not in known:
                new.setdefault(digest, (record, problem))
        known |= self._add_traces({digest: (record, problems[problem]) for digest, (record, problem) in new.items()})
        self.by_record = [known[digest] for digest in digests]

    def fetch_steps(self, traces: Iterable[TraceRef]) -> None:
        """Load the steps and options of traces that existed before this chunk."""
        known = {trace.pk: trace for trace in traces if not trace.is_new and not trace.steps}
        # The query starts from steps, because a step of which nothing was shown has no options.
        rows = (
            Step.objects.filter(trace_id__in=known)
            .order_by("trace_id", "position", "options__position")
            .values_list("trace_id", "position", "pk", "options__pk", "options__text")
        )
        for trace_id, position, step_id, option_id, text in rows.iterator(chunk_size=2000) if known else ():
            steps = known[trace_id].steps
            step = steps.get(position) or steps.setdefault(position, StepRef(step_id, []))
            if option_id is not None:
                step.option_ids.append(option_id)
                step.texts.append(text)

    def step_at(self, trace: TraceRef, position: int) -> StepRef:
        """Return the step, or add one if the file has ratings past the end of the trace."""
        return trace.steps.get(position) or self._add_step(
            trace, position, StepRecord([], is_rateable=trace.kind == LIVE)
        )

    def match_options(self, trace: TraceRef, step: StepRef, texts: list[str]) -> list[int]:
        """Return the positions of these options in the step. Unknown options are added."""
        n_known = len(step.texts)
        places = _match_options(texts, step.texts)
        for place in range(n_known, len(step.texts)):
            self._add_option(trace, step, place, OptionRecord(step.texts[place]))
        return places

    def _find_or_add_problems(self, digests: list[str], problems: list[ProblemRecord]) -> dict[str, tuple[int, bool]]:
        """Map each digest to the id of the problem, and whether it is in the held-out set."""
        rows = rawsql.fetch_rows(_FIND_PROBLEMS, {"project": self._project.pk, "digests": _write_array(digests)})
        known = {digest: (pk, is_reserve) for digest, pk, is_reserve in rows}
        for digest, problem in zip(digests, problems, strict=True):
            if digest not in known:
                known[digest] = self._add_problem(digest, problem)
        return known

    def _add_problem(self, digest: str, problem: ProblemRecord) -> tuple[int, bool]:
        pk = self._rows.new_id[PROBLEM]()
        normal = digest_normalized_problem(problem)
        is_reserve = is_in_reserve(normal, self._project.reserve_problem_share)
        self._rows.by_table[PROBLEM].append(
            (
                *(pk, self._project.pk, digest, normal, problem.ref, problem.domain, problem.text),
                None if problem.answer is UNSET else problem.answer,
                None if problem.solution is UNSET else problem.solution,
                *(problem.answer is not UNSET, problem.solution is not UNSET),
                *(is_reserve, self._source.pk),
            )
        )
        for position, image in enumerate(problem.images):
            row = self._rows.new_id[PROBLEM_IMAGE](), pk, position, self._images[image.digest], image.description[:1000]
            self._rows.by_table[PROBLEM_IMAGE].append(row)
        return pk, is_reserve

    def _find(self, digests: list[str]) -> dict[str, TraceRef]:
        rows = rawsql.fetch_rows(_FIND_TRACES, {"project": self._project.pk, "digests": _write_array(digests)})
        withdrawn = [(pk, reason) for _, pk, _, is_withdrawn, reason in rows if is_withdrawn]
        self.undone = [pk for pk, reason in withdrawn if reason == UNDONE_REASON]
        self.withdrawn_met += len(withdrawn) - len(self.undone)
        return {digest: TraceRef(pk, kind, is_new=False) for digest, pk, kind, *_ in rows}

    def _add_traces(self, new: Mapping[str, tuple[TraceRecord, tuple[int, bool]]]) -> dict[str, TraceRef]:
        """Add new traces by digest, each with the id of its problem and whether that is in the held-out set."""
        steps = [_live_steps(record) if record.kind == LIVE else record.steps for record, _ in new.values()]
        n_options = [sum([len(step.options) for step in own]) for own in steps]
        ids = rawsql.take_ids(TRACE.name, len(new))
        step_ids = rawsql.take_ids(packed_rows.STEP.name, sum(map(len, steps)))
        option_ids = rawsql.take_ids(packed_rows.OPTION.name, sum(n_options))
        added: dict[str, TraceRef] = {}
        for pk, own, n, (digest, (record, (problem_id, is_reserve))) in zip(
            ids, steps, n_options, new.items(), strict=True
        ):
            trace = added[digest] = TraceRef(pk, record.kind, is_new=True, is_reserve=is_reserve)
            self._add_trace_row(trace, record, digest, problem_id, len(own))
            trace.new = step_ids[: len(own)], option_ids[:n], own
            step_ids, option_ids = step_ids[len(own) :], option_ids[n:]
            self._add_texts(trace)
        self.added += added.values()
        return added

    def _add_trace_row(self, trace: TraceRef, record: TraceRecord, digest: str, problem_id: int, n_steps: int) -> None:
        self._rows.by_table[TRACE].append(
            (
                *(trace.pk, self._project.pk, problem_id, digest, record.kind, n_steps, record.ref, record.answer),
                *(record.verifier_score, record.is_right, record.outcome_by, record.outcome_grader),
                *(self._provenance(record.provenance), self._source.pk, record.line, self._added_at),
                msgspec.json.encode(record.metadata).decode() if record.metadata else "{}",
            )
        )
        if record.pair:
            row = trace.pk, self._project.pk, record.pair, record.pair_half
            self._rows.by_table[PAIRED].append(row)
        if record.original is not None:
            content = pack_residue(record.original.content)
            self._rows.by_table[ORIGINAL].append((trace.pk, self._project.pk, record.original.format, content))

    def _add_texts(self, trace: TraceRef) -> None:
        """Add the steps and options of a new trace."""
        step_ids, option_ids, steps = trace.new
        self._rows.steps += packed_rows.pack_steps(step_ids, trace.pk, steps)
        self._rows.options += packed_rows.pack_options(option_ids, step_ids, steps)
        options = [option for step in steps for option in step.options]
        if any([option.parts for option in options]):  # noqa: C419  a generator takes twice as long
            for pk, option in zip(option_ids, options, strict=True):
                self._add_parts(pk, option.parts)

    def _add_step(self, trace: TraceRef, position: int, record: StepRecord) -> StepRef:
        """Add a step without options to a trace whose other rows are already added."""
        self._rows.has_old_parents |= not trace.is_new
        step = trace.steps[position] = StepRef(next(self._step_ids), [])
        self._rows.steps += packed_rows.pack_steps([step.pk], trace.pk, [record], first=position)
        return step

    def _add_option(self, trace: TraceRef, step: StepRef, place: int, option: OptionRecord) -> None:
        """Add an option that is not in the trace itself."""
        self._rows.has_old_parents |= not trace.is_new
        pk = next(self._option_ids)
        step.option_ids.append(pk)
        self._rows.options += packed_rows.pack_options([pk], [step.pk], [StepRecord([option])], first=place)

    def _add_parts(self, option_id: int, parts: tuple[PartRecord, ...]) -> None:
        for position, part in enumerate(parts):
            self._rows.by_table[PART].append(
                (
                    *(self._rows.new_id[PART](), option_id, position, part.kind, part.text, part.name, part.call_ref),
                    *(part.media_type, self._images[part.digest] if part.kind == "image" else None),
                )
            )

    def _provenance(self, record: ProvenanceRecord | None) -> int | None:
        if record is None:
            return None
        digest = hashlib.sha256(msgspec.json.encode(record, order="sorted")).hexdigest()
        if digest not in self._provenances:
            found, _ = Provenance.objects.get_or_create(
                project=self._project, digest=digest, defaults=msgspec.structs.asdict(record)
            )
            self._provenances[digest] = found.pk
        return self._provenances[digest]


def _write_array(digests: Sequence[str]) -> str:
    """Return PostgreSQL's text of an array of digests, which need no quotes. psycopg would write each of them alone."""
    return "{" + ",".join(sorted(set(digests))) + "}"


_FIND_PROBLEMS = """
SELECT digest, id, is_reserve FROM labeling_problem
WHERE project_id = %(project)s AND digest = ANY (%(digests)s::text[])"""
_FIND_TRACES = """
SELECT digest, id, kind, withdrawn_at IS NOT NULL, withdrawn_reason FROM labeling_trace
WHERE project_id = %(project)s AND digest = ANY (%(digests)s::text[])"""


def _live_steps(record: TraceRecord) -> list[StepRecord]:
    """Return the steps that the rater of a live trace saw, with the options that were shown."""
    return [
        StepRecord([OptionRecord(judgment.text) for judgment in turn.shown or ()])
        for submission in record.submissions[:1]
        for turn in submission.turns
    ]


class _NewSubmission(Struct):
    """A submission that is not in the database yet."""

    record: SubmissionRecord
    trace: TraceRef
    key: tuple[str, int]  # digest and occurrence of its record
    residue: bytes | None


class SubmissionRows:
    """The new submissions of one chunk. The sets of trace ids say which traces must be updated afterward."""

    def __init__(self, project: Project, source: Source, now: dt.datetime, rows: ImportRows) -> None:
        self._project = project
        self._source = source
        self._now = now
        self._rows = rows
        self._attempts: dict[tuple[int, int, str], int] = {}
        self.rated: set[int] = set()
        self._with_votes: set[int] = set()
        self.with_machine_ratings: set[int] = set()
        self._n_submissions: Counter[int] = Counter()

    @property
    def with_enough_votes(self) -> set[int]:
        """The traces with a new vote and as many submissions as the project's overlap, so that they can be settled."""
        return {trace for trace in self._with_votes if self._n_submissions[trace] >= self._project.overlap}

    def add_new(self, numbered: Sequence[NumberedRecord], traces: TraceRows) -> None:
        submissions = list(_number_submissions(numbered, traces.by_record))
        new = self._select_new(submissions) if submissions else []
        if not new:
            return
        traces.fetch_steps(submission.trace for submission in new)
        rater_ids = self._rater_ids([submission.record for submission in new])
        self._fetch_attempts(new)
        for submission in new:
            rater_id = rater_ids[_rater_key(submission.record)]
            assignment_id = self._add(submission, rater_id)
            for turn in submission.record.turns:
                self._add_turn(assignment_id, turn, submission.trace, traces)
            for question, value in submission.record.answers.items():
                self._rows.by_table[ANSWER].append((self._rows.new_id[ANSWER](), assignment_id, 1, question, value))

    def _select_new(self, submissions: list[_NewSubmission]) -> list[_NewSubmission]:
        digests = {submission.key[0] for submission in submissions}
        rows = Submission.objects.filter(project=self._project, record_digest__in=digests)
        existing = set(rows.values_list("record_digest", "record_occurrence"))
        return [submission for submission in submissions if submission.key not in existing]

    def _rater_ids(self, records: list[SubmissionRecord]) -> dict[tuple[str, str | None], int]:
        """Map rater keys to ids. One query finds all existing labelers."""
        keys = {_rater_key(record) for record in records}
        labelers = [name for kind, name in keys if kind == "labeler"]
        existing = Rater.objects.filter(project=self._project, labeler__in=labelers).values_list("labeler", "pk")
        ids: dict[tuple[str, str | None], int] = {("labeler", name): pk for name, pk in existing}
        return {key: ids.get(key) or self._ensure_rater(*key).pk for key in keys}

    def _ensure_rater(self, kind: str, name: str | None) -> Rater:
        if name is None:
            return raters.ensure_unknown(project=self._project, now=self._now)
        if kind == "machine":
            return raters.ensure_machine(project=self._project, name=name, now=self._now)
        return raters.ensure_labeler(project=self._project, labeler=name, now=self._now)

    def _fetch_attempts(self, new: list[_NewSubmission]) -> None:
        """Count the earlier attempts of each rater at each trace: the unknown rater may have many."""
        old = {submission.trace.pk for submission in new if not submission.trace.is_new}
        counted = Assignment.objects.filter(trace_id__in=old).values_list("rater_id", "trace_id", "purpose")
        for rater_id, trace_id, purpose, attempt in counted.annotate(Max("attempt")) if old else ():
            self._attempts[rater_id, trace_id, purpose] = attempt
            if purpose == AssignmentPurpose.WORK:
                self._n_submissions[trace_id] += attempt

    def _add(self, submission: _NewSubmission, rater_id: int) -> int:
        record, assignment_id = submission.record, self._rows.new_id[ASSIGNMENT]()
        purpose = _purpose(record)
        key = (rater_id, submission.trace.pk, purpose.value)
        attempt = self._attempts[key] = self._attempts.get(key, 0) + 1
        submitted_at = record.submitted_at
        self._rows.by_table[ASSIGNMENT].append(
            (
                *(assignment_id, self._project.pk, rater_id, submission.trace.pk, purpose.value, attempt),
                *(AssignmentOrigin.IMPORTED.value, AssignmentState.SUBMITTED.value),
                *(submitted_at, record.finish_reason, 1),
            )
        )
        self._rows.by_table[SUBMISSION].append(
            (
                *(self._rows.new_id[SUBMISSION](), self._project.pk, assignment_id, 1, submitted_at),
                *(record.finish_reason, record.finish_note, record.total_ms, record.generation),
                *(record.is_quality_control, record.is_screening, self._source.pk, *submission.key),
                submission.residue and pack_residue(submission.residue),
                record.protocol,
            )
        )
        self.rated.add(submission.trace.pk)
        if purpose == AssignmentPurpose.WORK and record.machine:
            self.with_machine_ratings.add(submission.trace.pk)
        is_vote = not record.machine and submission.trace.kind == PREGENERATED and bool(record.turns)
        if purpose == AssignmentPurpose.WORK and is_vote:
            self._with_votes.add(submission.trace.pk)
            self._n_submissions[submission.trace.pk] += 1
        return assignment_id

    def _add_turn(self, assignment_id: int, turn: TurnRecord, trace: TraceRef, traces: TraceRows) -> None:
        step, turn_id = traces.step_at(trace, turn.position), self._rows.new_id[TURN]()
        places = traces.match_options(trace, step, [judgment.text for judgment in turn.shown or ()])
        self._rows.by_table[TURN].append(
            (
                *(turn_id, assignment_id, 1, step.pk),
                None if turn.shown is None else " ".join(map(str, places)),
                turn.chosen,
                *_written_columns(turn.written),
                *(turn.comment, turn.active_ms, turn.missing),
            )
        )
        for place, judgment in zip(places, turn.shown or (), strict=True):
            if judgment.rating is None and judgment.flagged is None and judgment.value is None:
                continue  # shown but not rated
            judgment_id = self._rows.new_id[JUDGMENT]()
            self._rows.by_table[JUDGMENT].append(
                (
                    *(judgment_id, turn_id, step.option_ids[place], judgment.rating, judgment.flagged),
                    *(judgment.category, judgment.reason, judgment.error_link, judgment.severity),
                    *(judgment.value, judgment.rollouts, judgment.successes),
                    msgspec.json.encode(judgment.evidence).decode() if judgment.evidence else None,
                    msgspec.json.encode(judgment.citations).decode() if judgment.citations else None,
                )
            )


def _number_submissions(numbered: Sequence[NumberedRecord], traces: Sequence[TraceRef]) -> Iterator[_NewSubmission]:
    for (record, occurrence), trace in zip(numbered, traces, strict=True):
        for number, submission in enumerate(record.submissions):
            digest = record.digest if number == 0 else _digest([record.digest, number])
            yield _NewSubmission(submission, trace, (digest, occurrence), record.residue if number == 0 else None)


def _rater_key(record: SubmissionRecord) -> tuple[str, str | None]:
    return ("machine", record.machine) if record.machine else ("labeler", record.labeler)


def _purpose(record: SubmissionRecord) -> AssignmentPurpose:
    """Return the purpose. Screening and quality control are kept out of every statistic of regular work."""
    if record.is_screening:
        return AssignmentPurpose.SCREENING
    return AssignmentPurpose.GOLD if record.is_quality_control else AssignmentPurpose.WORK


def _written_columns(written: WrittenStep | None) -> tuple[object, ...]:
    if written is None:
        return (None, None, None, None)
    return (written.text, written.rating, written.flagged, written.corrected_rating)
