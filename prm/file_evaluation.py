"""Evaluate a project's PRM on a file in ProcessBench's format, at the threshold found on the held-out set.

Only this module writes FileEvaluation rows. An evaluation on a file never replaces the gate: it shows how good the PRM
is on other problems. For a PRM with a stated training set it counts the problems of the file that are in that set.
"""

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from accounts.models import User
from events import audit_log
from jobs import control, paging
from jobs.failures import JobFailed
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Problem
from labeling.traces import locations
from prm import registry
from prm.models import PRM, FileEvaluation
from prm.models.prm import BackendKind

KIND = "prm.evaluate_file"
MAX_FILE_BYTES = 200 * 1024**2  # a file is evaluated in memory
_TRACES_PER_CHUNK = 64


class NotEvaluable(Exception):
    """The PRM cannot score new traces. The message is for the person who asks."""


def request_file_evaluation(*, prm: PRM, path: Path, by: User | None, now: dt.datetime) -> Job:
    """Request a job for an uploaded file, which it deletes at its end."""
    refuse_pushed(prm)
    return control.request_job(
        kind=KIND, subject=f"prm:{prm.pk}", arguments={"prm": prm.pk, "path": str(path)}, by=by, now=now
    )


def refuse_pushed(prm: PRM) -> None:
    if prm.backend == BackendKind.PUSHED:
        raise NotEvaluable(
            _(
                "Scores for this PRM can only be pushed, so it cannot score a file. Import the file and push"
                " scores instead."
            )
        )


def run_file_evaluation_job(job: Job) -> Iterator[JobProgress | Chunk]:
    prm, path = PRM.objects.select_related("project").get(pk=job.arguments["prm"]), Path(job.arguments["path"])
    figures: dict[str, Any] = {}
    for step in evaluate_on_files(prm, [path]):
        if isinstance(step, JobProgress):
            yield step
        else:
            figures = step
    yield partial(_save_chunk, prm, job, path, figures)
    if locations.is_upload(path):
        locations.delete_upload(path)


def _save_chunk(prm: PRM, job: Job, path: Path, figures: dict[str, Any], now: dt.datetime) -> JobProgress:
    save_evaluation(prm=prm, paths=[path], figures=figures, by=job.asked_by, now=now)
    n = figures["counts"]["traces"]
    return JobProgress(n, n)


def evaluate_on_files(prm: PRM, paths: Sequence[Path]) -> Iterator[JobProgress | dict[str, Any]]:
    """Yield the progress, and at the end the figures, as `benchmark_evaluation` returns them."""
    from prm import benchmark_evaluation  # scikit-learn takes a second to load

    refuse_pushed(prm)
    try:
        judged = benchmark_evaluation.read_benchmark(paths)
    except benchmark_evaluation.BenchmarkUnreadable as error:
        raise JobFailed(str(error)) from None
    backend, total, parts = registry.load_backend(prm), len(judged.traces), [np.zeros(0)]
    yield JobProgress(0, total)
    for part in paging.split(judged.traces, _TRACES_PER_CHUNK):
        parts.append(benchmark_evaluation.score_traces(backend, part, prm.semantics))
        yield JobProgress(min((len(parts) - 1) * _TRACES_PER_CHUNK, total), total)
    texts = list(_load_training_problems(prm)) if prm.trained is not None else None
    yield benchmark_evaluation.summarize_scores(
        judged, np.concatenate(parts), semantics=prm.semantics, threshold=prm.threshold, training_problems=texts
    )


def _load_training_problems(prm: PRM) -> Iterator[str]:
    for part in paging.split(prm.trained_ids()):
        yield from Problem.objects.filter(traces__in=part).distinct().values_list("text", flat=True)


def save_evaluation(
    *, prm: PRM, paths: Sequence[Path], figures: dict[str, Any], by: User | None, now: dt.datetime
) -> FileEvaluation:
    digest = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)).hexdigest()
    row = FileEvaluation.objects.create(
        prm=prm,
        name=", ".join(path.name for path in paths)[:200],
        digest=digest,
        figures=figures,
        threshold=prm.threshold,
        evaluated_at=now,
        evaluated_by=by,
    )
    audit_log.log_event(
        what="prm.evaluated_on_file",
        by=by,
        now=now,
        project=prm.project_id,
        subject=f"prm:{prm.pk}",
        detail={"file": row.name, "sha256": digest, "f1": figures["f1"]},
    )
    return row
