"""The job that scores the traces a PRM has not scored yet, in parallel shards that resume after an interruption.

A failure changes nothing: earlier scores and the queue stay as they are, and the job reports the reason.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate

from django.db.models import F, QuerySet
from django.db.models.functions import Mod

from accounts.models import User
from jobs import control
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling.models import Trace
from prm import generations, registry, scores, trace_texts
from prm.backends import base
from prm.models import PRM
from prm.models.prm import BackendKind
from prm.trace_texts import TraceText
from stats.arrays import Floats

MAX_STEPS = 6000  # per chunk
_BUILTIN_LEASE, _EXTERNAL_LEASE = dt.timedelta(seconds=45), dt.timedelta(minutes=3)


def request_scoring(*, prm: PRM, by: User | None, now: dt.datetime) -> list[Job]:
    """Request jobs for the unscored traces outside of any generation; none while earlier ones are unfinished."""
    subject = f"prm:{prm.pk}"
    if Job.objects.unfinished().filter(kind=generations.SCORE, subject=subject).exists():
        return []
    n_traces = scores.unscored_traces(prm).count()
    shards = generations.count_shards(n_traces)
    return [
        control.request_job(
            kind=generations.SCORE,
            subject=subject,
            arguments={"prm": prm.pk, "shard": shard, "of": shards, "generation": None},
            by=by,
            now=now,
        )
        for shard in range(shards)
    ]


def lease_of_job(job_id: int) -> dt.timedelta:
    """Return a short lease for the builtin PRM: after a kill the job resumes only when its lease has ended."""
    prm = Job.objects.get(pk=job_id).arguments["prm"]
    is_builtin = PRM.objects.filter(pk=prm, backend=BackendKind.BUILTIN).exists()
    return _BUILTIN_LEASE if is_builtin else _EXTERNAL_LEASE


def run_scoring_job(job: Job) -> Iterator[JobProgress | Chunk]:
    prm = PRM.objects.select_related("project").get(pk=job.arguments["prm"])
    after, done = job.checkpoint.get("after", 0), job.done
    traces = _traces_of_shard(prm, job.arguments["shard"], job.arguments["of"])
    total = done + traces.filter(pk__gt=after).count()
    backend = registry.load_backend(prm)
    yield JobProgress(done, total)
    while ids := _next_trace_ids(traces.filter(pk__gt=after), _traces_per_chunk(prm)):
        texts = trace_texts.load_trace_texts(ids)
        inputs = [text.scorer_input for text in texts]
        step_scores = base.validate_scores(backend.score(inputs), inputs, prm.semantics)
        after, done = ids[-1], done + len(ids)
        yield partial(_save_chunk, prm, texts, step_scores, JobProgress(done, max(total, done), {"after": after}))
    yield partial(_finish_shard, job.arguments["generation"], done)


def _traces_of_shard(prm: PRM, shard: int, of: int) -> QuerySet[Trace]:
    return scores.unscored_traces(prm).annotate(part=Mod(F("pk"), of)).filter(part=shard)


def _next_trace_ids(traces: QuerySet[Trace], size: int) -> list[int]:
    """Return the next traces with at most MAX_STEPS steps, but at least one: a chunk must fit into its lease."""
    rows = list(traces.order_by("pk").values_list("pk", "n_steps")[:size])
    totals = accumulate(n_steps for _, n_steps in rows)
    return [pk for n, ((pk, _), total) in enumerate(zip(rows, totals, strict=True)) if not n or total <= MAX_STEPS]


def _traces_per_chunk(prm: PRM) -> int:
    """Return fewer traces if another server computes the scores."""
    return 500 if prm.backend == BackendKind.BUILTIN else 64


def _save_chunk(
    prm: PRM, texts: Sequence[TraceText], step_scores: Sequence[Floats], progress: JobProgress, now: dt.datetime
) -> JobProgress:
    scores.save_scores(prm=prm, texts=texts, scores=step_scores, now=now)
    return progress


def _finish_shard(generation_id: int | None, done: int, now: dt.datetime) -> JobProgress:
    if generation_id is not None:
        generations.record_finished_shard(generation_id=generation_id, now=now)
    return JobProgress(done, done)
