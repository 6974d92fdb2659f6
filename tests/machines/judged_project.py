"""A project with traces for judges, and runs in the foreground."""

import datetime as dt
from typing import Any

from jobs import runner
from jobs.models import Job, JobState
from labeling.models import Project
from machines import judge_job, judges, runs
from machines.judges import JudgeSettings
from machines.models import Judge, JudgeRun, RunPause
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


def start_run(judge: Judge, **options: Any) -> JudgeRun:
    return runs.start_run(judge=judge, by=None, now=factories.NOW, **options)


def run_to_end(run: JudgeRun, now: dt.datetime = factories.NOW) -> JudgeRun:
    """Run the queued jobs of the run, and return it as it is then."""
    while job := Job.objects.filter(subject=run.subject, state=JobState.QUEUED).first():
        runner.run_job(job.pk, judge_job.run_judge_job, clock=lambda: now)
    run.refresh_from_db()
    return run
