"""The last job of a generation: draw a batch, add it to the queue, measure the gain of active selection.

All draws are saved before the first one is served. From then on the job only resumes: the batch is never drawn again.
"""

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

PART_SIZE = 500  # draws per transaction, so that claims never wait long
GENERATIONS_WITHOUT_GAIN = 3


@dataclass(frozen=True)
class DrawnBatch:
    """Draws in order. `pace` is the assumed cost, `drift` shows whether the policy selects by length."""

    draws: list[DrawnTrace]
    pool_size: int
    acquisition: str
    pace: ReadingPace
    drift: AuditFigure

    @property
    def parts(self) -> list[list[DrawnTrace]]:
        return [self.draws[start : start + PART_SIZE] for start in range(0, len(self.draws), PART_SIZE)]

    def count(self, arm: DrawArm) -> int:
        return sum(draw.arm == arm for draw in self.draws)


# --- draw -----------------------------------------------------------------------------------------------------------


def draw_batch(*, project: Project, prm: PRM, rules: LoopRules, seed: int, pace: ReadingPace) -> DrawnBatch:
    """Draw from the current pool without saving anything."""
    drawable, acquisition = drawable_pool.load_drawable_pool(prm), loop_rules.effective_acquisition(rules)
    drawn = draw_with_acquisition(
        drawable, pace.reading, acquisition=acquisition, rules=rules, uniform_share=project.uniform_share, seed=seed
    )
    queue_draws = [_to_queue_draw(draw, drawable.trace_ids) for draw in drawn]
    return DrawnBatch(queue_draws, drawable.pool.n, acquisition, pace, _measure_length_drift(drawable.pool, drawn))


def draw_with_acquisition(
    drawable: DrawablePool,
    reading: ReadingRates,
    *,
    acquisition: str,
    rules: LoopRules,
    uniform_share: float,
    seed: int,
) -> list[PoolDraw]:
    if not drawable.pool.n:
        return []
    return draws.draw_in_order(
        scores=acquisitions.acquisition_scores(acquisition, drawable.pool, reading),
        problems=drawable.pool.problems,
        domains=drawable.pool.domains,
        places=drawable.places,
        size=rules.batch_size,
        rules=DrawRules(
            uniform_share=min(max(uniform_share, draws.MIN_UNIFORM_SHARE), 1.0),
            temperature=rules.temperature,
            has_one_per_problem=rules.has_one_per_problem,
            domain_quota=rules.domain_quota,
        ),
        random=np.random.default_rng(seed),
    )


def _measure_length_drift(pool: Pool, drawn: Sequence[PoolDraw]) -> AuditFigure:
    is_drawn = np.zeros(pool.n, dtype=np.bool_)
    is_drawn[[draw.trace for draw in drawn if draw.arm is DrawArm.POLICY]] = True
    rows, length = is_drawn[pool.traces], np.log(np.maximum(pool.characters, 1))
    return audits.length_drift(
        pool_p_wrong=pool.hazards,
        pool_log_characters=length,
        served_p_wrong=pool.hazards[rows],
        served_log_characters=length[rows],
    )


def _to_queue_draw(draw: PoolDraw, trace_ids: Ints) -> DrawnTrace:
    return DrawnTrace(draw.rank, int(trace_ids[draw.trace]), draw.arm.value, draw.q, draw.score, draw.n_left)


# --- the job --------------------------------------------------------------------------------------------------------


def run_batch_job(job: Job) -> Iterator[JobProgress | Chunk]:
    generation = Generation.objects.select_related("project", "manifest").get(pk=job.arguments["generation"])
    prm = _load_scoring_prm(generation)
    total = job.checkpoint.get("total", 0)
    if prm is not None and "served" not in job.checkpoint:
        batch = _draw_for_generation(generation, prm)
        total = 2 * len(batch.draws) + payoff.REPLICATES
        yield from _save_batch(generation, prm, batch, total)
    if prm is not None:
        yield from _serve_batch(generation, job.checkpoint.get("served", 1), total)
    result: dict[str, Any] = {}
    for figures in _measure_payoff(generation):
        result = figures
        yield JobProgress(max(total - payoff.REPLICATES, 0), total)
    if generation.batch is not None:
        queue.close_earlier_batches(
            project_id=generation.project_id, generation=generation.number, by=None, now=job.asked_at
        )
    yield partial(_finish_generation, generation, {**result, "pool": _estimate_previous_pool(generation)}, total)


def _load_scoring_prm(generation: Generation) -> PRM | None:
    """Return the PRM of the scores, or None if the project's first gate failed and the queue stays as it is."""
    if generation.scored_with_id is None:
        return None
    return PRM.objects.select_related("project").defer("weights").get(pk=generation.scored_with_id)


def _draw_for_generation(generation: Generation, prm: PRM) -> DrawnBatch:
    """Draw with the generation's own seed, so that a retry on the same pool draws the same batch."""
    seed = int.from_bytes(hashlib.sha256(f"generation {generation.pk}".encode()).digest()[:8], "big")
    assert generation.manifest is not None  # frozen by the first stage
    pace = reading_pace.fit_reading_pace(generation.manifest, prm)
    rules = loop_rules.load_loop_rules(generation.project)
    return draw_batch(project=generation.project, prm=prm, rules=rules, seed=seed, pace=pace)


def _save_batch(generation: Generation, prm: PRM, batch: DrawnBatch, total: int) -> Iterator[Chunk]:
    number = generation.batch or queue.next_batch_number(project_id=generation.project_id)
    yield partial(_open_batch, generation, batch, number, total)
    done = 0
    for part in batch.parts:
        done += len(part)
        yield partial(_save_part, generation, prm, part, batch.pool_size, JobProgress(done, total))
    yield lambda now: JobProgress(done, total, {"served": 1, "total": total})


def _open_batch(generation: Generation, batch: DrawnBatch, number: int, total: int, now: dt.datetime) -> JobProgress:
    queue.delete_draws(project_id=generation.project_id, batch=number, now=now)
    generations.record_batch(
        generation=generation,
        batch=number,
        acquisition=batch.acquisition,
        n_policy=batch.count(DrawArm.POLICY),
        n_uniform=batch.count(DrawArm.UNIFORM),
        reading=batch.pace.as_dict(),
        drift={"value": batch.drift.value, "n": batch.drift.n, "is_alarming": batch.drift.is_alarming},
        now=now,
    )
    return JobProgress(0, total)


def _save_part(
    generation: Generation,
    prm: PRM,
    part: list[DrawnTrace],
    pool_size: int,
    progress: JobProgress,
    now: dt.datetime,
) -> JobProgress:
    queue.save_draws(
        project_id=generation.project_id,
        batch=generation.batch or 0,
        draws=part,
        prm=prm.label,
        pool_size=pool_size,
        now=now,
    )
    return progress


def _serve_batch(generation: Generation, first: int, total: int) -> Iterator[Chunk]:
    for rank in range(first, generation.n_policy + generation.n_uniform + 1, PART_SIZE):
        yield partial(_serve_part, generation, rank, total)


def _serve_part(generation: Generation, rank: int, total: int, now: dt.datetime) -> JobProgress:
    end, last = rank + PART_SIZE, generation.n_policy + generation.n_uniform
    queue.enqueue_draws(
        project_id=generation.project_id,
        batch=generation.batch or 0,
        ranks=(rank, end),
        generation=generation.number,
        slots=generation.project.overlap,
        now=now,
    )
    return JobProgress(last + min(end - 1, last), total, {"served": end, "total": total})


def _measure_payoff(generation: Generation) -> Iterator[dict[str, Any]]:
    """Yield the gain from earlier batches, or the reason why it cannot be measured yet."""
    assert generation.manifest is not None  # frozen by the first stage
    training = payoff.load_labeled_training(generation.manifest)
    held_out = payoff.load_held_out_steps(generation.manifest)
    if shortage := payoff.find_shortage(training, held_out):
        yield {"reason": shortage.text, "shortage": shortage.kind.value}
        return
    batch = generation.n_policy + generation.n_uniform
    yield from payoff.measure_payoff(training, held_out, batch=max(batch, 1), seed=generation.number)


def _estimate_previous_pool(generation: Generation) -> dict[str, Any]:
    """Estimate the pool of the previous batch from its labels."""
    assert generation.manifest is not None  # frozen by the first stage
    before = Generation.objects.filter(project=generation.project_id, number__lt=generation.number, batch__isnull=False)
    batch = before.order_by("-number").values_list("batch", flat=True).first()
    if not batch:
        return {}
    return pool_estimates.estimate_from_batch(
        project_id=generation.project_id, batch=batch, manifest=generation.manifest
    )


def _finish_generation(generation: Generation, result: dict[str, Any], total: int, now: dt.datetime) -> JobProgress:
    generations.finish_generation(generation=generation, payoff=result, now=now)
    finished = Generation.objects.filter(project=generation.project, stage=Stage.DONE).order_by("number")
    if payoff.has_no_gain(list(finished.values_list("payoff", flat=True)), least=GENERATIONS_WITHOUT_GAIN):
        loop_rules.fall_back_to_random(project=generation.project, now=now)
    return JobProgress(total, total)
