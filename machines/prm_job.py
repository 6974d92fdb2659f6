"""The job of a PRM that labels: its scores become labels.

A score becomes P(step wrong | earlier steps right) as in selection (`prm.selection.hazards`), with the calibration
that the PRM has. The first step that reaches the threshold is the first error, and the steps before it are right. P(E)
follows from the same probabilities: the first error is at step i with (1 - h_1) … (1 - h_{i-1}) h_i.

Scores that are missing are computed and stored as by the scoring job, except those that can only be pushed.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.assignments.machine_submissions import MachineRating, MachineSubmission, save_machine_submissions
from machines import runs
from machines.models import Judge, JudgedTrace, JudgeRun, JudgeRunState
from prm import labeled_traces, registry, scores
from prm.backends import base
from prm.backends.base import ScoringBackend
from prm.labeled_traces import TraceText
from prm.models import PRM
from prm.models.prm import BackendKind
from prm.selection import hazards
from stats.arrays import Floats

_TRACES_PER_CHUNK = {BackendKind.BUILTIN: 200, BackendKind.PUSHED: 500}
_TRACES_OF_OTHERS = 64


def run_prm_job(job: Job) -> Iterator[JobProgress | Chunk]:
    run = JudgeRun.objects.select_related("judge__project__guideline", "judge__rater__project__guideline").get(
        pk=job.arguments["run"]
    )
    prm = run.judge.prm
    assert prm is not None
    backend = None if prm.backend == BackendKind.PUSHED else registry.load_backend(prm)
    size = _TRACES_PER_CHUNK.get(BackendKind(prm.backend), _TRACES_OF_OTHERS)
    left = None if run.most_traces is None else max(run.most_traces - run.n_judged, 0)
    traces, after = runs.select_traces(run), 0
    while left is None or left > 0:
        n = size if left is None else min(size, left)
        ids = list(traces.filter(pk__gt=after).values_list("pk", flat=True)[:n])
        if not ids or JudgeRun.objects.filter(pk=run.pk).exclude(state=JudgeRunState.OPEN).exists():
            break
        after, left = ids[-1], None if left is None else left - len(ids)
        texts = labeled_traces.load_trace_texts(ids)
        known = {trace: columns[:, 0] for trace, columns in scores.load_scores(prm, ids).items()}
        unscored = [text for text in texts if text.trace not in known]
        new = _score(backend, prm, unscored)
        known |= {text.trace: numbers for text, numbers in zip(unscored, new, strict=True)}
        yield partial(_save, run, texts, [known[text.trace] for text in texts], unscored, new)
    yield partial(_finish, run)


def _score(backend: ScoringBackend | None, prm: PRM, texts: Sequence[TraceText]) -> list[Floats]:
    if not texts or backend is None:
        return []
    return base.validate_scores(backend.score(texts), texts, prm.semantics)


def _save(
    run: JudgeRun,
    texts: Sequence[TraceText],
    found: Sequence[Floats],
    unscored: Sequence[TraceText],
    new: Sequence[Floats],
    now: dt.datetime,
) -> JobProgress:
    row = JudgeRun.objects.select_for_update().get(pk=run.pk)
    judge = run.judge
    assert judge.prm is not None
    scores.save_scores(prm=judge.prm, texts=unscored, scores=new, now=now)
    labels = [label_steps(judge, text.is_rateable, numbers) for text, numbers in zip(texts, found, strict=True)]
    submitted = [
        MachineSubmission(text.trace, ratings) for text, (ratings, _) in zip(texts, labels, strict=True) if ratings
    ]
    submissions = save_machine_submissions(rater=judge.rater, submitted=submitted, now=now)
    JudgedTrace.objects.bulk_create(
        JudgedTrace(
            judge=judge,
            run=run,
            trace_id=text.trace,
            submission=submissions.get(text.trace),
            guideline=judge.project.guideline,
            n_votes=1,
            n_parsed=1 if ratings else 0,
            first_error=next((rating.position for rating in ratings if rating.rating == -1), None),
            first_errors=shares,
            judged_at=now,
        )
        for text, (ratings, shares) in zip(texts, labels, strict=True)
    )
    row.n_judged += len(texts)
    row.n_labeled += len(submitted)
    row.n_votes += len(texts)
    row.save(update_fields=["n_judged", "n_labeled", "n_votes"])
    run.n_judged, run.n_labeled = row.n_judged, row.n_labeled
    return JobProgress(row.n_judged, row.n_traces)


def label_steps(
    judge: Judge, is_rateable: Sequence[bool], numbers: Floats
) -> tuple[list[MachineRating], list[list[float | None]]]:
    """Return the ratings up to the first error, and P(E) as pairs of a position (None: no error) and a probability."""
    assert judge.prm is not None
    assert judge.threshold is not None
    masked = np.where(is_rateable, numbers, np.nan)
    p_wrong = hazards.calibrated_hazards(masked, np.array([len(masked)]), judge.prm.semantics, judge.prm.calibration)
    survival = np.cumprod(1 - p_wrong)
    ratings: list[MachineRating] = []
    for position in np.flatnonzero(is_rateable).tolist():
        is_wrong = bool(p_wrong[position] >= judge.threshold)
        ratings.append(MachineRating(position, -1 if is_wrong else 1, float(survival[position])))
        if is_wrong:
            break
    before = np.concatenate([[1.0], survival[:-1]])
    shares: list[list[float | None]] = [
        [position, float(before[position] * p_wrong[position])] for position in np.flatnonzero(is_rateable).tolist()
    ]
    return ratings, [*shares, [None, float(survival[-1])]] if ratings else []


def _finish(run: JudgeRun, now: dt.datetime) -> JobProgress:
    row = JudgeRun.objects.select_related("judge").get(pk=run.pk)
    runs.finish_run(run=row, now=now)
    return JobProgress(row.n_judged, row.n_traces)
