"""What an import says of itself: counts by which a known file can be recognised, and what came of it."""

from collections.abc import Iterable

from msgspec import Struct

from labeling.importing import rows
from labeling.importing.records import BadLine, SubmissionRecord, TraceRecord
from labeling.texts import private

BAD_LINES_KEPT = 1000
_PATH_ENDS = ("solution", "found_error")


class NearDuplicates(Struct):
    """Problems of the file that say nearly what another one of the project says."""

    problems: int = 0
    groups: int = 0
    examples: list[list[str]] = []  # the beginnings of two texts


class Report(Struct):
    records: int = 0
    bad: int = 0
    bad_lines: list[BadLine] = []  # the first of them

    # What the file says, whether or not it is new here.
    problems: int = 0
    kinds: dict[str, int] = {}
    finish_reasons: dict[str, int] = {}
    ratings: dict[str, int] = {}  # of all options that were shown
    path_ratings: dict[str, int] = {}  # of the options that the paths went on with
    paths: int = 0
    paths_with_error: int = 0
    written_steps: int = 0
    outcomes: dict[str, int] = {}
    right_and_rated: int = 0
    right_with_error: int = 0
    labels_by: dict[str, int] = {}
    segmenters: dict[str, int] = {}
    private: dict[str, int] = {}
    masked: int = 0

    # What came of it.
    problems_added: int = 0
    traces_added: int = 0
    steps_added: int = 0
    submissions_added: int = 0
    residues: int = 0  # records whose own bytes are kept beside the columns
    queued: int = 0
    gold_made: int = 0
    gold_differs: int = 0  # ratings that say otherwise than the gold that stands
    not_gold: int = 0  # ratings that tell no first error
    benchmark_problems: int = 0
    withdrawn_met: int = 0
    near_duplicates: NearDuplicates | None = None

    def refuse(self, line: BadLine) -> None:
        self.bad += 1
        if len(self.bad_lines) < BAD_LINES_KEPT:
            self.bad_lines.append(line)

    def see(self, record: TraceRecord) -> None:
        self.records += 1
        _count(self.kinds, [record.kind])
        _count(self.outcomes, [{True: "right", False: "wrong", None: "unknown"}[record.is_right]])
        if record.provenance and record.provenance.segmenter:
            _count(self.segmenters, [record.provenance.segmenter])
        self.see_ratings(record)

    def see_ratings(self, record: TraceRecord) -> None:
        for submission in record.submissions:
            self._see_submission(submission)
        self._see_outcome(record)

    def see_private(self, texts: Iterable[str]) -> bool:
        found = private.found_in(texts)
        for kind, number in found.items():
            self.private[kind] = self.private.get(kind, 0) + number
        return bool(found)

    def add(self, made: rows.Rows, numbered: list[rows.Numbered]) -> None:
        """Count what a chunk added."""
        self.problems_added += len(made.of[rows.PROBLEM])
        self.traces_added += len(made.of[rows.TRACE])
        self.steps_added += len(made.of[rows.STEP])
        self.submissions_added += len(made.of[rows.SUBMISSION])
        self.residues += sum(record.residue is not None for record, _ in numbered)

    def _see_submission(self, submission: SubmissionRecord) -> None:
        _count(self.finish_reasons, [str(submission.finish_reason)])
        _count(self.labels_by, [whose(submission)])
        for turn in submission.turns:
            self.written_steps += turn.written is not None
            _count(self.ratings, [str(judgment.rating) for judgment in turn.shown or ()])
        if submission.finish_reason in _PATH_ENDS and not submission.is_quality_control:
            path = [rating for turn in submission.turns if (rating := turn.path_rating()) is not None]
            self.paths += 1
            self.paths_with_error += -1 in path
            _count(self.path_ratings, map(str, path))

    def _see_outcome(self, record: TraceRecord) -> None:
        """How often a right answer comes by a wrong way: what outcome supervision cannot see."""
        if record.is_right and record.submissions:
            self.right_and_rated += 1
            self.right_with_error += any(
                turn.path_rating() == -1 for submission in record.submissions for turn in submission.turns
            )


def whose(submission: SubmissionRecord) -> str:
    """Whose ratings the file says these are, in four kinds: single pseudonyms are not counted."""
    if submission.machine:
        return submission.machine
    return "unknown" if submission.labeler is None else "people"


def _count(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + 1
