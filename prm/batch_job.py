"""The last job of a generation: draw a batch, add it to the queue, measure the gain of active selection.

All draws are saved before the first one is served. After that the job only resumes and never draws the batch again.
"""

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from jobs import paging
from jobs.models import Job
from jobs.runner import Chunk, JobProgress
from labeling import queue
from labeling.models import Manifest
from labeling.queue import DrawnTrace
from prm import drawable_pool, generations, payoff
from prm.drawable_pool import DrawablePool
from prm.evaluation import audits
from prm.models import PRM, Generation, LoopRules
from prm.models.generation import Stage
from prm.selection import acquisitions, batches, draws
from prm.selection.acquisitions import Pool, ReadingRates
from prm.selection.draws import DrawArm, DrawRules, PoolDraw

PART_SIZE = 500  # draws per transaction, so that claims never wait long
GENERATIONS_WITHOUT_GAIN = 3


def run_batch_job(job: Job) -> Iterator[JobProgress | Chunk]:
    generation = Generation.objects.select_related("project", "manifest").get(pk=job.arguments["generation"])
    manifest = generation.manifest
    assert manifest is not None  # frozen by the first stage
    total = job.checkpoint.get("total", 0)
    # Without a PRM (the project's first gate failed) the queue stays as it is.
    if generation.scored_with_id is not None and "served" not in job.checkpoint:
        prm = PRM.objects.select_related("project").defer("weights").get(pk=generation.scored_with_id)
        drawable = drawable_pool.load_drawable_pool(prm)
        drawn, facts = _draw_batch(generation, manifest, prm, drawable)
        total = 2 * len(drawn) + payoff.REPLICATES
        yield from _save_batch(generation, prm, _to_queue_draws(drawn, drawable), drawable.pool.n, facts, total)
    if generation.scored_with_id is not None:
        for rank in range(job.checkpoint.get("served", 1), generation.n_policy + generation.n_uniform + 1, PART_SIZE):
            yield partial(_serve_part, generation, rank, total)
    result: dict[str, Any] = {}
    for figures in _measure_payoff(generation, manifest):
        result = figures
        yield JobProgress(max(total - payoff.REPLICATES, 0), total)
    if generation.batch is not None:
        queue.close_earlier_batches(
            project_id=generation.project_id, generation=generation.number, by=None, now=job.asked_at
        )
    yield partial(
        _finish_generation, generation, {**result, "pool": _estimate_previous_pool(generation, manifest)}, total
    )


# --- draw -----------------------------------------------------------------------------------------------------------


def _draw_batch(
    generation: Generation, manifest: Manifest, prm: PRM, drawable: DrawablePool
) -> tuple[list[PoolDraw], dict[str, Any]]:
    """Draw with the generation's own seed, so that a retry on the same pool draws the same batch.

    Also return what the generation records: the assumed cost, and whether the policy selects by length. Its length
    drift is shown with the gate's figures, but it is too late to block the gate.
    """
    seed = int.from_bytes(hashlib.sha256(f"generation {generation.pk}".encode()).digest()[:8], "big")
    pace = drawable_pool.fit_reading_pace(manifest, prm)
    rules = generations.load_loop_rules(generation.project)
    acquisition = generations.effective_acquisition(rules)
    if acquisition == acquisitions.disagreement.__name__:
        drawable = drawable_pool.add_disagreement(drawable)
    drawn = draw_with_acquisition(
        drawable,
        pace.reading,
        acquisition=acquisition,
        rules=rules,
        uniform_share=generation.project.uniform_share,
        seed=seed,
    )
    n_policy = sum(draw.arm is DrawArm.POLICY for draw in drawn)
    return drawn, {
        "acquisition": acquisition,
        "n_policy": n_policy,
        "n_uniform": len(drawn) - n_policy,
        "reading": {**asdict(pace.reading), "n": pace.n, "is_fitted": pace.is_fitted},
        "gate": {**generation.gate, "length_drift": _measure_length_drift(drawable.pool, drawn)},
    }


def draw_with_acquisition(
    drawable: DrawablePool,
    reading: ReadingRates,
    *,
    acquisition: str,
    rules: LoopRules,
    uniform_share: float,
    seed: int,
) -> list[PoolDraw]:
    return batches.draw_batch(
        drawable.pool,
        acquisition=acquisition,
        reading=reading,
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


def _measure_length_drift(pool: Pool, drawn: Sequence[PoolDraw]) -> dict[str, Any]:
    is_drawn = np.zeros(pool.n, dtype=np.bool_)
    is_drawn[[draw.trace for draw in drawn if draw.arm is DrawArm.POLICY]] = True
    rows, length = is_drawn[pool.traces], np.log(np.maximum(pool.characters, 1))
    drift = audits.length_drift(
        pool_p_wrong=pool.hazards,
        pool_log_characters=length,
        served_p_wrong=pool.hazards[rows],
        served_log_characters=length[rows],
    )
    return asdict(drift)


def _to_queue_draws(drawn: Sequence[PoolDraw], drawable: DrawablePool) -> list[DrawnTrace]:
    ids = drawable.trace_ids
    return [
        DrawnTrace(draw.rank, int(ids[draw.trace]), draw.arm.value, draw.q, draw.score, draw.n_left) for draw in drawn
    ]


# --- save and serve -------------------------------------------------------------------------------------------------


def _save_batch(
    generation: Generation, prm: PRM, drawn: list[DrawnTrace], pool_size: int, facts: dict[str, Any], total: int
) -> Iterator[Chunk]:
    number = generation.batch or queue.next_batch_number(project_id=generation.project_id)
    yield partial(_open_batch, generation, number, facts, total)
    done = 0
    for part in paging.split(drawn, PART_SIZE):
        done += len(part)
        yield partial(_save_part, generation, prm, part, pool_size, JobProgress(done, total))
    yield lambda now: JobProgress(done, total, {"served": 1, "total": total})


def _open_batch(
    generation: Generation, number: int, facts: dict[str, Any], total: int, now: dt.datetime
) -> JobProgress:
    queue.delete_draws(project_id=generation.project_id, batch=number, now=now)
    generations.advance_generation(generation=generation, stage=Stage.SELECT, now=now, batch=number, **facts)
    return JobProgress(0, total)


def _save_part(
    generation: Generation,
    prm: PRM,
    part: Sequence[DrawnTrace],
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


# --- results --------------------------------------------------------------------------------------------------------


def _measure_payoff(generation: Generation, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the gain from earlier batches, or the reason why it cannot be measured yet."""
    training = payoff.load_labeled_training(manifest)
    held_out = payoff.load_held_out_steps(manifest)
    if shortage := payoff.find_shortage(training, held_out):
        yield shortage
        return
    batch = generation.n_policy + generation.n_uniform
    yield from payoff.measure_payoff(training, held_out, batch=max(batch, 1), seed=generation.number)


def _estimate_previous_pool(generation: Generation, manifest: Manifest) -> dict[str, Any]:
    """Estimate the pool of the previous batch from its labels."""
    before = Generation.objects.filter(project=generation.project_id, number__lt=generation.number, batch__isnull=False)
    batch = before.order_by("-number").values_list("batch", flat=True).first()
    return payoff.estimate_from_batch(project_id=generation.project_id, batch=batch, manifest=manifest) if batch else {}


def _finish_generation(generation: Generation, result: dict[str, Any], total: int, now: dt.datetime) -> JobProgress:
    generations.finish_generation(generation=generation, payoff=result, now=now)
    finished = Generation.objects.filter(project=generation.project, stage=Stage.DONE).order_by("number")
    if payoff.has_no_gain(list(finished.values_list("payoff", flat=True)), least=GENERATIONS_WITHOUT_GAIN):
        generations.fall_back_to_random(project=generation.project, now=now)
    return JobProgress(total, total)
