"""Find or make the rows of problems, traces, steps and options of one chunk."""

import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
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
    Option,
    OptionPart,
    Problem,
    Project,
    Provenance,
    Rater,
    Source,
    Step,
    StepReview,
    Submission,
    Trace,
)
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, AssignmentState
from labeling.traces import bulk_insert, identity

# The rows of one chunk of an import, by table, until they are written together.


PROBLEM = bulk_insert.BulkTable(
    Problem,
    *("id", "project_id", "digest", "normal_digest", "ref", "domain", "text", "reference_answer"),
    *("reference_solution", "has_reference_answer", "has_reference_solution", "is_reserve", "source_id"),
)
TRACE = bulk_insert.BulkTable(
    Trace,
    *("id", "project_id", "problem_id", "digest", "kind", "n_steps", "ref", "answer", "verifier_score"),
    *("is_right", "outcome_by", "outcome_grader", "provenance_id", "source_id", "source_line", "added_at"),
)
STEP = bulk_insert.BulkTable(Step, "id", "trace_id", "position", "kind", "is_rateable", "separator", "source_position")
OPTION = bulk_insert.BulkTable(Option, "id", "step_id", "position", "origin", "text")
PART = bulk_insert.BulkTable(
    OptionPart, "id", "option_id", "position", "kind", "text", "name", "call_ref", "media_type", "data"
)
ASSIGNMENT = bulk_insert.BulkTable(
    Assignment,
    *("id", "project_id", "rater_id", "trace_id", "purpose", "attempt", "origin", "state", "submitted_at"),
    *("finish_reason", "submitted_revision"),
)
SUBMISSION = bulk_insert.BulkTable(
    Submission,
    *("id", "project_id", "assignment_id", "revision", "submitted_at", "finish_reason", "finish_note", "total_ms"),
    *("generation", "is_quality_control", "is_screening", "record_digest", "record_occurrence", "residue"),
)
TURN = bulk_insert.BulkTable(
    StepReview,
    *("id", "assignment_id", "revision", "step_id", "shown", "chosen", "written_text", "written_rating"),
    *("written_flagged", "written_corrected_rating", "comment", "active_ms"),
)
JUDGMENT = bulk_insert.BulkTable(
    Judgment,
    *("id", "turn_id", "option_id", "rating", "flagged", "category", "reason", "value", "rollouts", "successes"),
)
# Parents first.
TABLES = (PROBLEM, TRACE, STEP, OPTION, PART, ASSIGNMENT, SUBMISSION, TURN, JUDGMENT)


class NumberedRecord(NamedTuple):
    """A record, and how often an identical record came before it in the file."""

    record: TraceRecord
    occurrence: int


class ImportRows:
    """The collected rows by table, and the generators of their ids."""

    def __init__(self) -> None:
        self.by_table: dict[bulk_insert.BulkTable, list[bulk_insert.BulkRow]] = {table: [] for table in TABLES}
        ids = bulk_insert.new_ids([table.name for table in TABLES])
        self.new_id = {table: ids[table.name].__next__ for table in TABLES}

    def insert(self) -> None:
        for table, rows in self.by_table.items():
            table.insert(rows)


UNDONE_REASON = "the import was undone"  # traces withdrawn for this reason come back when their file is imported again


class StepRef:
    """A step with the ids and texts of its options by position."""

    __slots__ = ("option_ids", "pk", "texts")

    def __init__(self, pk: int, texts: list[str]) -> None:
        self.pk = pk
        self.texts = texts
        self.option_ids: list[int] = []


class TraceRef:
    __slots__ = ("is_new", "is_reserve", "kind", "pk", "steps")

    def __init__(self, pk: int, kind: str, *, is_new: bool, is_reserve: bool = False) -> None:
        self.pk = pk
        self.kind = kind
        self.is_new = is_new
        self.is_reserve = is_reserve
        self.steps: dict[int, StepRef] = {}


class TraceRows:
    """The traces of one chunk: `by_record` has one for each record, `added` the new ones."""

    def __init__(self, project: Project, source: Source, now: dt.datetime, rows: ImportRows) -> None:
        self._project = project
        self._source = source
        self._added_at = now
        self._rows = rows
        # There are very many steps and options, so these attributes are looked up once.
        self._steps, self._new_step_id = rows.by_table[STEP], rows.new_id[STEP]
        self._options, self._new_option_id = rows.by_table[OPTION], rows.new_id[OPTION]
        self._provenances: dict[str, int] = {}
        self.by_record: list[TraceRef] = []
        self.added: list[TraceRef] = []
        self.undone: list[int] = []  # existing traces whose import was undone
        self.withdrawn_met = 0  # existing traces that were withdrawn for another reason

    def find_or_add(self, numbered: Sequence[NumberedRecord]) -> None:
        """Find or make the trace of each record."""
        problem_digests = [identity.digest_problem(record.problem) for record, _ in numbered]
        problems = self._find_or_add_problems(problem_digests, [record.problem for record, _ in numbered])
        digests = [
            identity.digest_trace(record, problem=problem, occurrence=occurrence)
            for (record, occurrence), problem in zip(numbered, problem_digests, strict=True)
        ]
        known = self._find(digests)
        for (record, _), digest, problem in zip(numbered, digests, problem_digests, strict=True):
            if digest not in known:
                known[digest] = self._add(record, digest, *problems[problem])
        self.by_record = [known[digest] for digest in digests]

    def fetch_steps(self, traces: Iterable[TraceRef]) -> None:
        """Load the steps and options of traces that existed before this chunk."""
        known = {trace.pk: trace for trace in traces if not trace.is_new and not trace.steps}
        # Selects from steps, not from options: a step of which nothing was shown has no options.
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

    def match_options(self, step: StepRef, texts: list[str]) -> list[int]:
        """Return the positions of these options in the step. Unknown options are added."""
        n_known = len(step.texts)
        places = identity.match_options(texts, step.texts)
        for place in range(n_known, len(step.texts)):
            self._add_option(step, place, OptionRecord(step.texts[place]))
        return places

    def _find_or_add_problems(self, digests: list[str], problems: list[ProblemRecord]) -> dict[str, tuple[int, bool]]:
        """Map each digest to the id of the problem, and whether it is in the held-out set."""
        rows = rawsql.fetch_rows(_FIND_PROBLEMS, {"project": self._project.pk, "digests": sorted(set(digests))})
        known = {digest: (pk, is_reserve) for digest, pk, is_reserve in rows}
        for digest, problem in zip(digests, problems, strict=True):
            if digest not in known:
                known[digest] = self._add_problem(digest, problem)
        return known

    def _add_problem(self, digest: str, problem: ProblemRecord) -> tuple[int, bool]:
        pk = self._rows.new_id[PROBLEM]()
        normal = near_duplicates.digest_normalized(problem.text)
        is_reserve = identity.is_reserve(normal, self._project.reserve_problem_share)
        self._rows.by_table[PROBLEM].append(
            (
                *(pk, self._project.pk, digest, normal, problem.ref, problem.domain, problem.text),
                None if problem.answer is UNSET else problem.answer,
                None if problem.solution is UNSET else problem.solution,
                *(problem.answer is not UNSET, problem.solution is not UNSET),
                *(is_reserve, self._source.pk),
            )
        )
        return pk, is_reserve

    def _find(self, digests: list[str]) -> dict[str, TraceRef]:
        rows = rawsql.fetch_rows(_FIND_TRACES, {"project": self._project.pk, "digests": sorted(set(digests))})
        withdrawn = [(pk, reason) for _, pk, _, is_withdrawn, reason in rows if is_withdrawn]
        self.undone = [pk for pk, reason in withdrawn if reason == UNDONE_REASON]
        self.withdrawn_met += len(withdrawn) - len(self.undone)
        return {digest: TraceRef(pk, kind, is_new=False) for digest, pk, kind, *_ in rows}

    def _add(self, record: TraceRecord, digest: str, problem_id: int, is_reserve: bool) -> TraceRef:
        trace = TraceRef(self._rows.new_id[TRACE](), record.kind, is_new=True, is_reserve=is_reserve)
        steps = _live_steps(record) if record.kind == LIVE else record.steps
        self._rows.by_table[TRACE].append(
            (
                *(trace.pk, self._project.pk, problem_id, digest, record.kind, len(steps), record.ref, record.answer),
                *(record.verifier_score, record.is_right, record.outcome_by, record.outcome_grader),
                *(self._provenance(record.provenance), self._source.pk, record.line, self._added_at),
            )
        )
        for position, step in enumerate(steps):
            self._add_step(trace, position, step)
        self.added.append(trace)
        return trace

    def _add_step(self, trace: TraceRef, position: int, record: StepRecord) -> StepRef:
        pk = self._new_step_id()
        step = trace.steps[position] = StepRef(pk, [option.text for option in record.options])
        self._steps.append(
            (pk, trace.pk, position, record.kind, record.is_rateable, record.separator, record.source_position)
        )
        for place, option in enumerate(record.options):
            self._add_option(step, place, option)
        return step

    def _add_option(self, step: StepRef, place: int, option: OptionRecord) -> None:
        pk = self._new_option_id()
        step.option_ids.append(pk)
        self._options.append((pk, step.pk, place, option.origin, option.text))
        if option.parts:
            self._add_parts(pk, option.parts)

    def _add_parts(self, option_id: int, parts: tuple[PartRecord, ...]) -> None:
        for position, part in enumerate(parts):
            self._rows.by_table[PART].append(
                (
                    *(self._rows.new_id[PART](), option_id, position, part.kind, part.text, part.name, part.call_ref),
                    *(part.media_type, part.data),
                )
            )

    def _provenance(self, record: ProvenanceRecord | None) -> int | None:
        if record is None:
            return None
        digest = hashlib.sha256(msgspec.json.encode(record, order="sorted")).hexdigest()
        if digest not in self._provenances:
            rows = rawsql.fetch_rows(_FIND_PROVENANCE, {"project": self._project.pk, "digest": digest})
            self._provenances[digest] = rows[0][0] if rows else self._new_provenance(record, digest)
        return self._provenances[digest]

    def _new_provenance(self, record: ProvenanceRecord, digest: str) -> int:
        return Provenance.objects.create(project=self._project, digest=digest, **msgspec.structs.asdict(record)).pk


_FIND_PROBLEMS = """
SELECT digest, id, is_reserve FROM labeling_problem WHERE project_id = %(project)s AND digest = ANY (%(digests)s)"""
_FIND_TRACES = """
SELECT digest, id, kind, withdrawn_at IS NOT NULL, withdrawn_reason FROM labeling_trace
WHERE project_id = %(project)s AND digest = ANY (%(digests)s)"""
_FIND_PROVENANCE = "SELECT id FROM labeling_provenance WHERE project_id = %(project)s AND digest = %(digest)s"


def _live_steps(record: TraceRecord) -> list[StepRecord]:
    """Return the steps that the rater of a live trace saw, with the options that were shown."""
    return [
        StepRecord([OptionRecord(judgment.text) for judgment in turn.shown or ()])
        for submission in record.submissions[:1]
        for turn in submission.turns
    ]


# Make the rows of imported submissions: assignments, submissions, turns and judgments.


_Key = tuple[str, int]


class _NewSubmission(Struct):
    """A submission that is not in the database yet."""

    record: SubmissionRecord
    trace: TraceRef
    key: _Key
    residue: bytes | None


class SubmissionRows:
    """The new submissions of one chunk. The sets of trace ids say what has to be updated afterwards."""

    def __init__(self, project: Project, now: dt.datetime, rows: ImportRows) -> None:
        self._project = project
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
                *(
                    AssignmentOrigin.IMPORTED.value,
                    AssignmentState.SUBMITTED.value,
                    submitted_at,
                    record.finish_reason,
                    1,
                ),
            )
        )
        self._rows.by_table[SUBMISSION].append(
            (
                *(self._rows.new_id[SUBMISSION](), self._project.pk, assignment_id, 1, submitted_at),
                *(record.finish_reason, record.finish_note, record.total_ms, record.generation),
                *(record.is_quality_control, record.is_screening, *submission.key),
                submission.residue and pack_residue(submission.residue),
            )
        )
        self.rated.add(submission.trace.pk)
        if purpose == AssignmentPurpose.WORK and record.machine:
            self.with_machine_ratings.add(submission.trace.pk)
        if purpose == AssignmentPurpose.WORK and not record.machine and submission.trace.kind == PREGENERATED:
            self._with_votes.add(submission.trace.pk)
            self._n_submissions[submission.trace.pk] += 1
        return assignment_id

    def _add_turn(self, assignment_id: int, turn: TurnRecord, trace: TraceRef, traces: TraceRows) -> None:
        step, turn_id = traces.step_at(trace, turn.position), self._rows.new_id[TURN]()
        places = traces.match_options(step, [judgment.text for judgment in turn.shown or ()])
        self._rows.by_table[TURN].append(
            (
                *(turn_id, assignment_id, 1, step.pk),
                None if turn.shown is None else " ".join(map(str, places)),
                turn.chosen,
                *_written_columns(turn.written),
                *(turn.comment, turn.active_ms),
            )
        )
        for place, judgment in zip(places, turn.shown or (), strict=True):
            if judgment.rating is None and judgment.flagged is None and judgment.value is None:
                continue  # shown but not rated
            self._rows.by_table[JUDGMENT].append(
                (
                    *(
                        self._rows.new_id[JUDGMENT](),
                        turn_id,
                        step.option_ids[place],
                        judgment.rating,
                        judgment.flagged,
                    ),
                    *(judgment.category, judgment.reason, judgment.value, judgment.rollouts, judgment.successes),
                )
            )


def _number_submissions(numbered: Sequence[NumberedRecord], traces: Sequence[TraceRef]) -> Iterator[_NewSubmission]:
    for (record, occurrence), trace in zip(numbered, traces, strict=True):
        for number, submission in enumerate(record.submissions):
            key = (identity.digest_submission(record, number), occurrence)
            yield _NewSubmission(submission, trace, key, record.residue if number == 0 else None)


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
