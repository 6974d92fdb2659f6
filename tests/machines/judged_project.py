"""A project with traces for judges, and runs in the foreground."""

import datetime as dt
from typing import Any

from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Project
from machines import judges, machine_job, runs
from machines.judges import JudgeSettings
from machines.models import Judge, JudgeRun, RunPause
from machines.rollouts import RolloutOptions
from prm import registry
from prm.models import PRM
from prm.registry import PRMIdentity
from tests import factories


def make_project(n_traces: int = 3, **fields: Any) -> Project:
    project = factories.make_project(**fields)
    add_traces(project, n_traces)
    return project


def add_traces(project: Project, n: int) -> None:
    for _ in range(n):
        factories.make_trace(project)


def pause_run(run: JudgeRun) -> None:
    Job.objects.filter(subject=run.subject).delete()
    runs.pause_run(run=run, pause=RunPause.CONFIGURATION, line="Refused.", now=factories.NOW)


def make_settings(address: str = "http://127.0.0.1:1/v1", **fields: Any) -> JudgeSettings:
    values: dict[str, Any] = {
        "name": "critic",
        "address": address,
        "model": "scripted",
        "n_concurrent": 4,
        "timeout": 20.0,
    }
    return JudgeSettings(**(values | fields))


def make_judge(project: Project, address: str = "http://127.0.0.1:1/v1", **fields: Any) -> Judge:
    return judges.add_judge(project=project, settings=make_settings(address, **fields), by=None, now=factories.NOW)


def make_rollout_rater(
    project: Project, address: str = "http://127.0.0.1:1/v1", options: dict[str, Any] | None = None, **fields: Any
) -> Judge:
    """Add a Monte Carlo rater with four rollouts from each prefix."""
    values = {"name": "rollouts", "contract": "rollouts", "n_votes": 4, "temperature": 1.0, "max_tokens": 100}
    return make_judge(project, address, rollouts=RolloutOptions(**(options or {})), **(values | fields))


def make_prm(project: Project, threshold: float = 0.5, *, semantics: str = "hazard") -> PRM:
    identity = PRMIdentity("pushed", "m", semantics=semantics)
    prm = registry.register_prm(project=project, identity=identity, by=None, now=factories.NOW)
    prm.threshold = threshold
    prm.save(update_fields=["threshold"])
    return prm


def add_sums(project: Project, n: int, *, wrong_at: int | None, n_steps: int = 4, **fields: Any) -> None:
    """Add traces about sums whose answer is 10. From the step `wrong_at` on they say WRONG, and end with 11."""
    for number in range(n):
        problem = factories.make_problem(project, f"Sum {number} for {wrong_at}?", reference_answer="10")
        words = ["WRONG" if wrong_at is not None and step >= wrong_at else "Fine" for step in range(n_steps)]
        words[-1] += f" so \\boxed{{{10 if wrong_at is None else 11}}}."
        factories.make_trace(project, words, problem=problem, **fields)


def start_run(judge: Judge, **options: Any) -> JudgeRun:
    return runs.start_run(judge=judge, by=None, now=factories.NOW, **options)


def run_to_end(run: JudgeRun, now: dt.datetime = factories.NOW) -> JudgeRun:
    """Run the queued jobs of the run, and return it as it is then."""
    while job := Job.objects.filter(subject=run.subject, state=JobState.QUEUED).first():
        runner.run_job(job.pk, machine_job.run_machine_job, clock=lambda: now)
    run.refresh_from_db()
    return run


def resume(run: JudgeRun) -> JudgeRun:
    runs.resume_run(run=run, by=None, now=factories.NOW)
    return run_to_end(run)
