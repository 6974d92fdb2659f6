"""Scores what a PRM has not scored yet, in shards that run side by side and go on where they broke off.

What fails leaves everything as it was: the old scores stay, the queue goes on, and the job says why.
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

MOST_STEPS = 6000  # a chunk
_SHORT, _LONG = dt.timedelta(seconds=45), dt.timedelta(minutes=3)


def request_scoring(*, prm: PRM, by: User | None, now: dt.datetime) -> list[Job]:
    """Score what is stale, outside of any generation; nothing is asked for twice."""
    subject = f"prm:{prm.pk}"
    if Job.objects.unfinished().filter(kind=generations.SCORE, subject=subject).exists():
        return []
    n_traces = scores.unscored_traces(prm).count()
    shards = min(generations.MAX_SHARDS, -(-n_traces // generations.TRACES_A_SHARD))
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
    """Short where nobody elsewhere is waited for: what a kill has cut off goes on once its lease has ended."""
    asked = Job.objects.get(pk=job_id).arguments["prm"]
    return _SHORT if PRM.objects.filter(pk=asked, backend=BackendKind.BUILTIN).exists() else _LONG


def run_scoring_job(job: Job) -> Iterator[JobProgress | Chunk]:
    prm = PRM.objects.select_related("project").get(pk=job.arguments["prm"])
    after, done = job.checkpoint.get("after", 0), job.done
    mine = _traces_of_shard(prm, job.arguments["shard"], job.arguments["of"])
    total = done + mine.filter(pk__gt=after).count()
    backend = registry.load_backend(prm)
    yield JobProgress(done, total)
    while ids := _next_trace_ids(mine.filter(pk__gt=after), _traces_per_chunk(prm)):
        read = trace_texts.load_trace_texts(ids)
        questions = [text.asked for text in read]
        found = base.validate_scores(backend.score(questions), questions, prm.semantics)
        after, done = ids[-1], done + len(ids)
        yield partial(_save_chunk, prm, read, found, JobProgress(done, max(total, done), {"after": after}))
    yield partial(_finish_shard, job.arguments["generation"], done)


def _traces_of_shard(prm: PRM, shard: int, of: int) -> QuerySet[Trace]:
    return scores.unscored_traces(prm).annotate(part=Mod(F("pk"), of)).filter(part=shard)


def _next_trace_ids(traces: QuerySet[Trace], size: int) -> list[int]:
    """Fewer where they are long: a chunk must be done within its lease."""
    found = list(traces.order_by("pk").values_list("pk", "n_steps")[:size])
    steps = accumulate(n_steps for _, n_steps in found)
    return [pk for n, ((pk, _), total) in enumerate(zip(found, steps, strict=True)) if not n or total <= MOST_STEPS]


def _traces_per_chunk(prm: PRM) -> int:
    """Return the number of traces a chunk: few if another server computes the scores."""
    return 500 if prm.backend == BackendKind.BUILTIN else 64


def _save_chunk(
    prm: PRM, read: Sequence[TraceText], found: Sequence[Floats], progress: JobProgress, now: dt.datetime
) -> JobProgress:
    scores.save_scores(prm=prm, texts=read, scores=found, now=now)
    return progress


def _finish_shard(generation_id: int | None, done: int, now: dt.datetime) -> JobProgress:
    if generation_id is not None:
        generations.record_finished_shard(generation_id=generation_id, now=now)
    return JobProgress(done, done)
