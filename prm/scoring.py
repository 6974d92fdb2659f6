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
from jobs import work
from jobs.models import Job
from jobs.runner import Chunk, Progress
from labeling.agreement.arrays import Floats
from labeling.models import Trace
from prm import generations, registry, scores, texts
from prm.backends import asked
from prm.models import PRM
from prm.models.prm import BackendKind
from prm.texts import Text

MOST_STEPS = 6000  # a chunk
_SHORT, _LONG = dt.timedelta(seconds=45), dt.timedelta(minutes=3)


def ask(*, prm: PRM, by: User | None, now: dt.datetime) -> list[Job]:
    """Score what is stale, outside of any generation; nothing is asked for twice."""
    subject = f"prm:{prm.pk}"
    if Job.objects.unfinished().filter(kind=generations.SCORE, subject=subject).exists():
        return []
    n_traces = scores.unscored(prm).count()
    shards = min(generations.MOST_SHARDS, -(-n_traces // generations.TRACES_A_SHARD))
    return [
        work.ask(
            kind=generations.SCORE,
            subject=subject,
            arguments={"prm": prm.pk, "shard": shard, "of": shards, "generation": None},
            by=by,
            now=now,
        )
        for shard in range(shards)
    ]


def lease(job_id: int) -> dt.timedelta:
    """Short where nobody elsewhere is waited for: what a kill has cut off goes on once its lease has ended."""
    asked = Job.objects.get(pk=job_id).arguments["prm"]
    return _SHORT if PRM.objects.filter(pk=asked, backend=BackendKind.BUILTIN).exists() else _LONG


def chunks(job: Job) -> Iterator[Progress | Chunk]:
    prm = PRM.objects.select_related("project").get(pk=job.arguments["prm"])
    after, done = job.checkpoint.get("after", 0), job.done
    mine = _shard(prm, job.arguments["shard"], job.arguments["of"])
    total = done + mine.filter(pk__gt=after).count()
    backend = registry.backend_of(prm)
    yield Progress(done, total)
    while ids := _next(mine.filter(pk__gt=after), _size(prm)):
        read = texts.of(ids)
        questions = [text.asked for text in read]
        found = asked.checked(backend.score(questions), questions, prm.semantics)
        after, done = ids[-1], done + len(ids)
        yield partial(_write, prm, read, found, Progress(done, max(total, done), {"after": after}))
    yield partial(_finish, job.arguments["generation"], done)


def _shard(prm: PRM, shard: int, of: int) -> QuerySet[Trace]:
    return scores.unscored(prm).annotate(part=Mod(F("pk"), of)).filter(part=shard)


def _next(traces: QuerySet[Trace], size: int) -> list[int]:
    """Fewer where they are long: a chunk must be done within its lease."""
    found = list(traces.order_by("pk").values_list("pk", "n_steps")[:size])
    steps = accumulate(n_steps for _, n_steps in found)
    return [pk for n, ((pk, _), total) in enumerate(zip(found, steps, strict=True)) if not n or total <= MOST_STEPS]


def _size(prm: PRM) -> int:
    """Return the number of traces a chunk: few if another server computes the scores."""
    return 500 if prm.backend == BackendKind.BUILTIN else 64


def _write(prm: PRM, read: Sequence[Text], found: Sequence[Floats], progress: Progress, now: dt.datetime) -> Progress:
    scores.write(prm=prm, texts=read, scores=found, now=now)
    return progress


def _finish(generation_id: int | None, done: int, now: dt.datetime) -> Progress:
    if generation_id is not None:
        generations.note_shard(generation_id=generation_id, now=now)
    return Progress(done, done)
