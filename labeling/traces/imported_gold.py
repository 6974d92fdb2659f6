"""Ratings of a file as known answers: gold instead of submissions."""

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
    """What the submissions of one trace say together."""

    def __init__(self) -> None:
        self.first_errors: list[int | None] = []
        self.ratings: dict[int, int | None] = {}  # by option; None where two say otherwise


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
    """Gold of every trace whose ratings tell a first error, or none; the ids of the traces that became gold now.
    A trace that is gold already keeps what is known of it."""
    traces.fetch_steps(traces.of)
    known: dict[int, ImportedAnswers] = {}
    for (record, _), trace in zip(numbered, traces.of, strict=True):
        for submission in record.submissions:
            report.not_gold += not _collect_ratings(known, record, submission, trace)
    standing = _existing_gold(known, use)
    made = []
    for pk, said in known.items():
        if pk in standing:
            report.gold_differs += set(standing[pk]) != set(said.first_errors)
            continue
        make_gold(
            trace=Trace(pk=pk, project=project),
            use=use,
            accepted_first_errors=said.first_errors,
            ratings={option: rating for option, rating in said.ratings.items() if rating is not None},
            by=by,
            now=now,
        )
        made.append(pk)
    report.gold_made += len(made)
    return made


def _existing_gold(known: dict[int, ImportedAnswers], use: GoldUse) -> dict[int, list[int | None]]:
    rows = Gold.objects.active().filter(trace__in=known, use=use)
    return dict(rows.values_list("trace_id", "accepted_first_errors"))


def _collect_ratings(
    known: dict[int, ImportedAnswers], record: TraceRecord, submission: SubmissionRecord, trace: TraceRef
) -> bool:
    """False where the ratings do not tell whether there is an error: given up, not finished, or made live."""
    if trace.kind != PREGENERATED or submission.finish_reason not in _CONCLUSIVE_ENDS:
        return False
    path = {turn.position: rating for turn in submission.turns if (rating := turn.path_rating()) is not None}
    first = min((position for position, rating in path.items() if rating == -1), default=None)
    is_whole = submission.finish_reason == "solution" or len(path) >= len(trace.steps)
    if not path or (not is_whole if first is None else not _is_rateable(record, first)):
        return False
    said = known.setdefault(trace.pk, ImportedAnswers())
    if first not in said.first_errors:
        said.first_errors.append(first)
    for turn in submission.turns:
        _collect_option_ratings(said, turn, trace.steps.get(turn.position))
    return True


def _is_rateable(record: TraceRecord, position: int) -> bool:
    return position < len(record.steps) and record.steps[position].is_rateable


def _collect_option_ratings(said: ImportedAnswers, turn: TurnRecord, step: StepRef | None) -> None:
    """Ratings of options that the trace came with; others were shown to that rater alone."""
    for judgment in turn.shown or ():
        if step and judgment.rating is not None and judgment.text in step.texts:
            option = step.option_ids[step.texts.index(judgment.text)]
            agrees = said.ratings.get(option, judgment.rating) == judgment.rating
            said.ratings[option] = judgment.rating if agrees else None
