"""The last job of a generation: draw a batch, put it into its lanes, measure whether choosing pays, close what was
served before. Draws are kept before anything is served; after that it only goes on."""

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling import queue
from labeling.models import Project
from labeling.queue import DrawnTrace
from prm import drawable_pool, generations, loop_rules, payoff, pool_estimates, reading_pace
from prm.drawable_pool import DrawablePool
from prm.evaluation import audits
from prm.evaluation.audits import AuditFigure
from prm.models import PRM, Generation, LoopRules
from prm.models.generation import Stage
from prm.reading_pace import ReadingPace
from prm.selection import acquisitions, draws
from prm.selection.cost import ReadingRates
from prm.selection.draws import DrawArm, DrawRules, PoolDraw
from prm.selection.pool import Pool
from stats.arrays import Ints

# Draws a batch from the pool and puts it into its lanes, in small parts. Claims never wait for it.


PART_SIZE = 500  # draws in a transaction


@dataclass(frozen=True)
class DrawnBatch:
    """Draws in order, before they are kept."""

    draws: list[DrawnTrace]
    pool_size: int
    acquisition: str
    pace: ReadingPace  # what reading was taken to cost
    drift: AuditFigure  # corr(score, length) among what the policy drew minus the pool's: a loop that feeds on length

    @property
    def parts(self) -> list[list[DrawnTrace]]:
        size = PART_SIZE
        return [self.draws[start : start + size] for start in range(0, len(self.draws), size)]

    def count(self, arm: str) -> int:
        return sum(draw.arm == arm for draw in self.draws)


def draw_batch(*, project: Project, prm: PRM, chosen: LoopRules, seed: int, pace: ReadingPace) -> DrawnBatch:
    """Reads the pool and draws; writes nothing."""
    drawable, acquisition = drawable_pool.load_drawable_pool(prm), loop_rules.effective_acquisition(chosen)
    found = draw_with_acquisition(
        *(drawable, pace.reading), acquisition=acquisition, chosen=chosen, uniform=project.uniform_share, seed=seed
    )
    drawn = [_to_queue_draw(each, drawable.trace_ids) for each in found]
    return DrawnBatch(drawn, drawable.pool.n, acquisition, pace, _measure_length_drift(drawable.pool, found))


def _measure_length_drift(pool: Pool, found: Sequence[PoolDraw]) -> AuditFigure:
    chosen = np.zeros(pool.n, dtype=np.bool_)
    chosen[[each.trace for each in found if each.arm is DrawArm.POLICY]] = True
    rows, length = chosen[pool.traces], np.log(np.maximum(pool.characters, 1))
    return audits.length_drift(
        pool_p_wrong=pool.hazards,
        pool_log_characters=length,
        served_p_wrong=pool.hazards[rows],
        served_log_characters=length[rows],
    )


def draw_with_acquisition(
    drawable: DrawablePool, reading: ReadingRates, *, acquisition: str, chosen: LoopRules, uniform: float, seed: int
) -> list[PoolDraw]:
    if not drawable.pool.n:
        return []
    return draws.draw_in_order(
        scores=acquisitions.acquisition_scores(acquisition, drawable.pool, reading),
        problems=drawable.pool.problems,
        domains=drawable.pool.domains,
        places=drawable.places,
        size=chosen.batch_size,
        rules=DrawRules(
            uniform_share=min(max(uniform, 0.01), 1.0),  # without any no estimate from these labels would be unbiased
            temperature=chosen.temperature,
            has_one_per_problem=chosen.has_one_per_problem,
            domain_quota=chosen.domain_quota,
        ),
        random=np.random.default_rng(seed),
    )


def _to_queue_draw(found: PoolDraw, trace_ids: Ints) -> DrawnTrace:
    arm = "uniform" if found.arm is DrawArm.UNIFORM else "policy"
    return DrawnTrace(found.rank, int(trace_ids[found.trace]), arm, found.q, found.score, found.n_left)


def save_draws(
    *, project: Project, batch: int, part: list[DrawnTrace], pool_size: int, prm: PRM, now: dt.datetime
) -> None:
    queue.save_draws(project_id=project.pk, batch=batch, draws=part, prm=prm.label, pool_size=pool_size, now=now)


def serve_draws(*, project: Project, batch: int, first: int, generation: int, now: dt.datetime) -> int:
    return queue.enqueue_draws(
        project_id=project.pk,
        batch=batch,
        ranks=(first, first + PART_SIZE),
        generation=generation,
        slots=project.overlap,
        now=now,
    )


GENERATIONS_WITHOUT_GAIN = 3


def run_batch_job(job: Job) -> Iterator[JobProgress | Chunk]:
    generation = Generation.objects.select_related("project", "manifest").get(pk=job.arguments["generation"])
    prm = _scoring_prm(generation)
    total = job.checkpoint.get("total", 0)
    if prm is not None and "served" not in job.checkpoint:
        batch = _draw_for_generation(generation, prm)
        total = 2 * len(batch.draws) + payoff.REPLICATES
        yield from _save_batch(generation, prm, batch, total)
    if prm is not None:
        yield from _serve_batch(generation, job.checkpoint.get("served", 1), total)
    told: dict[str, Any] = {}
    for figures in _measure_payoff(generation):
        told = figures
        yield JobProgress(max(total - payoff.REPLICATES, 0), total)
    if generation.batch is not None:
        queue.close_earlier_batches(
            project_id=generation.project_id, generation=generation.number, by=None, now=job.asked_at
        )
    yield partial(_finish_generation, generation, {**told, "pool": _estimate_previous_pool(generation)}, total)


def _scoring_prm(generation: Generation) -> PRM | None:
    """The one that was scored with. None where the first gate was not passed: the queue goes on as it was."""
    if generation.scored_with_id is None:
        return None
    return PRM.objects.select_related("project").defer("weights").get(pk=generation.scored_with_id)


def _draw_for_generation(generation: Generation, prm: PRM) -> DrawnBatch:
    """The seed belongs to the generation: drawn anew from the same pool it is the same batch."""
    seed = int.from_bytes(hashlib.sha256(f"generation {generation.pk}".encode()).digest()[:8], "big")
    assert generation.manifest is not None  # the first stage froze it
    pace = reading_pace.fit_reading_pace(generation.manifest, prm)
    return draw_batch(
        project=generation.project, prm=prm, chosen=loop_rules.load_loop_rules(generation.project), seed=seed, pace=pace
    )


def _save_batch(generation: Generation, prm: PRM, batch: DrawnBatch, total: int) -> Iterator[Chunk]:
    number = generation.batch or queue.next_batch_number(project_id=generation.project_id)
    yield partial(_open_batch, generation, batch, number, total)
    done = 0
    for part in batch.parts:
        done += len(part)
        yield partial(_save_batch_part, generation, prm, part, batch.pool_size, done, total)
    yield lambda now: JobProgress(done, total, {"served": 1, "total": total})


def _open_batch(generation: Generation, batch: DrawnBatch, number: int, total: int, now: dt.datetime) -> JobProgress:
    queue.delete_draws(project_id=generation.project_id, batch=number, now=now)
    generations.record_batch(
        generation=generation,
        batch=number,
        acquisition=batch.acquisition,
        n_policy=batch.count("policy"),
        n_uniform=batch.count("uniform"),
        reading=batch.pace.as_dict(),
        drift={"value": batch.drift.value, "n": batch.drift.n, "is_alarming": batch.drift.is_alarming},
        now=now,
    )
    return JobProgress(0, total)


def _save_batch_part(
    generation: Generation, prm: PRM, part: Any, pool_size: int, done: int, total: int, now: dt.datetime
) -> JobProgress:
    save_draws(
        project=generation.project, batch=generation.batch or 0, part=part, pool_size=pool_size, prm=prm, now=now
    )
    return JobProgress(done, total)


def _serve_batch(generation: Generation, first: int, total: int) -> Iterator[Chunk]:
    last, size = generation.n_policy + generation.n_uniform, PART_SIZE
    for rank in range(first, last + 1, size):
        yield partial(_serve_batch_part, generation, rank, last, total)


def _serve_batch_part(generation: Generation, rank: int, last: int, total: int, now: dt.datetime) -> JobProgress:
    serve_draws(
        project=generation.project, batch=generation.batch or 0, first=rank, generation=generation.number, now=now
    )
    reached = rank + PART_SIZE
    return JobProgress(last + min(reached - 1, last), total, {"served": reached, "total": total})


def _measure_payoff(generation: Generation) -> Iterator[dict[str, Any]]:
    """What earlier batches have shown so far; a reason where they have shown too little."""
    assert generation.manifest is not None  # the first stage froze it
    learnt, reserve = payoff.load_labeled_training(generation.manifest), payoff.load_held_out_steps(generation.manifest)
    if reason := payoff.why_unmeasurable(learnt, reserve):
        yield {"reason": reason}
        return
    batch = generation.n_policy + generation.n_uniform
    yield from payoff.measure_payoff(learnt, reserve, batch=max(batch, 1), seed=generation.number)


def _estimate_previous_pool(generation: Generation) -> dict[str, Any]:
    """What the batch before this one told of the pool that it was drawn from."""
    assert generation.manifest is not None  # the first stage froze it
    before = Generation.objects.filter(project=generation.project_id, number__lt=generation.number, batch__isnull=False)
    batch = before.order_by("-number").values_list("batch", flat=True).first()
    if not batch:
        return {}
    return pool_estimates.estimate_from_batch(
        project_id=generation.project_id, batch=batch, manifest=generation.manifest
    )


def _finish_generation(generation: Generation, told: dict[str, Any], total: int, now: dt.datetime) -> JobProgress:
    generations.finish_generation(generation=generation, payoff=told, now=now)
    earlier = Generation.objects.filter(project=generation.project, stage=Stage.DONE).order_by("number")
    if payoff.has_no_gain(list(earlier.values_list("payoff", flat=True)), least=GENERATIONS_WITHOUT_GAIN):
        loop_rules.fall_back_to_random(project=generation.project, now=now)
    return JobProgress(total, total)
