"""Draws a batch from the pool and puts it into its lanes, in small parts. Claims never wait for it.

First every draw is kept with its probability, then the lanes are filled from what is kept: what breaks off in between
goes on from there, and a batch that nobody has seen yet is drawn anew.
"""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from labeling import queue
from labeling.agreement.arrays import Ints
from labeling.models import Project
from labeling.queue import Drawn
from prm import pools, rules
from prm.evaluation import audits
from prm.evaluation.audits import Audit
from prm.models import PRM, LoopRules
from prm.pacing import Pace
from prm.pools import Drawable
from prm.selection import acquisitions, draws
from prm.selection.cost import Reading
from prm.selection.draws import Arm, Draw, Rules
from prm.selection.pool import Pool

PART_SIZE = 500  # draws in a transaction


@dataclass(frozen=True)
class Batch:
    """Draws in order, before they are kept."""

    draws: list[Drawn]
    pool_size: int
    acquisition: str
    pace: Pace  # what reading was taken to cost
    drift: Audit  # corr(score, length) among what the policy drew minus the pool's: a loop that feeds on length

    @property
    def parts(self) -> list[list[Drawn]]:
        size = PART_SIZE
        return [self.draws[start : start + size] for start in range(0, len(self.draws), size)]

    def count(self, arm: str) -> int:
        return sum(draw.arm == arm for draw in self.draws)


def draw(*, project: Project, prm: PRM, chosen: LoopRules, seed: int, pace: Pace) -> Batch:
    """Reads the pool and draws; writes nothing."""
    drawable, acquisition = pools.of(prm), rules.in_force(chosen)
    found = draw_from(
        *(drawable, pace.reading), acquisition=acquisition, chosen=chosen, uniform=project.uniform_share, seed=seed
    )
    drawn = [_drawn(each, drawable.trace_ids) for each in found]
    return Batch(drawn, drawable.pool.n, acquisition, pace, _drift(drawable.pool, found))


def _drift(pool: Pool, found: Sequence[Draw]) -> Audit:
    chosen = np.zeros(pool.n, dtype=np.bool_)
    chosen[[each.trace for each in found if each.arm is Arm.POLICY]] = True
    rows, length = chosen[pool.traces], np.log(np.maximum(pool.characters, 1))
    return audits.length_drift(
        pool_p_wrong=pool.hazards,
        pool_log_characters=length,
        served_p_wrong=pool.hazards[rows],
        served_log_characters=length[rows],
    )


def draw_from(
    drawable: Drawable, reading: Reading, *, acquisition: str, chosen: LoopRules, uniform: float, seed: int
) -> list[Draw]:
    if not drawable.pool.n:
        return []
    return draws.batch(
        scores=acquisitions.scores(acquisition, drawable.pool, reading),
        problems=drawable.pool.problems,
        domains=drawable.pool.domains,
        places=drawable.places,
        size=chosen.batch_size,
        rules=Rules(
            uniform_share=min(max(uniform, 0.01), 1.0),  # without any no estimate from these labels would be unbiased
            temperature=chosen.temperature,
            has_one_per_problem=chosen.has_one_per_problem,
            domain_quota=chosen.domain_quota,
        ),
        random=np.random.default_rng(seed),
    )


def _drawn(found: Draw, trace_ids: Ints) -> Drawn:
    arm = "uniform" if found.arm is Arm.UNIFORM else "policy"
    return Drawn(found.rank, int(trace_ids[found.trace]), arm, found.q, found.score, found.n_left)


def keep_part(*, project: Project, batch: int, part: list[Drawn], pool_size: int, prm: PRM, now: dt.datetime) -> None:
    queue.keep_draws(project_id=project.pk, batch=batch, draws=part, prm=prm.label, pool_size=pool_size, now=now)


def serve_part(*, project: Project, batch: int, first: int, generation: int, now: dt.datetime) -> int:
    return queue.serve_draws(
        project_id=project.pk,
        batch=batch,
        ranks=(first, first + PART_SIZE),
        generation=generation,
        slots=project.overlap,
        now=now,
    )
