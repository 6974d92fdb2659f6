"""The job of a run, for each kind of machine rater."""

import datetime as dt
from collections.abc import Iterator

from jobs.models import Job
from jobs.runner import LEASE, Chunk, JobProgress
from machines import canary_job, judge_job, prm_job
from machines.canary_job import CanaryLoop
from machines.models import JudgeContractKind, JudgeRun, RunScope
from machines.rollout_job import RolloutLoop

_SCORING_LEASE = dt.timedelta(minutes=3)  # a chunk may wait for an external scorer


def run_machine_job(job: Job) -> Iterator[JobProgress | Chunk]:
    contract, scope = JudgeRun.objects.values_list("judge__contract", "scope").get(pk=job.arguments["run"])
    if contract == JudgeContractKind.PRM:
        run = canary_job.run_prm_canaries if scope == RunScope.CANARIES else prm_job.run_prm_job
        yield from run(job)
    elif scope == RunScope.CANARIES:
        yield from judge_job.run_judge_job(job, CanaryLoop)
    else:
        yield from judge_job.run_judge_job(job, RolloutLoop if contract == JudgeContractKind.ROLLOUTS else None)


def find_lease(job_id: int) -> dt.timedelta:
    run = Job.objects.get(pk=job_id).arguments["run"]
    is_prm = JudgeRun.objects.filter(pk=run, judge__contract=JudgeContractKind.PRM).exists()
    return _SCORING_LEASE if is_prm else LEASE
