"""Ratings of a file as known answers: gold instead of submissions."""

import datetime as dt
from collections.abc import Sequence

from accounts.models import User
from labeling import quality
from labeling.importing.records import PREGENERATED, SubmissionRecord, TraceRecord, TurnRecord
from labeling.importing.report import Report
from labeling.importing.rows import Numbered
from labeling.importing.traces import KnownStep, KnownTrace, TraceRows
from labeling.models import Gold, Project, Trace
from labeling.models.quality import GoldUse

_KNOWN_ENDS = ("solution", "found_error", None)


class Known:
    """What the submissions of one trace say together."""

    def __init__(self) -> None:
        self.first_errors: list[int | None] = []
        self.ratings: dict[int, int | None] = {}  # by option; None where two say otherwise


def make(
    *,
    project: Project,
    use: GoldUse,
    numbered: Sequence[Numbered],
    traces: TraceRows,
    report: Report,
    by: User | None,
    now: dt.datetime,
) -> list[int]:
    """Gold of every trace whose ratings tell a first error, or none; the ids of the traces that became gold now.
    A trace that is gold already keeps what is known of it."""
    traces.fetch_steps(traces.of)
    known: dict[int, Known] = {}
    for (record, _), trace in zip(numbered, traces.of, strict=True):
        for submission in record.submissions:
            report.not_gold += not _learn(known, record, submission, trace)
    standing = _standing(known, use)
    made = []
    for pk, said in known.items():
        if pk in standing:
            report.gold_differs += set(standing[pk]) != set(said.first_errors)
            continue
        quality.make_gold(
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


def _standing(known: dict[int, Known], use: GoldUse) -> dict[int, list[int | None]]:
    rows = Gold.objects.active().filter(trace__in=known, use=use)
    return dict(rows.values_list("trace_id", "accepted_first_errors"))


def _learn(known: dict[int, Known], record: TraceRecord, submission: SubmissionRecord, trace: KnownTrace) -> bool:
    """False where the ratings do not tell whether there is an error: given up, not finished, or made live."""
    if trace.kind != PREGENERATED or submission.finish_reason not in _KNOWN_ENDS:
        return False
    path = {turn.position: rating for turn in submission.turns if (rating := turn.path_rating()) is not None}
    first = min((position for position, rating in path.items() if rating == -1), default=None)
    is_whole = submission.finish_reason == "solution" or len(path) >= len(trace.steps)
    if not path or (not is_whole if first is None else not _is_rateable(record, first)):
        return False
    said = known.setdefault(trace.pk, Known())
    if first not in said.first_errors:
        said.first_errors.append(first)
    for turn in submission.turns:
        _learn_options(said, turn, trace.steps.get(turn.position))
    return True


def _is_rateable(record: TraceRecord, position: int) -> bool:
    return position < len(record.steps) and record.steps[position].is_rateable


def _learn_options(said: Known, turn: TurnRecord, step: KnownStep | None) -> None:
    """Ratings of options that the trace came with; others were shown to that rater alone."""
    for judgment in turn.shown or ():
        if step and judgment.rating is not None and judgment.text in step.texts:
            option = step.option_ids[step.texts.index(judgment.text)]
            agrees = said.ratings.get(option, judgment.rating) == judgment.rating
            said.ratings[option] = judgment.rating if agrees else None
