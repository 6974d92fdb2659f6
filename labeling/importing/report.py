"""What an import says of itself: counts by which a known file can be recognised."""

from collections.abc import Iterable

from msgspec import Struct

from labeling.importing import rows
from labeling.importing.records import BadLine, TraceRecord

BAD_LINES_KEPT = 1000


class Report(Struct):
    records: int = 0
    bad: int = 0
    bad_lines: list[BadLine] = []  # the first of them
    problems_added: int = 0
    traces_added: int = 0
    steps_added: int = 0
    submissions_added: int = 0
    residues: int = 0  # records whose own bytes are kept beside the columns
    queued: int = 0
    finish_reasons: dict[str, int] = {}
    ratings: dict[str, int] = {}
    written_steps: int = 0

    def refuse(self, line: BadLine) -> None:
        self.bad += 1
        if len(self.bad_lines) < BAD_LINES_KEPT:
            self.bad_lines.append(line)

    def see(self, record: TraceRecord) -> None:
        """Count what the record says, whether or not it is new here."""
        self.records += 1
        for submission in record.submissions:
            _count(self.finish_reasons, [str(submission.finish_reason)])
            for turn in submission.turns:
                self.written_steps += turn.written is not None
                _count(self.ratings, [str(judgment.rating) for judgment in turn.shown or ()])

    def add(self, made: rows.Rows, numbered: list[rows.Numbered]) -> None:
        """Count what a chunk added."""
        self.problems_added += len(made.of[rows.PROBLEM])
        self.traces_added += len(made.of[rows.TRACE])
        self.steps_added += len(made.of[rows.STEP])
        self.submissions_added += len(made.of[rows.SUBMISSION])
        self.residues += sum(record.residue is not None for record, _ in numbered)


def _count(counts: dict[str, int], names: Iterable[str]) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + 1
