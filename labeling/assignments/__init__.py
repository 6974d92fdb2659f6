"""The work of raters on their assignments: edits as they are made, submissions, skips, and corrections.

Only this package changes step reviews, judgments, the history of edits, submissions, correction requests, and the
version, revision and submission of an assignment. Other packages call it as `assignments.submit(...)`.
"""

from labeling.assignments.answer_sheet import Citation, IncomingEdit, Quote
from labeling.assignments.corrections import (
    decline_correction,
    discard_correction,
    find_open_requests,
    open_correction_requests,
    reopen_refusal_reason,
    reopen_submission,
    request_correction,
)
from labeling.assignments.edits import RecordedBatch, record_edits
from labeling.assignments.errors import (
    AlreadySubmitted,
    AssignmentError,
    AssignmentNotOpen,
    AssignmentUnknown,
    ConflictingEdits,
    CorrectionRefused,
    EditRefused,
    SkipLimitReached,
    SkipNotAllowed,
    SubmissionIncomplete,
    UnseenRatings,
)
from labeling.assignments.merge import LostEdit
from labeling.assignments.revealed_labels import load_suggestions, reveal_label
from labeling.assignments.submissions import (
    SubmitPromise,
    count_skips_left,
    give_up,
    report_problem,
    skip_trace,
    submit,
)
