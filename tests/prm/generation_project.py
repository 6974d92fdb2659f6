"""A project with many generated traces, and its jobs run in the foreground."""

import datetime as dt
import hashlib
import random
from collections.abc import Callable, Iterator

from formats import records
from formats.records import ProblemRecord, TraceRecord
from jobs import runner
from jobs.models import Job, JobState
from jobs.runner import Chunk, JobProgress
from labeling.models import Project
from labeling.traces import load
from prm import batch_job, generations, scores, training_job
from prm.models import Generation
from tests import factories

HANDLERS: dict[str, Callable[[Job], Iterator[JobProgress | Chunk]]] = {
    generations.TRAIN: training_job.run_training_job,
    generations.SCORE: scores.run_scoring_job,
    generations.SELECT: batch_job.run_batch_job,
}


def make_record(number: int, *, is_labeled: bool, seed: int = 0, per_problem: int = 1) -> TraceRecord:
    """Make a sum that is wrong in about every third trace; a wrong step often sounds unsure."""
    dice = random.Random(f"{seed} {number}")
    first, steps, total = None, [], dice.randint(2, 90)
    for place in range(dice.randint(2, 5)):
        more = dice.randint(2, 90)
        is_slip = first is None and dice.random() < 0.15
        word = "Perhaps" if dice.random() < (0.8 if is_slip else 0.15) else "Then"
        steps.append(f"{word} we add: {total} + {more} = {total + more + is_slip}.")
        total += more + is_slip
        first = place if is_slip else first
    problem = f"Problem {seed}.{number // per_problem}: what do these numbers add up to, one by one, in the end?"
    submission = records.make_submission_to_first_error(steps, first, labeler="ann")
    submission.submitted_at = factories.NOW
    return TraceRecord(
        problem=ProblemRecord(problem, domain="sums" if number % 2 else "totals"),
        steps=records.make_steps(steps),
        is_right=first is None,
        outcome_by="file",
        submissions=[submission] if is_labeled else [],
        digest=hashlib.sha256(f"{seed} {number}".encode()).hexdigest(),
    )


def import_records(project: Project, *, labeled: int, unread: int, seed: int = 0, per_problem: int = 1) -> None:
    rows = [make_record(n, is_labeled=n < labeled, seed=seed, per_problem=per_problem) for n in range(labeled + unread)]
    source = load.ensure_source(project=project, name=f"sums {seed}", format="generated", now=factories.NOW)
    load.load_records(project=project, source=source, records=rows, now=factories.NOW)


def make_project(*, labeled: int = 120, unread: int = 60) -> Project:
    project = factories.make_project(reserve_problem_share=0.3, overlap=1)
    import_records(project, labeled=labeled, unread=unread)
    return project


def run_jobs(now: dt.datetime = factories.NOW, *, until: str = "") -> list[Job]:
    """Run the queued jobs in order, up to the first job of the kind `until`."""
    done: list[Job] = []
    while job := Job.objects.filter(state=JobState.QUEUED, kind__in=HANDLERS).order_by("pk").first():
        if job.kind == until:
            break
        runner.run_job(job.pk, HANDLERS[job.kind], clock=lambda: now)
        done.append(job)
    return done


def run_generation(project: Project, now: dt.datetime = factories.NOW) -> Generation:
    generation = generations.start_generation(project=project, by=None, now=now)
    run_jobs(now)
    generation.refresh_from_db()
    return generation
