"""Make gold, instead of submissions, of the ratings in a file."""

import datetime as dt
from collections.abc import Sequence

from accounts.models import User
from formats.records import PREGENERATED, SubmissionRecord, TraceRecord, TurnRecord
from labeling.models import Gold, Project, Trace
from labeling.models.gold import GoldUse
from labeling.quality.gold import make_gold
from labeling.traces.import_report import ImportReport
from labeling.traces.import_rows import NumberedRecord
from labeling.traces.trace_rows import StepRef, TraceRef, TraceRows

_CONCLUSIVE_ENDS = ("solution", "found_error", None)


class ImportedAnswers:
    """The combined answers of all submissions of one trace."""

    def __init__(self) -> None:
        self.first_errors: list[int | None] = []
        self.ratings: dict[int, int | None] = {}  # by option; None if two submissions differ


def make_gold_from_ratings(
    *,
    project: Project,
    use: GoldUse,
    numbered: Sequence[NumberedRecord],
    traces: TraceRows,
    report: ImportReport,
    by: User | None,
    now: dt.datetime,
) -> list[int]:
    """Make gold of every trace whose ratings determine the first error. Returns the ids of the new gold traces.

    Existing gold is not changed.
    """
    traces.fetch_steps(traces.by_record)
    known: dict[int, ImportedAnswers] = {}
    for (record, _), trace in zip(numbered, traces.by_record, strict=True):
        for submission in record.submissions:
            report.not_gold += not _collect_ratings(known, record, submission, trace)
    existing = _existing_gold(known, use)
    new_ids = []
    for pk, answers in known.items():
        if pk in existing:
            report.gold_differs += set(existing[pk]) != set(answers.first_errors)
            continue
        make_gold(
            trace=Trace(pk=pk, project=project),
            use=use,
            accepted_first_errors=answers.first_errors,
            ratings={option: rating for option, rating in answers.ratings.items() if rating is not None},
            by=by,
            now=now,
        )
        new_ids.append(pk)
    report.gold_made += len(new_ids)
    return new_ids


def _existing_gold(known: dict[int, ImportedAnswers], use: GoldUse) -> dict[int, list[int | None]]:
    rows = Gold.objects.active().filter(trace__in=known, use=use)
    return dict(rows.values_list("trace_id", "accepted_first_errors"))


def _collect_ratings(
    known: dict[int, ImportedAnswers], record: TraceRecord, submission: SubmissionRecord, trace: TraceRef
) -> bool:
    """Add the answers of a submission. Returns False if they are inconclusive: given up, unfinished, or live."""
    if trace.kind != PREGENERATED or submission.finish_reason not in _CONCLUSIVE_ENDS:
        return False
    path = {turn.position: rating for turn in submission.turns if (rating := turn.path_rating()) is not None}
    first = min((position for position, rating in path.items() if rating == -1), default=None)
    is_complete = submission.finish_reason == "solution" or len(path) >= len(trace.steps)
    if not path or (not is_complete if first is None else not _is_rateable(record, first)):
        return False
    answers = known.setdefault(trace.pk, ImportedAnswers())
    if first not in answers.first_errors:
        answers.first_errors.append(first)
    for turn in submission.turns:
        _collect_option_ratings(answers, turn, trace.steps.get(turn.position))
    return True


def _is_rateable(record: TraceRecord, position: int) -> bool:
    return position < len(record.steps) and record.steps[position].is_rateable


def _collect_option_ratings(answers: ImportedAnswers, turn: TurnRecord, step: StepRef | None) -> None:
    """Add the ratings of the trace's own options. Others were only shown to this rater."""
    for judgment in turn.shown or ():
        if step and judgment.rating is not None and judgment.text in step.texts:
            option = step.option_ids[step.texts.index(judgment.text)]
            agrees = answers.ratings.get(option, judgment.rating) == judgment.rating
            answers.ratings[option] = judgment.rating if agrees else None
