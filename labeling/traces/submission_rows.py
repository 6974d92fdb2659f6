"""Make the rows of imported submissions: assignments, submissions, turns and judgments."""

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence

from django.db.models import Max
from msgspec import Struct

from formats.records import PREGENERATED, SubmissionRecord, TurnRecord, WrittenStep, pack_residue
from labeling import raters
from labeling.models import Assignment, Project, Rater, Submission
from labeling.models.assignment import AssignmentOrigin, AssignmentPurpose, AssignmentState
from labeling.traces import identity
from labeling.traces.import_rows import ASSIGNMENT, JUDGMENT, SUBMISSION, TURN, ImportRows, NumberedRecord
from labeling.traces.trace_rows import TraceRef, TraceRows

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
