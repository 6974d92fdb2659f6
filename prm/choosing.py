"""The last job of a generation: draw a batch, put it into its lanes, measure whether choosing pays, close what was
served before. Draws are kept before anything is served; after that it only goes on."""

import datetime as dt
import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from jobs.models import Job
from jobs.runner import Chunk, Progress
from labeling import queue
from prm import estimating, generations, pacing, paying, payoff, rules, selecting
from prm.models import PRM, Generation
from prm.models.generation import Stage
from prm.selecting import Batch

GENERATIONS_WITHOUT_GAIN = 3


def chunks(job: Job) -> Iterator[Progress | Chunk]:
    generation = Generation.objects.select_related("project", "manifest").get(pk=job.arguments["generation"])
    prm = _prm(generation)
    total = job.checkpoint.get("total", 0)
    if prm is not None and "served" not in job.checkpoint:
        batch = _draw(generation, prm)
        total = 2 * len(batch.draws) + payoff.REPLICATES
        yield from _keep(generation, prm, batch, total)
    if prm is not None:
        yield from _serve(generation, job.checkpoint.get("served", 1), total)
    told: dict[str, Any] = {}
    for figures in _pay(generation):
        told = figures
        yield Progress(max(total - payoff.REPLICATES, 0), total)
    if generation.batch is not None:
        queue.close_before(project_id=generation.project_id, generation=generation.number, by=None, now=job.asked_at)
    yield partial(_finish, generation, {**told, "pool": _pool_before(generation)}, total)


def _prm(generation: Generation) -> PRM | None:
    """The one that was scored with. None where the first gate was not passed: the queue goes on as it was."""
    if generation.scored_with_id is None:
        return None
    return PRM.objects.select_related("project").defer("weights").get(pk=generation.scored_with_id)


def _draw(generation: Generation, prm: PRM) -> Batch:
    """The seed belongs to the generation: drawn anew from the same pool it is the same batch."""
    seed = int.from_bytes(hashlib.sha256(f"generation {generation.pk}".encode()).digest()[:8], "big")
    assert generation.manifest is not None  # the first stage froze it
    pace = pacing.of_manifest(generation.manifest, prm)
    return selecting.draw(
        project=generation.project, prm=prm, chosen=rules.of(generation.project), seed=seed, pace=pace
    )


def _keep(generation: Generation, prm: PRM, batch: Batch, total: int) -> Iterator[Chunk]:
    number = generation.batch or queue.next_batch(project_id=generation.project_id)
    yield partial(_open, generation, batch, number, total)
    done = 0
    for part in batch.parts:
        done += len(part)
        yield partial(_keep_part, generation, prm, part, batch.pool_size, done, total)
    yield lambda now: Progress(done, total, {"served": 1, "total": total})


def _open(generation: Generation, batch: Batch, number: int, total: int, now: dt.datetime) -> Progress:
    queue.forget_draws(project_id=generation.project_id, batch=number, now=now)
    generations.note_batch(
        generation=generation,
        batch=number,
        acquisition=batch.acquisition,
        n_policy=batch.count("policy"),
        n_uniform=batch.count("uniform"),
        reading=batch.pace.as_dict(),
        drift={"value": batch.drift.value, "n": batch.drift.n, "is_alarming": batch.drift.is_alarming},
        now=now,
    )
    return Progress(0, total)


def _keep_part(
    generation: Generation, prm: PRM, part: Any, pool_size: int, done: int, total: int, now: dt.datetime
) -> Progress:
    selecting.keep_part(
        project=generation.project, batch=generation.batch or 0, part=part, pool_size=pool_size, prm=prm, now=now
    )
    return Progress(done, total)


def _serve(generation: Generation, first: int, total: int) -> Iterator[Chunk]:
    last, size = generation.n_policy + generation.n_uniform, selecting.PART_SIZE
    for rank in range(first, last + 1, size):
        yield partial(_serve_part, generation, rank, last, total)


def _serve_part(generation: Generation, rank: int, last: int, total: int, now: dt.datetime) -> Progress:
    selecting.serve_part(
        project=generation.project, batch=generation.batch or 0, first=rank, generation=generation.number, now=now
    )
    reached = rank + selecting.PART_SIZE
    return Progress(last + min(reached - 1, last), total, {"served": reached, "total": total})


def _pay(generation: Generation) -> Iterator[dict[str, Any]]:
    """What earlier batches have shown so far; a reason where they have shown too little."""
    assert generation.manifest is not None  # the first stage froze it
    learnt, reserve = paying.learnt_of(generation.manifest), paying.reserve_of(generation.manifest)
    if reason := payoff.unmeasurable(learnt, reserve):
        yield {"reason": reason}
        return
    batch = generation.n_policy + generation.n_uniform
    yield from payoff.measure(learnt, reserve, batch=max(batch, 1), seed=generation.number)


def _pool_before(generation: Generation) -> dict[str, Any]:
    """What the batch before this one told of the pool that it was drawn from."""
    assert generation.manifest is not None  # the first stage froze it
    before = Generation.objects.filter(project=generation.project_id, number__lt=generation.number, batch__isnull=False)
    batch = before.order_by("-number").values_list("batch", flat=True).first()
    if not batch:
        return {}
    return estimating.of_batch(project_id=generation.project_id, batch=batch, manifest=generation.manifest)


def _finish(generation: Generation, told: dict[str, Any], total: int, now: dt.datetime) -> Progress:
    generations.finish(generation=generation, payoff=told, now=now)
    earlier = Generation.objects.filter(project=generation.project, stage=Stage.DONE).order_by("number")
    if payoff.without_gain(list(earlier.values_list("payoff", flat=True)), least=GENERATIONS_WITHOUT_GAIN):
        rules.fall_back(project=generation.project, now=now)
    return Progress(total, total)
