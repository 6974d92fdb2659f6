"""The work of raters on their assignments: edits as they are made, submissions, skips, and corrections.

Only this package changes step reviews, judgments, the history of edits, submissions, correction requests, and the
version, revision and submission of an assignment. Other packages call it as `assignments.submit(...)`.
"""

from labeling.assignments.corrections import (
    decline_correction,
    discard_correction,
    find_open_requests,
    open_correction_requests,
    reopen_refusal_reason,
    reopen_submission,
    request_correction,
)
from labeling.assignments.edit_batch import EditTarget, IncomingEdit
from labeling.assignments.edits import RecordedBatch, record_edits
from labeling.assignments.errors import (
    AssignmentError,
    AssignmentNotOpen,
    AssignmentUnknown,
    BatchRefused,
    ConflictingEdits,
    CorrectionRefused,
    EditRefused,
    SkipLimitReached,
    SkipNotAllowed,
    SubmissionIncomplete,
)
from labeling.assignments.merge import LostEdit
from labeling.assignments.skips import count_skips_today, skip_trace
from labeling.assignments.submissions import give_up, report_problem, submit

__all__ = [
    "AssignmentError",
    "AssignmentNotOpen",
    "AssignmentUnknown",
    "BatchRefused",
    "ConflictingEdits",
    "CorrectionRefused",
    "EditRefused",
    "EditTarget",
    "IncomingEdit",
    "LostEdit",
    "RecordedBatch",
    "SkipLimitReached",
    "SkipNotAllowed",
    "SubmissionIncomplete",
    "count_skips_today",
    "decline_correction",
    "discard_correction",
    "find_open_requests",
    "give_up",
    "open_correction_requests",
    "record_edits",
    "reopen_refusal_reason",
    "reopen_submission",
    "report_problem",
    "request_correction",
    "skip_trace",
    "submit",
]
