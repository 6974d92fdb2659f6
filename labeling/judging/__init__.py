"""Takes down what raters judge: ratings as they are made, submissions, corrections. Alone changes turns, judgments, the
history of writes, submissions, and the version, revision and submission of an assignment.

Called through this module: `judging.record(...)`."""

from labeling.judging.correcting import discard_correction, reopen, why_not_reopen
from labeling.judging.errors import (
    AssignmentUnknown,
    BatchRefused,
    CannotReopen,
    Incomplete,
    JudgingError,
    NotInHand,
    NotToBeSkipped,
    OthersStand,
    SkipLimitReached,
    WriteRefused,
)
from labeling.judging.meeting import Lost
from labeling.judging.recording import Recorded, record
from labeling.judging.requesting import ask_correction, asked_among, leave_as_is, open_requests
from labeling.judging.skipping import skip, skips_today
from labeling.judging.submitting import give_up, report_problem, submit
from labeling.judging.writes import Cell, WriteIn

__all__ = [
    "AssignmentUnknown",
    "BatchRefused",
    "CannotReopen",
    "Cell",
    "Incomplete",
    "JudgingError",
    "Lost",
    "NotInHand",
    "NotToBeSkipped",
    "OthersStand",
    "Recorded",
    "SkipLimitReached",
    "WriteIn",
    "WriteRefused",
    "ask_correction",
    "asked_among",
    "discard_correction",
    "give_up",
    "leave_as_is",
    "open_requests",
    "record",
    "reopen",
    "report_problem",
    "skip",
    "skips_today",
    "submit",
    "why_not_reopen",
]
